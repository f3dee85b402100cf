"""``credro bench``."""


def bench() -> None:
    """bench."""
