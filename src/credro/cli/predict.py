"""``credro predict``."""


def predict() -> None:
    """predict."""
