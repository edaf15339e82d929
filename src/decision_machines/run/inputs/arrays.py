"""Arrays and lists, as two-dimensional arrays of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from .label_positions import hashed_positions, is_missing, positions

if TYPE_CHECKING:
    from jaxtyping import Num

    from ...machine import Columns

DOING = "reading X"
NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def as_numbers(X: Any, columns: Columns) -> Num[np.ndarray, "m n"]:
    """X as a two-dimensional array of numbers, through the dtypes that the source would use.

    `None` among numbers, in lists or in an array of objects, is missing.
    """
    try:
        x = np.asarray(X)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            DOING, f"it is not a matrix ({error})", "give rows of equal length"
        ) from None
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(
            DOING, "a masked array, whose mask would be lost", "fill it: X.filled(numpy.nan)"
        )
    if x.dtype == object:
        x = _floats(x)
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
    look_up = hashed_positions if columns.label_hash else positions
    x = X if isinstance(X, np.ndarray) else np.asarray(X, object if _has_text(X) else None)
    if x.ndim != 2 or x.shape[1] != columns.n_features or x.dtype.kind not in "biufOU":
        check_width(as_numbers(x, columns).shape, columns)
    found = np.empty(x.shape, columns.dtype)
    accepted = columns.accepted
    for feature in range(columns.n_features):
        column, labels = x[:, feature], columns.categories.get(feature)
        if accepted is not None and not accepted.needed[feature]:
            found[:, feature] = np.nan  # no step reads it: it may hold anything
        elif labels is not None:
            found[:, feature] = look_up(column, labels)
        else:
            found[:, feature] = as_numbers(column[:, None], columns)[:, 0]
    return found


def _has_text(X: Any) -> bool:
    """Whether rows given as lists hold text, which NumPy would spread over all of them."""
    rows = X if isinstance(X, (list, tuple)) else ()
    return any(isinstance(value, str) for row in rows for value in np.atleast_1d(row).tolist())


def _floats(x: np.ndarray) -> np.ndarray:
    """Numbers kept as objects, with None as NaN; anything else is left for the caller to refuse."""
    if not all(is_missing(v) or isinstance(v, NUMBERS) for v in x.flat):
        return x
    try:
        return np.array([np.nan if is_missing(v) else v for v in x.flat], np.float64).reshape(
            x.shape
        )
    except OverflowError:  # an integer beyond all floats
        return x


def _describe(x: np.ndarray) -> str:
    if x.dtype == object and x.size:
        for at, value in np.ndenumerate(x):
            if not (is_missing(value) or isinstance(value, NUMBERS)):
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


def check_width(shape: tuple[int, ...], columns: Columns) -> None:
    """Refuse rows of more or fewer features than the machine reads."""
    if shape[1] != columns.n_features:
        raise InputError(
            DOING,
            f"X has {shape[1]} column{'' if shape[1] == 1 else 's'}; "
            f"the machine reads {columns.n_features}",
            f"pass {columns.n_features} columns in the order of the training data",
        )
