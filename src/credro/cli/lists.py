"""``credro list``."""


def list_() -> None:
    """List."""
