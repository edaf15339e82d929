"""What people give to be explained: rows by names or as vectors, features, limits, labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..machine.coded import coded
from ..machine.feature_names import feature_number
from ..machine.label_words import labels_of, number_in_range
from ..run.inputs.features import is_table
from ..run.inputs.given_rows import given_rows, is_one_row, named_values, with_labels_for
from ..run.inputs.given_values import feature_number_value, feature_value, label_code
from ..run.inputs.label_positions import is_missing
from ..run.inputs.tables import native_table
from ..run.inputs.told import told_by

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

    from ..machine import Columns, DecisionMachine


def features_of(machine: DecisionMachine, X: Any, dtype: Any = None) -> Num[np.ndarray, "m n"]:
    """(m, n) rows as the machine reads them: what `predict` takes, or one row."""
    return given_rows(X, machine.columns) if is_one_row(X) else machine.features(X, dtype=dtype)


def leaves_of(
    machine: DecisionMachine, X: Any, n_threads: int | None = None
) -> Int[np.ndarray, "m T"]:
    """(m, T) exit leaves, counted within each tree, of what `predict` takes, or of one row."""
    if is_one_row(X):
        return coded(machine).apply(given_rows(X, machine.columns), n_threads=n_threads)
    return machine.apply(X, n_threads=n_threads)


def with_labels_of(machine: DecisionMachine, X: Any) -> tuple[DecisionMachine, frozenset[int]]:
    """The machine with labels that only rows tell, and the features that they hold as integers."""
    told = told_by(X, machine.columns)
    if told.columns is machine.columns:
        return machine, told.whole
    return replace(machine, columns=told.columns), told.whole


@dataclass(frozen=True)
class Limits:
    """What one feature may be: from `low` to `high`, or one of some codes, where it has labels."""

    low: float = -np.inf
    high: float = np.inf
    codes: tuple[int, ...] | None = None


def limits_of(columns: Columns, feature: int, given: Any, doing: str) -> Limits:
    """Limits as people give them: (low, high), a label, or several labels.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> columns = Columns(2, names=("colour", "size"), categories={0: ("red", "blue")})
    >>> limits_of(columns, 0, "blue", "trying").codes
    (1,)
    >>> limits_of(columns, 1, (0, 10), "trying")
    Limits(low=0.0, high=10.0, codes=None)
    """
    codes = codes_of(columns, feature, given)
    if codes is not None:
        return Limits(codes=codes)
    try:
        low, high = (float(v) for v in given)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not low <= high:
        name = columns.feature_name(feature)
        labels = labels_of(columns, feature)
        also = "" if labels is None else ", or some of its labels"
        raise InputError(
            doing, f"the range {given!r} of {name}", f"give (low, high), low first{also}"
        )
    if feature in columns.edges:
        edges = columns.edges[feature]
        inside = (c for c in range(len(edges) + 1) if low <= number_in_range(edges, c) <= high)
        return Limits(codes=tuple(inside))
    return Limits(low, high)


def codes_of(columns: Columns, feature: int, given: Any) -> tuple[int, ...] | None:
    """The codes of a label or of several; None where something else is given.

    Numbers are codes where the feature's labels are texts.
    """
    labels = labels_of(columns, feature)
    if labels is None:
        return None
    is_several = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    asked = list(given) if is_several else [given]
    are_numbers = any(isinstance(v, (int, float, np.number)) for v in labels)
    if not asked or any(
        is_missing(v) or (isinstance(v, (int, float, np.number)) and not are_numbers) for v in asked
    ):
        return None
    return tuple(sorted({label_code(columns, feature, v) for v in asked}))


def numbers_for_features(
    columns: Columns, given: Any, free: float, doing: str
) -> Float[np.ndarray, "n"]:
    """(n,) a number for each feature, given for all of them in order or by names for some."""
    found = np.full(columns.n_features, free)
    named = named_values(given)
    try:
        if named is None:
            found[:] = np.broadcast_to(np.asarray(given, float), found.shape)
        for feature, value in ({} if named is None else named).items():
            found[feature_number(columns, feature)] = float(value)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            doing,
            f"{given!r}",
            f"give one number, {columns.n_features} of them, or feature → number",
        ) from None
    return found


def box_of(
    columns: Columns, lower: Any, upper: Any, doing: str
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"], dict[int, tuple[int, ...]]]:
    """A box as people give it: lower and upper ends, and the codes of features held at labels.

    Parameters
    ----------
    lower, upper
        A value for each feature, in order or by names; features left out are free. A label in
        either holds its feature at that label, several at any of them.
    """
    n = columns.n_features
    ends = np.full(n, -np.inf), np.full(n, np.inf)
    codes: dict[int, tuple[int, ...]] = {}
    by_feature = [_by_feature(columns, given, doing) for given in (lower, upper)]
    columns = with_labels_for(by_feature[0] | by_feature[1], columns)
    for end, given in zip(ends, by_feature, strict=True):
        for feature, value in given.items():
            held = codes_of(columns, feature, value)
            if held is None:
                end[feature] = _number(columns, feature, value, doing)
            elif codes.setdefault(feature, held) != held:
                raise InputError(
                    doing,
                    f"{columns.feature_name(feature)} from one label to another",
                    "labels have no order: give those that it may have, once",
                )
    return *ends, codes


def _by_feature(columns: Columns, given: Any, doing: str) -> dict[int, Any]:
    """feature → value, of values by names or of one for each feature."""
    if given is None:
        return {}
    named = _one_row_of_table(given, doing) if is_table(given) else named_values(given)
    if named is not None:
        return {feature_number(columns, name): value for name, value in named.items()}
    try:
        values = list(np.asarray(given).reshape(-1).tolist() if np.ndim(given) > 1 else given)
    except TypeError:
        values = []
    if len(values) != columns.n_features:
        raise InputError(
            doing,
            f"{given!r}"
            if not values
            else f"{len(values)} limits for {columns.n_features} features",
            "give a number for each feature, or a dictionary: feature → number or label",
        )
    return dict(enumerate(values))


def _one_row_of_table(table: Any, doing: str) -> Mapping[Any, Any] | None:
    if np.ndim(table) == 1:  # a row, of which `named_values` knows the names
        return named_values(table)
    rows = native_table(table)
    if len(rows) != 1:
        raise InputError(doing, f"a table of {len(rows)} rows", "give one row: df.iloc[[i]]")
    return dict(zip(rows.columns, rows.row(0), strict=True))


def _number(columns: Columns, feature: int, value: Any, doing: str) -> float:
    """A limit: not cast to the columns' dtype, since what is cast later keeps its order.

    Of a feature that is read as ranges, the range that the limit lies in.
    """
    if is_missing(value):
        return float("nan")
    if feature in columns.edges:
        return feature_value(columns, feature, value)
    feature_number_value(columns, feature, value)  # says what is wrong with text
    return float(value)
