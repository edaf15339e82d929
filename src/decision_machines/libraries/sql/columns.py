"""Features in SQL, and which side of a test a row goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ...machine.columns import ZERO
from ...machine.label_words import labels_of
from ..limits import Limits
from ..write_thresholds import double_range

if TYPE_CHECKING:
    from ...machine import CategorySets, DecisionMachine
    from .dialects import Dialect


def labels_known(machine: DecisionMachine, feature: int) -> tuple[Any, ...] | None:
    """The labels that a feature is compared with; None where it is a number or a range."""
    columns = machine.columns
    if feature in columns.edges:
        return None
    found = labels_of(columns, feature)
    if found is None and columns.table_categories and feature in columns.member_features:
        Limits(machine, "SQL").refuse(
            f"which labels belong to {columns.feature_name(feature)!r} is not told: the model has "
            "them in the order of the categorical columns, and not all of these are tested",
            "code the table first, machine.features(table), and write the machine that takes "
            "codes: dataclasses.replace(machine, columns=machine.columns.coded())",
        )
    if found is not None and columns.label_hash and not all(isinstance(v, str) for v in found):
        Limits(machine, "SQL").refuse(
            f"the labels of {columns.feature_name(feature)!r} are known by their hashes alone",
            "convert the model object with the table it was trained on, or use "
            "stream.duckdb_function",
        )
    return found


def used_features(machine: DecisionMachine) -> list[int]:
    """The features that some test reads, or whose values may be refused."""
    columns = machine.columns
    used = set(columns.feature[np.unique(machine.selection)].tolist())
    if columns.accepted is not None:
        used |= set(range(columns.n_features))
    return sorted(used)


def feature_stage(machine: DecisionMachine, dialect: Dialect, names: list[str]) -> dict[int, str]:
    """feature → the expression that reads it: NULL where missing, labels as they are."""
    columns = machine.columns
    found = {}
    for feature in used_features(machine):
        name = dialect.identifier(names[feature])
        labels = labels_known(machine, feature)
        if labels is not None and any(isinstance(v, str) for v in labels):
            found[feature] = name
            continue
        text = dialect.no_nan(dialect.as_double(name))
        if not np.isnan(columns.missing_value):
            missing = double_range(columns.missing_value, columns.missing_value, columns.dtype)
            text = f"CASE WHEN {_between(dialect, text, *missing)} THEN NULL ELSE {text} END"
        if feature in columns.edges:
            text = _range(dialect, text, columns.edges[feature])
        found[feature] = text
    return found


def _range(dialect: Dialect, text: str, edges: tuple[float, ...]) -> str:
    """The number of the range that a number lies in."""
    whens = "".join(
        f" WHEN {text} <= {dialect.number(bound)} THEN {dialect.number(i)}"
        for i, bound in enumerate(edges)
    )
    return f"CASE WHEN {text} IS NULL THEN NULL{whens} ELSE {dialect.number(len(edges))} END"


def refusals(machine: DecisionMachine, dialect: Dialect) -> list[str]:
    """Conditions under which the source gives an error; the answer is NULL then."""
    columns, found = machine.columns, []
    for feature in used_features(machine):
        labels = labels_known(machine, feature)
        if labels and columns.refuses_new_labels:
            known = ", ".join(_literal(dialect, v) for v in labels if v is not None)
            found.append(f"f{feature} NOT IN ({known})")
    accepted = columns.accepted
    if accepted is None:
        return found
    for feature in range(columns.n_features):
        labels = labels_known(machine, feature)
        if not accepted.missing[feature]:
            found.append(f"f{feature} IS NULL")
        for code in accepted.refused.get(feature, ()):
            if labels is None:
                found.append(f"f{feature} = {dialect.number(code)}")
            elif code < 0:
                known = ", ".join(_literal(dialect, v) for v in labels if v is not None)
                found.append(f"f{feature} NOT IN ({known})")
            else:
                found.append(f"f{feature} = {_literal(dialect, labels[code])}")
        if labels is None and feature not in columns.edges:
            low, high = accepted.low[feature], accepted.high[feature]
            if low > -np.inf:
                found.append(f"f{feature} < {dialect.number(low)}")
            if high < np.inf:
                found.append(f"f{feature} > {dialect.number(high)}")
    return found


def _literal(dialect: Dialect, label: Any) -> str:
    return dialect.text(label) if isinstance(label, str) else dialect.number(float(label))


def sides(machine: DecisionMachine, dialect: Dialect, test: int, t: float) -> tuple[str, bool]:
    """A condition, and whether a row for which it holds goes left; NULL is a no.

    Parameters
    ----------
    t
        The test's threshold, for x in float64.
    """
    columns = machine.columns
    column = int(machine.selection[test])
    rule, missing_left = Rule(int(columns.rule[column])), bool(machine.missing[test] < 0)
    if rule == Rule.MEMBER:
        return _member(machine, dialect, column, test)
    text, bound = reader(machine, dialect, column), dialect.number(t)
    missing_left = missing_left and rule != Rule.NAN_AS_ZERO
    return (f"{text} > {bound}", False) if missing_left else (f"{text} <= {bound}", True)


def reader(machine: DecisionMachine, dialect: Dialect, column: int) -> str:
    """The number that tests of a column read; NULL where it is missing."""
    text = f"f{machine.columns.feature[column]}"
    rule = Rule(int(machine.columns.rule[column]))
    if rule == Rule.NAN_AS_ZERO:
        return f"COALESCE({text}, {dialect.number(0.0)})"
    if rule == Rule.ZERO_AS_NAN:
        near = _between(dialect, text, *double_range(-ZERO, ZERO, machine.columns.dtype))
        return f"CASE WHEN {near} THEN NULL ELSE {text} END"
    return text


def _member(machine: DecisionMachine, dialect: Dialect, column: int, test: int) -> tuple[str, bool]:
    """A test of a set: which labels, or codes, go the way that others do not."""
    columns, sets = machine.columns, machine.columns.sets
    assert sets is not None
    feature = int(columns.feature[column])
    members, answers, outside = columns.members(column)
    missing = int(machine.missing[test])
    # z = 1 is right of a threshold between 0 and 1; elsewhere both go one way.
    t = float(machine.t[test])
    turn = {-1: -1 if t >= 0 else 1, 0: missing, 1: -1 if t >= 1 else 1}
    side = {int(c): turn[int(a)] for c, a in zip(members, answers, strict=True)}
    away = turn[outside]
    labels = labels_known(machine, feature)
    others = [c for c, answer in side.items() if answer != away]
    text = f"f{feature}"
    if labels is None:
        parts = [
            _between(dialect, text, *numbers)
            for c in others
            if (numbers := _numbers_of(c, columns.dtype, sets)) is not None
        ]
    else:
        known = [labels[c] for c in others if c < len(labels) and labels[c] is not None]
        listed = ", ".join(_literal(dialect, label) for label in known)
        parts = [f"{text} IN ({listed})"] if known else []
    if missing != away:
        parts.append(f"f{feature} IS NULL")
    condition = " OR ".join(parts) or "1 = 0"
    return condition, away > 0


def _numbers_of(
    category: int, dtype: np.dtype[Any], sets: CategorySets
) -> tuple[float, float] | None:
    """The least and the largest number that stands for a category; None where there is none."""
    one, limit = dtype.type(category), dtype.type(np.inf)
    low = one if one >= category else np.nextafter(one, limit)
    above = dtype.type(category + 1)
    high = np.nextafter(above, -limit) if above >= category + 1 else above
    if sets.whole:
        high = low
    elif category == 0 and sets.negative_fractions:
        low = np.nextafter(dtype.type(-1), limit)
    is_there = category <= low < category + 1 or low < 0
    return double_range(float(low), float(high), dtype) if is_there else None


def _between(dialect: Dialect, text: str, low: float, high: float) -> str:
    if low == high:
        return f"{text} = {dialect.number(low)}"
    return f"{text} BETWEEN {dialect.number(low)} AND {dialect.number(high)}"
