"""One value of one feature as people have it, a number or a label, as the machine reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.label_words import label_text, labels_of
from .accepted import range_codes
from .label_positions import hashed_positions, is_missing, positions

if TYPE_CHECKING:
    from ...machine import Columns

DOING = "reading a value"


def feature_value(columns: Columns, feature: int, value: Any) -> float:
    """The number that a machine reads for a value in a table: a label's position, or the number.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> columns = Columns(2, names=("colour", "size"), categories={0: ("red", "blue")})
    >>> feature_value(columns, 0, "blue"), feature_value(columns, 1, 2.5)
    (1.0, 2.5)
    """
    if feature in columns.edges:
        number = np.array([feature_number_value(columns, feature, value)])
        return float(range_codes(number, columns.edges[feature])[0])
    labels = labels_of(columns, feature)
    if labels is None:
        return feature_number_value(columns, feature, value)
    if is_missing(value) and None not in labels:
        return float("nan")
    one = np.empty(1, object)
    one[0] = value.item() if isinstance(value, np.generic) else value
    if columns.label_hash:
        return float(hashed_positions(one, labels)[0])
    code = float(positions(one, labels)[0])
    if code < 0 and columns.refuses_new_labels:
        raise _no_label(columns, feature, value)
    # What a table's label becomes that LightGBM was not trained with.
    return float("nan") if code < 0 and columns.table_categories is not None else code


def feature_number_value(columns: Columns, feature: int, value: Any) -> float:
    """A number (of a feature known by labels, a code) in the columns' dtype; NaN for none."""
    if is_missing(value):
        return float("nan")
    try:
        number = float("" if isinstance(value, (str, bytes)) else value)
    except (TypeError, ValueError):
        name = columns.feature_name(feature)
        raise InputError(
            DOING,
            f"{value!r} for {name}, of which the model knows no labels",
            "give a number; of a model that keeps labels without the names of their features, a "
            "table of one row",
        ) from None
    with np.errstate(over="ignore"):
        x = float(columns.dtype.type(number))
        is_mark = x == float(columns.dtype.type(columns.missing_value))
    return float("nan") if is_mark else x


def label_code(columns: Columns, feature: int, label: Any) -> int:
    """The code of a label that the model knows; of one that matches hashes, -1 for all others.

    Raises
    ------
    InputError
        Where it knows none such.
    """
    code = feature_value(columns, feature, label)
    if not code >= (-1 if columns.label_hash else 0):
        raise _no_label(columns, feature, label)
    return int(code)


def _no_label(columns: Columns, feature: int, label: Any) -> InputError:
    labels = labels_of(columns, feature) or ()
    shown = ", ".join(label_text(columns, feature, code) for code in range(min(len(labels), 12)))
    return InputError(
        DOING,
        f"{label!r} for {columns.feature_name(feature)}, a label that the model does not know",
        f"use one of its labels: {shown}{' …' if len(labels) > 12 else ''}",
    )
