"""What the source refuses, refused here too; numbers that are read as ranges, as their codes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.digits import digits
from ...machine.feature_names import listed
from ...machine.label_words import label_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Float, Num

    from ...machine import Columns

DOING = "reading X"
SHORT = {np.dtype(name) for name in ("bool", "int8", "uint8", "int16", "uint16", "float16")}
"""What NumPy's functions compute in fewer digits than float32 or float64 has."""


def is_guarded(columns: Columns) -> bool:
    """Whether values must be checked or coded before an engine may read them."""
    return columns.accepted is not None or bool(columns.edges)


def unguarded(columns: Columns) -> Columns:
    """How values are read that `guarded_rows` then checks and codes, as the source's steps do."""
    if not is_guarded(columns):
        return columns
    return replace(columns, dtype=np.dtype(np.float64), edges={}, accepted=None)


def guarded(values: Sequence[Num[np.ndarray, "m"]], columns: Columns) -> list[Num[np.ndarray, "m"]]:
    """The values of every feature, checked, with numbers that are read as ranges coded.

    Raises
    ------
    InputError
        That names the feature and the first value that the source would refuse.
    """
    return [guarded_column(column, feature, columns) for feature, column in enumerate(values)]


def guarded_column(
    column: Num[np.ndarray, "m"], feature: int, columns: Columns
) -> Num[np.ndarray, "m"]:
    """One feature's values, checked; coded where they are read as ranges, else the same array."""
    _check(column, feature, columns)
    edges = columns.edges.get(feature)
    return column if edges is None else range_codes(column, edges)


def is_free(feature: int, columns: Columns) -> bool:
    """Whether a feature needs no look: it has labels, and each of them, or none, will do."""
    accepted = columns.accepted
    return feature in columns.categories and (
        accepted is None or (bool(accepted.missing[feature]) and feature not in accepted.refused)
    )


def guarded_rows(x: Num[np.ndarray, "m n"], columns: Columns) -> Num[np.ndarray, "m n"]:
    """Rows of all features, checked and coded as `guarded` does."""
    if not is_guarded(columns):
        return x
    found = guarded(list(x.T), columns)
    return np.stack(found, axis=1).astype(x.dtype) if columns.edges else x


def range_codes(column: Num[np.ndarray, "m"], edges: tuple[float, ...]) -> Float[np.ndarray, "m"]:
    """How many bounds lie below each number; NaN for none.

    Examples
    --------
    >>> range_codes(np.array([0.0, 1.0, 1.5, np.nan]), (1.0, 2.0))
    array([ 0.,  0.,  1., nan])
    """
    x = np.asarray(column, np.float64)
    found = np.searchsorted(np.asarray(edges, np.float64), x, side="left").astype(np.float64)
    found[np.isnan(x)] = np.nan
    return found


def _check(column: np.ndarray, feature: int, columns: Columns) -> None:
    accepted = columns.accepted
    if accepted is None or not len(column):
        return
    if not accepted.missing[feature] and np.any(column != column):
        raise _refused("no value", feature, columns, "give it a value in every row")
    refused = accepted.refused.get(feature)
    if refused is not None:
        codes = range_codes(column, columns.edges[feature]) if feature in columns.edges else column
        wrong = np.isin(codes, refused)
        if np.any(wrong):
            raise _refused_code(column[np.argmax(wrong)], feature, columns)
    if feature in columns.categories:
        return
    low, high = accepted.low[feature], accepted.high[feature]
    if low == -np.inf and high == np.inf:
        return
    wrong = (column < low) | (column > high)
    if np.any(wrong):
        raise _refused(
            str(column[np.argmax(wrong)]),
            feature,
            columns,
            f"give numbers from {digits(low, np.dtype(float))} to {digits(high, np.dtype(float))}",
        )


def _refused(found: str, feature: int, columns: Columns, remedy: str) -> InputError:
    return InputError(
        DOING,
        f"{columns.feature_name(feature)!r} has {found}, which the steps of the source refuse",
        remedy,
    )


def _refused_code(value: float, feature: int, columns: Columns) -> InputError:
    labels = columns.categories.get(feature)
    if labels is None:
        return _refused(str(value), feature, columns, "give values that the source was fitted to")
    assert columns.accepted is not None
    refused = columns.accepted.refused[feature]
    found = "a label that it was not fitted to" if value < 0 else repr(labels[int(value)])
    known = [label_text(columns, feature, c) for c in range(len(labels)) if c not in refused]
    return _refused(found, feature, columns, f"use its labels, {listed(known)}")


def check_dtypes(dtypes: Mapping[int, Any], columns: Columns) -> None:
    """Refuse columns whose dtypes would have the source compute in other digits than the machine.

    Parameters
    ----------
    dtypes
        feature → the dtype of its column.
    """
    accepted = columns.accepted
    if accepted is None:
        return
    for feature in accepted.plain:
        found = dtypes.get(feature)
        if found is not None and found in SHORT:
            raise InputError(
                DOING,
                f"{columns.feature_name(feature)!r} is of {found}, which the source's function "
                "computes in fewer digits",
                "give the column as float64, in training too",
            )
    for which, dtype in accepted.blocks:
        found = [dtypes[f] for f in which if f in dtypes]
        computed = arithmetic(found)
        if found and computed != dtype:
            names = [columns.feature_name(f) for f in which]
            raise InputError(
                DOING,
                f"the steps of the source would compute in {computed} with these dtypes of "
                f"{listed(names)}; the machine was folded for {dtype}, and the last bits differ",
                f"give the columns as {dtype}, or fold for these dtypes: dm.convert(pipeline, X)",
            )


def arithmetic(dtypes: list[Any]) -> str:
    """The dtype in which scikit-learn computes with columns of these dtypes.

    Examples
    --------
    >>> arithmetic([np.dtype("f4"), np.dtype("i2")]), arithmetic([np.dtype("f4"), np.dtype("i8")])
    ('float32', 'float64')
    """
    common = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    return common.name if common.kind == "f" else "float64"
