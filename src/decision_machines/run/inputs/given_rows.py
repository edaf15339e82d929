"""Rows as people have them: one row by names, as a vector, or what `predict` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError
from ...machine.label_words import labels_of
from .accepted import guarded_rows, unguarded
from .features import is_table, read_features
from .given_values import feature_number_value, feature_value
from .tables import ABSENT, match_names

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from ...machine import Columns

DOING = "reading one row"


def given_rows(X: Any, columns: Columns) -> Num[np.ndarray, "m n"]:
    """(m, n) rows as a machine reads them, labels as codes.

    Parameters
    ----------
    X
        What `predict` takes; or one row: a mapping from names to values, a pandas Series (a row
        of a table), a vector of all features; or a list of such mappings.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> columns = Columns(2, names=("colour", "size"), categories={0: ("red", "blue")})
    >>> given_rows({"size": 2.5, "colour": "blue"}, columns)
    array([[1. , 2.5]])
    """
    named = named_values(X)
    if named is not None or _are_mappings(X):
        rows, own = [named] if named is not None else X, unguarded(columns)
        return _as_read(np.stack([_named_row(row, own) for row in rows]), columns)
    if is_vector(X):
        return _vector(X, columns)
    read = read_features(X, columns)
    return np.asarray(read.block(0, read.n_rows))


def is_one_row(X: Any) -> bool:
    """Whether X is given in a way that `predict` does not take: a row by names, or as a vector."""
    return named_values(X) is not None or _are_mappings(X) or is_vector(X)


def _are_mappings(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and bool(X) and all(isinstance(r, Mapping) for r in X)


def given_row(x: Any, columns: Columns, doing: str = DOING) -> Float[np.ndarray, "n"]:
    """(n,) one row as a machine reads it, given in any of the ways of `given_rows`."""
    rows = given_rows(x, columns)
    if len(rows) != 1:
        raise InputError(doing, f"{len(rows)} rows", "give one row: a vector, or X[i : i + 1]")
    return np.array(rows[0], np.float64)


def named_values(given: Any) -> Mapping[Any, Any] | None:
    """Values by the names of their features, of a mapping or of a pandas Series; else None.

    A Series whose index is 0, 1, 2 … is a vector.
    """
    if isinstance(given, Mapping):
        return given
    is_series = type(given).__name__ == "Series" and hasattr(given, "index")
    if not is_series or not callable(getattr(given, "items", None)):
        return None
    index = list(given.index)
    return None if index == list(range(len(index))) else dict(given.items())


def is_vector(X: Any) -> bool:
    """Whether X is one row without names."""
    if sp.issparse(X) or (is_table(X) and np.ndim(X) != 1):
        return False
    try:
        return np.ndim(X) == 1
    except ValueError:  # rows of different lengths
        return False


def values_in_order(values: Mapping[Any, Any], columns: Columns) -> list[Any]:
    """Values by names, in the order of the features."""
    given = list(values.values())
    order = match_names(list(values), columns)
    return [None if at == ABSENT else given[at] for at in order]


def with_labels_for(values: Mapping[int, Any], columns: Columns) -> Columns:
    """The columns with labels given to the features that have text, where the model cannot say.

    LightGBM keeps labels in the order of categorical features, and not which features these are.
    They are told where those that its tests look up and those that have text are as many as there
    are lists of labels; else a text that only one list has tells its feature's.

    Parameters
    ----------
    values
        feature → a value, or several.
    """
    tables = columns.table_categories
    if tables is None or len(columns.member_features) == len(tables):
        return columns
    texts: dict[int, list[str]] = {}
    for feature, value in values.items():
        several = value if isinstance(value, (list, tuple, set, frozenset, np.ndarray)) else [value]
        if own := [one for one in several if isinstance(one, str)]:
            texts[feature] = own
    labelled = sorted({*texts, *columns.member_features})
    if len(labelled) == len(tables):
        return replace(columns, categories=dict(zip(labelled, tables, strict=True)))
    found = dict(columns.categories)
    for feature, own in texts.items():
        holding = [labels for labels in tables if any(text in labels for text in own)]
        if len(holding) == 1:
            found[feature] = holding[0]
    return replace(columns, categories=found)


def _named_row(values: Mapping[Any, Any], columns: Columns) -> Float[np.ndarray, "n"]:
    given = values_in_order(values, columns)
    columns = with_labels_for(dict(enumerate(given)), columns)
    return np.array([feature_value(columns, f, value) for f, value in enumerate(given)])


def _vector(x: Any, columns: Columns) -> Num[np.ndarray, "1 n"]:
    """A vector: numbers as an array of one row has them, labels looked up."""
    values = list(x)
    if all(isinstance(v, (int, float, np.number, np.bool_)) for v in values):
        rows = read_features(np.asarray(x)[None], columns)
        return np.asarray(rows.block(0, 1))
    if len(values) != columns.n_features:
        raise InputError(
            DOING,
            f"{len(values)} values; the machine reads {columns.n_features} features",
            "give a value for each feature, in the order of the training data",
        )
    own = with_labels_for(dict(enumerate(values)), unguarded(columns))
    read = [
        feature_value(own, f, value)
        if isinstance(value, str) or (own.encodes_arrays and labels_of(own, f) is not None)
        else feature_number_value(own, f, value)
        for f, value in enumerate(values)
    ]
    return _as_read(np.array([read]), columns)


def _as_read(x: Float[np.ndarray, "m n"], columns: Columns) -> Num[np.ndarray, "m n"]:
    with np.errstate(over="ignore"):
        return guarded_rows(x, columns).astype(columns.dtype)
