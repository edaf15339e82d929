"""SciPy's sparse matrices: by rows, and as dense blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError
from .arrays import DOING, check_width, encoded

if TYPE_CHECKING:
    from jaxtyping import Num

    from ...machine import Columns


def sparse_rows(X: Any, columns: Columns) -> sp.csr_array:
    """X by rows, its duplicates summed, checked against the machine's columns."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            DOING,
            f"a sparse array of {X.ndim} dimension(s) and dtype {X.dtype}",
            "pass a two-dimensional sparse matrix of numbers",
        )
    check_width(X.shape, columns)
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def dense_block(rows: sp.csr_array, columns: Columns) -> Num[np.ndarray, "b n_features"]:
    """Some rows with every entry written out: `columns.absent` where none is stored."""
    x = np.full(rows.shape, columns.absent, columns.dtype)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    with np.errstate(over="ignore"):
        x[row, rows.indices] = rows.data.astype(columns.dtype)
    if not np.isnan(columns.missing_value):
        x[x == columns.missing_value] = np.nan
    return encoded(x, columns) if columns.encodes_arrays else x
