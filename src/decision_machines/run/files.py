"""Rows from a data file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, MissingLibraryError
from .inputs import read_rows

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine


def read_matrix(path: Path, machine: DecisionMachine) -> Float[np.ndarray, "m n_features"]:
    """The features of every row of a CSV, Parquet or Arrow file, in float64, as the machine reads.

    Raises
    ------
    InputError
        Where the file cannot be read or its columns are not the model's.
    """
    table = _table(path)
    rows = read_rows(table, replace(machine.columns, dtype=np.float64, integers_as=np.float64))
    return np.asarray(rows.block(0, rows.n_rows))


def _table(path: Path):
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
        return pyarrow.csv.read_csv(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise InputError(
            f"reading {path}", f"it is no readable table ({error})", "give CSV, Parquet or Arrow"
        ) from None
