"""Small files as people have them, written by hand: no code of ours has a part in them."""


def write(path, rows, between=","):
    path.write_text("\n".join(between.join(map(str, row)) for row in rows) + "\n")
    return path


def columns(*parts):
    """Columns as rows."""
    return [list(row) for row in zip(*parts, strict=True)]


def said(data, start):
    """The notes that start so."""
    return [note for note in data.notes if note.startswith(start)]
