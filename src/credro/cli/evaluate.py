"""``credro evaluate``."""


def evaluate() -> None:
    """evaluate."""
