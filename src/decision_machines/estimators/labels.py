"""Text columns of a table: labels as numbers to learn from, and as sets in the machine.

A label becomes its rank in the order of what its rows give on average, so that the best sets of
labels are cuts of that order (for two classes and for squared error exactly so). The machine that
is learned reads the labels themselves: every test of such a feature asks for a set. A label that
was not in the training data is treated as missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..machine import CategorySets, Columns, DecisionMachine, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float

MOST_LABELS = 1000
MOST_ONE_HOT = 64
"""Labels of a feature that an oblique test can weigh one by one; rarer ones count as none."""


def check_table(X: Any, doing: str, *, takes_text: bool) -> None:
    """Refuse what no test can ask for: columns given twice, dates, text where it is not taken."""
    import narwhals as nw

    try:
        table = nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        found = " ".join(str(error).split())
        raise InputError(doing, found, "give every column a name of its own") from None
    except TypeError:
        return  # said by who reads it
    if not table.columns:
        raise InputError(
            doing,
            f"a table with 0 feature(s) (shape=({len(table)}, 0)) while a minimum of 1 is required",
            "pass at least one column",
        )
    for name, dtype in table.schema.items():
        if dtype.is_temporal():
            raise InputError(
                doing,
                f"column {name!r} holds dates or times ({dtype})",
                "make numbers of it, such as days since a start, month or weekday, or leave it out"
                " (dm train: --drop)",
            )
        if dtype in (nw.String, nw.Categorical, nw.Enum) and not takes_text:
            raise InputError(
                doing,
                f"column {name!r} holds text or categories",
                "make numbers of it (OneHotEncoder), or use DecisionMachineClassifier or "
                "DecisionMachineRegressor, which ask for sets of labels",
            )


def label_columns(X: Any) -> dict[int, list[Any]]:
    """Of a table: feature → its values, for the columns that hold text or categories."""
    from ..run.inputs.features import is_table

    if not is_table(X):
        return {}
    import narwhals as nw

    table = nw.from_native(X, eager_only=True)
    kinds = (nw.String, nw.Categorical, nw.Enum, nw.Object)
    return {
        i: table[:, i].to_list()
        for i, name in enumerate(table.columns)
        if table[:, i].dtype in kinds
    }


def ordered_labels(
    columns: dict[int, list[Any]],
    names: Any,
    Y: Float[np.ndarray, "m k"],
    w: Float[np.ndarray, "m"],
) -> dict[int, tuple[Any, ...]]:
    """For each feature its labels, in the order of what their rows give on average.

    Raises
    ------
    InputError
        Where a column is not a column of labels: other things than text, or a text of its own in
        nearly every row.
    """
    found = {}
    mean = np.average(Y, axis=0, weights=w)
    for feature, values in columns.items():
        name = str(names[feature])
        labels = list(dict.fromkeys(v for v in values if not _is_missing(v)))
        _check(name, labels, len(values))
        place = {label: i for i, label in enumerate(labels)}
        code = np.array([-1 if _is_missing(v) else place[v] for v in values], np.int64)
        is_there = code >= 0
        count = np.bincount(code[is_there], w[is_there], len(labels))
        # A label of few rows says little: it starts at the mean of all.
        total = np.stack(
            [
                np.bincount(code[is_there], (w * (column - m))[is_there], len(labels))
                for column, m in zip(Y.T, mean, strict=True)
            ],
            axis=1,
        )
        given = total / (count + 1.0)[:, None]
        if given.shape[1] > 1 and len(given) > 1:
            weighted = given * np.sqrt(count)[:, None]
            given = given @ np.linalg.svd(weighted, full_matrices=False)[2][0][:, None]
        order = np.argsort(given[:, 0], kind="stable")
        found[feature] = tuple(labels[i] for i in order)
    return found


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _check(name: str, labels: list[Any], n_rows: int) -> None:
    doing = f"reading column {name!r}"
    strange = [
        label for label in labels if not isinstance(label, (str, bool, int, float, np.generic))
    ]
    if strange:
        raise InputError(
            doing,
            f"it holds {strange[0]!r}, a {type(strange[0]).__name__}",
            "turn it into text or numbers first",
        )
    if len(labels) > MOST_LABELS or (len(labels) > 50 and len(labels) > n_rows / 2):
        raise InputError(
            doing,
            f"{len(labels)} different texts in {n_rows} rows: names or free text, not categories",
            "leave the column out (dm train: --drop), or make numbers or fewer categories of it",
        )


def encoded(X: Any, names: Any, labels: dict[int, tuple[Any, ...]]) -> Float[np.ndarray, "m n"]:
    """The table as numbers: labels as their ranks, unknown and missing ones as NaN."""
    from ..run.inputs.tables import table_columns

    n = len(names)
    columns = Columns(n, names=tuple(map(str, names)), categories=labels)
    n_rows, values = table_columns(X, columns)
    x = np.empty((n_rows, n))
    for feature, column in enumerate(values):
        x[:, feature] = column
        if feature in labels:
            x[x[:, feature] < 0, feature] = np.nan
    return x


def one_hot(
    x: Float[np.ndarray, "m n"], labels: dict[int, tuple[Any, ...]]
) -> tuple[Float[np.ndarray, "m c"], list[tuple[int, int]]]:
    """Columns for oblique tests: numbers as they are, labels 1 where a row has them, else 0.

    Returns the columns and, for each, (feature, rank of the label or -1).
    """
    made, place = [], []
    for feature in range(x.shape[1]):
        column = x[:, feature]
        if feature not in labels:
            made.append(column)
            place.append((feature, -1))
            continue
        ranks, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        for rank in ranks[np.argsort(-counts, kind="stable")][:MOST_ONE_HOT]:
            made.append(np.where(np.isnan(column), np.nan, column == rank))
            place.append((feature, int(rank)))
    return np.stack(made, axis=1) if made else np.empty((len(x), 0)), place


def with_label_sets(
    machine: DecisionMachine, labels: dict[int, tuple[Any, ...]]
) -> DecisionMachine:
    """The machine, its tests of ranks turned into tests of sets of labels."""
    if not labels or machine.is_oblique:
        return machine

    def is_left(t: float, n_labels: int) -> np.ndarray:
        found: np.ndarray = np.arange(n_labels) <= t
        return found

    return _with_tests_of_sets(machine, labels, is_left)


def with_bit_sets(machine: DecisionMachine, labels: dict[int, tuple[Any, ...]]) -> DecisionMachine:
    """The machine, whose thresholds for features of labels are the ranks that go left, as bits."""

    def is_left(t: float, n_labels: int) -> np.ndarray:
        if np.isinf(t):  # all that are known
            return np.ones(n_labels, bool)
        return np.array([int(t) >> rank & 1 for rank in range(n_labels)], bool)

    return _with_tests_of_sets(machine, labels, is_left) if labels else machine


def _with_tests_of_sets(
    machine: DecisionMachine,
    labels: dict[int, tuple[Any, ...]],
    is_left: Callable[[float, int], np.ndarray],
) -> DecisionMachine:
    """Tests of features of labels ask for the set that `is_left` makes of their threshold."""
    columns = machine.columns
    feature = columns.feature[machine.selection]
    # Every column as it is, then one for each different set of a feature of labels.
    sets: dict[tuple[int, tuple[bool, ...]], int] = {}
    selection, t = machine.selection.copy(), machine.t.copy()
    for test in np.flatnonzero(np.isin(feature, list(labels))):
        f = int(feature[test])
        chosen = (f, tuple(is_left(float(t[test]), len(labels[f])).tolist()))
        selection[test] = len(columns) + sets.setdefault(chosen, len(sets))
        t[test] = 0.5
    members = [np.arange(len(labels[f])) for f, _ in sets]
    answers = [np.where(left, -1, 1) for _, left in sets]
    return replace(
        machine,
        columns=_with_sets(columns, [f for f, _ in sets], members, answers, labels),
        selection=selection,
        t=t,
    )


def with_one_hot_sets(
    machine: DecisionMachine,
    place: list[tuple[int, int]],
    n_features: int,
    labels: dict[int, tuple[Any, ...]],
) -> DecisionMachine:
    """An oblique machine over the columns of `one_hot`, reading the table's features instead."""
    ranks = [(f, rank) for f, rank in place if rank >= 0]
    members = [np.arange(len(labels[f])) for f, _ in ranks]
    answers = [np.where(np.arange(len(labels[f])) == rank, 1, -1) for f, rank in ranks]
    sets = _sets(members, answers) if ranks else None
    rule = np.array(
        [machine.columns.rule[i] if rank < 0 else Rule.MEMBER for i, (_, rank) in enumerate(place)]
    )
    columns = Columns(
        n_features,
        feature=np.array([f for f, _ in place]),
        rule=rule,
        sets=sets,
        categories=labels,
    )
    return replace(machine, columns=columns)


def _with_sets(
    columns: Columns,
    features: list[int],
    members: list[Any],
    answers: list[Any],
    labels: dict[int, tuple[Any, ...]],
) -> Columns:
    if not features:
        return replace(columns, categories=labels)
    return replace(
        columns,
        feature=np.concatenate([columns.feature, features]),
        rule=np.concatenate([columns.rule, np.full(len(features), Rule.MEMBER)]),
        sets=_sets(members, answers),
        categories=labels,
    )


def _sets(members: list[Any], answers: list[Any]) -> CategorySets:
    return CategorySets(
        np.cumsum([0, *(len(which) for which in members)]),
        np.concatenate(members),
        np.concatenate(answers),
        np.zeros(len(members), np.int8),
    )
