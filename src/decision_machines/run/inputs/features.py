"""What users pass, whatever it is, as rows of raw features."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .accepted import check_dtypes, guarded_rows, is_guarded
from .arrays import as_numbers, check_width, encoded
from .sparse_matrices import dense_block, sparse_rows
from .tables import table_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Num

    from ...machine import Columns, DecisionMachine

TABLES = ("pandas", "polars", "pyarrow", "modin", "cudf", "dask", "duckdb")


@dataclass(frozen=True)
class FeatureRows:
    """Rows of raw features, given out in blocks as float32 or float64 arrays."""

    n_rows: int
    block: Callable[[int, int], Num[np.ndarray, "b n_features"]]


def read_features(X: Any, columns: Columns) -> FeatureRows:
    """The rows of an array, a sparse matrix or a table, checked against the machine's columns.

    Raises
    ------
    InputError
        Where X has the wrong width, names, or kind of values; it says which.
    """
    if sp.issparse(X):
        rows = sparse_rows(X, columns)
        _check_dtype(X.dtype, columns)
        return FeatureRows(
            rows.shape[0], lambda a, b: guarded_rows(dense_block(rows[a:b], columns), columns)
        )
    if is_table(X):
        x = table_array(X, columns)
    else:
        is_coded = columns.encodes_arrays or is_guarded(columns)
        x = encoded(X, columns) if is_coded else as_numbers(X, columns)
        check_width(x.shape, columns)
        if not np.isnan(columns.missing_value):
            x = np.where(x == columns.missing_value, np.nan, x)
        if is_guarded(columns):
            _check_dtype(getattr(X, "dtype", np.dtype(np.float64)), columns)
            x = guarded_rows(x, columns)
    return FeatureRows(len(x), lambda a, b: x[a:b])


def _check_dtype(dtype: np.dtype[Any], columns: Columns) -> None:
    """Refuse an array whose dtype would have the source compute in other digits."""
    number = dtype if dtype.kind in "biuf" else np.dtype(np.float64)
    check_dtypes(dict.fromkeys(range(columns.n_features), number), columns)


def features(
    machine: DecisionMachine, X: Any, *, dtype: Any = None
) -> Num[np.ndarray, "m n_features"]:
    """Rows as the machine reads them; see `DecisionMachine.features`."""
    columns = machine.columns
    if dtype is not None:
        columns = replace(columns, dtype=dtype, integers_as=columns.integers_as)
    rows = read_features(X, columns)
    return np.asarray(rows.block(0, rows.n_rows))


def is_table(X: Any) -> bool:
    """Whether X is a table of named columns, of any library."""
    if isinstance(X, np.ndarray):
        return False
    package = type(X).__module__.split(".")[0]
    return (package in TABLES and package in sys.modules) or hasattr(X, "__arrow_c_stream__")
