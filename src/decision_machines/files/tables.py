"""Rows from a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InputError, MissingLibraryError

if TYPE_CHECKING:
    from pathlib import Path


def read_table(path: Path) -> Any:
    """The Arrow table in a CSV, Parquet or Arrow file, told apart by content."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise MissingLibraryError(
            f"reading {path}", "pyarrow is not installed", "pip install 'decision-machines[data]'"
        ) from None
    try:
        with open(path, "rb") as file:
            start = file.read(6)
        if start[:4] == b"PAR1":
            return pyarrow.parquet.read_table(path)
        if start == b"ARROW1":
            return pyarrow.feather.read_table(path)
        table = pyarrow.csv.read_csv(path)
        table.column_names  # noqa: B018 - decodes the names, which any bytes could be
        return table
    except FileNotFoundError:
        raise InputError(f"reading {path}", "there is no such file", "check its name") from None
    except (OSError, UnicodeDecodeError, pyarrow.ArrowInvalid) as error:
        raise InputError(
            f"reading {path}", f"it is no readable table ({error})", "give CSV, Parquet or Arrow"
        ) from None
