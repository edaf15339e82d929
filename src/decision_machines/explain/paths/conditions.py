"""What one path asks of one feature, its tests merged, in values and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...machine import Rule
from ...machine.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...machine import Columns, DecisionMachine

MOST_LABELS = 12


@dataclass(frozen=True)
class Condition:
    """A range of one feature's values, or a set of its categories, with or without NaN."""

    feature: int | None
    """None for an oblique test, which reads several."""
    text: str
    lower: float | None = None
    """Exclusive; None where the path does not bound it."""
    upper: float | None = None
    """Inclusive; None where the path does not bound it."""
    categories: tuple | None = None
    """Labels (codes, where the model keeps no labels) that pass, or that do not, by `excludes`."""
    excludes: bool = False
    missing: bool = False
    """Whether a missing value passes."""
    tests: tuple[int, ...] = ()
    """The tests merged here, counted over all trees."""

    def __str__(self) -> str:
        return self.text


def conditions(
    machine: DecisionMachine, tests: Sequence[int], sides: Sequence[int]
) -> tuple[Condition, ...]:
    """The conditions of a path through these tests on these sides (-1 left, +1 right).

    In the order in which the path first asks for each feature; all tests of a feature that read
    numbers are one interval for each column, all that look categories up one set.
    """
    if machine.is_oblique:
        return tuple(_oblique(machine, j, side) for j, side in zip(tests, sides, strict=True))
    columns = machine.columns
    groups: dict[tuple, list[tuple[int, int]]] = {}
    for j, side in zip(tests, sides, strict=True):
        column = int(machine.selection[j])
        feature = int(columns.feature[column])
        is_member = columns.rule[column] == Rule.MEMBER
        groups.setdefault((feature, -1 if is_member else column), []).append((j, side))
    return tuple(
        (_member if column < 0 else _interval)(machine, asked)
        for (_, column), asked in groups.items()
    )


def _interval(machine: DecisionMachine, asked: list[tuple[int, int]]) -> Condition:
    column = int(machine.selection[asked[0][0]])
    rule = machine.columns.rule[column]
    lower = max((float(machine.t[j]) for j, side in asked if side > 0), default=None)
    upper = min((float(machine.t[j]) for j, side in asked if side < 0), default=None)
    missing = all(machine.missing[j] == side for j, side in asked)
    if rule == Rule.NAN_AS_ZERO:
        missing = (lower is None or lower < 0) and (upper is None or upper >= 0)
    name = machine.columns.name(column)
    nan = "zero or missing" if rule == Rule.ZERO_AS_NAN else "missing"
    if lower is not None and upper is not None:
        text = f"{number(lower)} < {name} ≤ {number(upper)}"
        if lower >= upper:
            text = f"{name} is {nan}" if missing else f"{text} (never)"
            missing_text = ""
        else:
            missing_text = f" or {nan}" if missing else ""
    else:
        text = f"{name} ≤ {number(upper)}" if lower is None else f"{name} > {number(lower)}"  # type: ignore[arg-type]
        missing_text = f" or {nan}" if missing else ""
    return Condition(
        int(machine.columns.feature[column]),
        text + missing_text,
        lower,
        upper,
        missing=missing,
        tests=tuple(j for j, _ in asked),
    )


def _member(machine: DecisionMachine, asked: list[tuple[int, int]]) -> Condition:
    """Tests on categories of one feature: the categories that pass them all."""
    columns = machine.columns
    codes: set[int] = set()
    parts = []
    for j, side in asked:
        members, answer, outside = columns.members(int(machine.selection[j]))
        answers = dict(zip(members.tolist(), answer.tolist(), strict=True))
        codes |= set(answers)
        parts.append((j, side, answers, outside))

    def passes(code: int | None) -> bool:
        for j, side, answers, outside in parts:
            answer = outside if code is None else answers.get(code, outside)
            # z is 0, 1 or NaN; a test stands between 0 and 1, or sends both one way.
            if answer == 0:
                found = int(machine.missing[j])
            else:
                found = -1 if (0.0 if answer < 0 else 1.0) <= machine.t[j] else 1
            if found != side:
                return False
        return True

    others = passes(None)
    listed = tuple(k for k in sorted(codes) if passes(k) != others)
    missing = all(machine.missing[j] == side for j, side, _, _ in parts)
    feature = int(columns.feature[machine.selection[asked[0][0]]])
    labels = tuple(label(columns, feature, k) for k in listed)
    shown = ", ".join(str(k) for k in labels[:MOST_LABELS])
    more = f", … {len(labels)} in all" if len(labels) > MOST_LABELS else ""
    name = columns.name(int(machine.selection[asked[0][0]]))
    text = f"{name} {'not in' if others else 'in'} {{{shown}{more}}}"
    if not labels:
        text = f"{name} is any category" if others else f"{name} is missing"
    if missing and (labels or others):
        text += " or missing"
    if not missing and not labels and not others:
        text = f"{name} in {{}} (never)"
    return Condition(
        feature,
        text,
        categories=labels,
        excludes=others,
        missing=missing,
        tests=tuple(j for j, _ in asked),
    )


def _oblique(machine: DecisionMachine, j: int, side: int) -> Condition:
    row = machine.S[[j]]
    terms = [
        f"{number(w)}·{machine.columns.name(int(c))}"
        for w, c in zip(row.data, row.indices, strict=True)
    ]
    weighted = (" + ".join(terms) or "0").replace("+ -", "− ")
    t = float(machine.t[j])
    missing = bool(machine.missing[j] == side)
    text = f"{weighted} {'≤' if side < 0 else '>'} {number(t)}"
    return Condition(
        None,
        text + (" or missing" if missing else ""),
        None if side < 0 else t,
        t if side < 0 else None,
        missing=missing,
        tests=(j,),
    )


def label(columns: Columns, feature: int, code: int):
    """What a category is called, where the model keeps its label; else its code."""
    labels = labels_of(columns, feature)
    return code if labels is None or not 0 <= code < len(labels) else labels[code]


def labels_of(columns: Columns, feature: int) -> tuple | None:
    """The labels of a feature's categories, by code; None where the model does not keep them."""
    if columns.label_hash:
        return None
    if feature in columns.categories:
        return columns.categories[feature]
    if columns.table_categories is None:
        return None
    # Labels by the order of categorical columns: theirs, if all of them are looked up somewhere.
    looked_up = np.unique(columns.feature[columns.rule == Rule.MEMBER]).tolist()
    if feature not in looked_up or len(looked_up) != len(columns.table_categories):
        return None
    return columns.table_categories[looked_up.index(feature)]
