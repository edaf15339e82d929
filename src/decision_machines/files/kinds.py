"""Which kind of table a file holds: told by its content; text is told by its own name."""

from __future__ import annotations

import os
from typing import Any

from ..errors import InputError, MissingLibraryError

MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
PACKED = b"\x1f\x8b"
"""How a file of gzip begins."""
ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".txt": "csv",
    ".txt.gz": "csv",
}
"""How the name of a table ends → parquet, arrow or csv."""
WRITTEN = {"parquet": ".parquet", "csv": ".csv", "arrow": ".arrow"}
"""The kinds of table that are written → how their names end."""


def arrow(doing: str) -> Any:
    """The pyarrow package, or an error that says what brings it."""
    try:
        import pyarrow
    except ImportError:
        raise MissingLibraryError(
            doing, "pyarrow is not installed", "pip install 'decision-machines[data]'"
        ) from None
    return pyarrow


def ending(path: str | os.PathLike[str]) -> str:
    """How a file's own name ends: `.csv.gz` rather than `.gz`; folders have no say.

    Examples
    --------
    >>> ending("exports.tsv/rows.CSV.gz")
    '.csv.gz'
    """
    stem, last = os.path.splitext(os.path.basename(os.fspath(path)))
    return (os.path.splitext(stem)[1] + last if last.lower() == ".gz" else last).lower()


def separator(path: str | os.PathLike[str]) -> str:
    """What stands between the cells of a text: a tab where the file's own name says `.tsv`."""
    return "\t" if ending(path).startswith(".tsv") else ","


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of gzip, whatever its name."""
    with open(path, "rb") as file:
        return file.read(len(PACKED)) == PACKED


def kind_of(path: str | os.PathLike[str], *, is_named: bool = True) -> str:
    """parquet, arrow or csv.

    Parameters
    ----------
    is_named
        Whether the user named this very file. Then any text is a table; a text found in a folder
        is one only where its name says so, and else is refused.

    Raises
    ------
    InputError
        Where the file cannot be opened, or is not a table.
    """
    doing = f"reading {os.fspath(path)}"
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
    except FileNotFoundError:
        raise InputError(doing, "there is no such file", "check its name") from None
    except IsADirectoryError:
        raise InputError(doing, "it is a folder", "give one file of rows") from None
    except OSError as error:
        raise InputError(doing, f"it cannot be opened ({error.strerror})", "check it") from None
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            return kind
    named = ENDINGS.get(ending(path))
    if named not in ("csv", None):
        raise InputError(
            doing,
            f"its name says {named}, but it starts with {start[:6]!r}: it is damaged, or not "
            "such a file",
            "write the file again",
        )
    is_text = start.startswith(PACKED) or b"\0" not in start
    if is_text and (named == "csv" or is_named):
        return "csv"
    if is_text:
        raise InputError(
            doing,
            f"it is not a Parquet or Arrow file, and its name does not end in {', '.join(ENDINGS)}",
            "name the data files with a glob, such as 'data/*.parquet', or rename it",
        )
    raise InputError(
        doing,
        f"it is not a readable table: not Parquet, Arrow or text; it starts with {start[:6]!r}",
        "give Parquet, Arrow, or CSV in UTF-8",
    )
