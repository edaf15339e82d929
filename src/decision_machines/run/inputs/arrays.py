"""The data that users pass, turned into rows of features a block at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Num

    from ...machine import Columns

DOING = "reading X"
TABLES = ("pandas", "polars", "pyarrow", "modin", "cudf", "dask", "duckdb")


@dataclass(frozen=True)
class Rows:
    """Rows of raw features, given out in blocks as float32 or float64 arrays."""

    n_rows: int
    block: Callable[[int, int], Num[np.ndarray, "b n_features"]]


def read_rows(X: Any, columns: Columns) -> Rows:
    """The rows of an array, a sparse matrix or a table, checked against the machine's columns.

    Raises
    ------
    InputError
        Where X has the wrong width, names, or kind of values; it says which.
    """
    if sp.issparse(X):
        return _sparse_rows(X, columns)
    if is_table(X):
        from .tables import table_rows

        return table_rows(X, columns)
    x = encoded(X, columns) if columns.encodes_arrays else as_numbers(X, columns)
    _check_width(x.shape, columns)
    if not np.isnan(columns.missing_value):
        x = np.where(x == columns.missing_value, np.nan, x)
    return Rows(len(x), lambda start, stop: x[start:stop])


def as_numbers(X: Any, columns: Columns) -> Num[np.ndarray, "m n"]:
    """X as a two-dimensional array of numbers, through the dtypes that the source would use."""
    try:
        x = np.asarray(X)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(DOING, f"it is no matrix ({error})", "give rows of equal length") from None
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(
            DOING, "a masked array, whose mask would be lost", "fill it: X.filled(numpy.nan)"
        )
    if x.dtype.kind not in "biuf":
        raise InputError(DOING, f"{_describe(x)} where numbers are needed", _remedy(x))
    if x.ndim != 2:
        raise InputError(
            DOING,
            f"{x.ndim} dimension{'' if x.ndim == 1 else 's'} (shape {x.shape}) where rows × "
            "features are needed",
            "use X.reshape(1, -1) for one row, or X.reshape(-1, 1) for one feature",
        )
    if x.dtype.kind in "iu" and columns.integers_as != columns.dtype:
        x = x.astype(columns.integers_as)
    with np.errstate(over="ignore"):
        return x.astype(columns.dtype, copy=False)


def encoded(X: Any, columns: Columns) -> Num[np.ndarray, "m n"]:
    """X with the labels of categorical features turned into their positions."""
    from .hashed_labels import hashed_positions
    from .labels import positions

    look_up = hashed_positions if columns.label_hash else positions
    x = X if isinstance(X, np.ndarray) else np.asarray(X, object if _has_text(X) else None)
    if x.ndim != 2 or x.shape[1] != columns.n_features or x.dtype.kind not in "biufOU":
        _check_width(as_numbers(x, columns).shape, columns)
    found = np.empty(x.shape, columns.dtype)
    for feature in range(columns.n_features):
        column, labels = x[:, feature], columns.categories.get(feature)
        if labels is not None:
            found[:, feature] = look_up(column, labels)
        else:
            if column.dtype == object:
                column = _floats(column)
            found[:, feature] = as_numbers(column[:, None], columns)[:, 0]
    return found


def _has_text(X: Any) -> bool:
    """Whether rows given as lists hold text, which NumPy would spread over all of them."""
    return any(isinstance(value, str) for row in X for value in np.atleast_1d(row).tolist())


def _floats(column: np.ndarray) -> np.ndarray:
    """Numbers kept as objects, with None as NaN; anything else is left for the caller to refuse."""
    is_number = [v is None or isinstance(v, (int, float, np.number)) for v in column]
    if not all(is_number):
        return column
    return np.array([np.nan if v is None else v for v in column], np.float64)


def _describe(x: np.ndarray) -> str:
    if x.dtype == object and x.size:
        for at, value in np.ndenumerate(x):
            if not isinstance(value, (int, float, np.number)):
                return f"an object array with {value!r} at {at}"
        return "an object array"
    return {"U": "text", "S": "bytes", "M": "dates", "m": "time spans", "c": "complex numbers"}.get(
        x.dtype.kind, f"dtype {x.dtype}"
    )


def _remedy(x: np.ndarray) -> str:
    if x.dtype == object:
        return (
            "use X.astype(float) if all entries are numbers, or pass a table whose text columns "
            "the model knows as categories"
        )
    return "encode X as the model's training data was encoded, for example as float64"


def _check_width(shape: tuple[int, ...], columns: Columns) -> None:
    if shape[1] != columns.n_features:
        raise InputError(
            DOING,
            f"X has {shape[1]} column{'' if shape[1] == 1 else 's'}; "
            f"the machine reads {columns.n_features}",
            f"pass {columns.n_features} columns in the order of the training data",
        )


def sparse_matrix(X: Any, columns: Columns) -> sp.csr_array:
    """X by rows, its duplicates summed, checked against the machine's columns."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            DOING,
            f"a sparse array of {X.ndim} dimension(s) and dtype {X.dtype}",
            "pass a two-dimensional sparse matrix of numbers",
        )
    _check_width(X.shape, columns)
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _sparse_rows(X: Any, columns: Columns) -> Rows:
    X = sparse_matrix(X, columns)

    def block(start: int, stop: int) -> np.ndarray:
        part = X[start:stop]
        x = np.full(part.shape, columns.absent, columns.dtype)
        row = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        with np.errstate(over="ignore"):
            x[row, part.indices] = part.data.astype(columns.dtype)
        if not np.isnan(columns.missing_value):
            x[x == columns.missing_value] = np.nan
        return encoded(x, columns) if columns.encodes_arrays else x

    return Rows(X.shape[0], block)


def is_table(X: Any) -> bool:
    """Whether X is a table of named columns, of any library."""
    if isinstance(X, np.ndarray):
        return False
    package = type(X).__module__.split(".")[0]
    return (package in TABLES and package in sys.modules) or hasattr(X, "__arrow_c_stream__")
