"""What a path asks of the inputs: its tests merged for each feature, in values and in words.

The words are true of every value that a column's dtype can hold, read as the machine reads it:
"x < 30" is printed where 30 itself goes right, "or missing" where NaN passes too, and "zero" stands
for what LightGBM takes for zero, numbers within 1e-35 of it. The explorer page writes single tests
in the same words (`show/page/words.js`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import ZERO, Rule
from .digits import boundary, digits, few_digits, next_above
from .label_words import FEW_LABELS, label, set_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .columns import Columns
    from .machine import DecisionMachine

FEW_TERMS = 4
"""Terms of a weighted sum that are written where there is little room."""


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
    categories: tuple[Any, ...] | None = None
    """Labels (codes, where the model keeps no labels) that pass, or that do not, by `excludes`."""
    excludes: bool = False
    missing: bool = False
    """Whether a missing value passes."""
    tests: tuple[int, ...] = ()
    """The tests merged here, counted over all trees."""
    has_or: bool = False
    """Whether the text names several ways to pass, and needs brackets beside others."""

    def __str__(self) -> str:
        return self.text


def conditions(
    machine: DecisionMachine,
    tests: Sequence[int],
    sides: Sequence[int],
    *,
    whole: Collection[int] = (),
    brief: bool = False,
) -> tuple[Condition, ...]:
    """The conditions of a path through these tests on these sides (-1 left, +1 right).

    In the order in which the path first asks for each feature; all tests of a feature that read
    numbers are one interval for each column, all that look categories up one set.

    Parameters
    ----------
    whole
        Features that are known to be whole numbers: their bounds are whole too.
    brief
        Whether long sets and sums are cut, which their text then says.
    """
    if machine.is_oblique:
        return tuple(
            _oblique(machine, j, side, brief) for j, side in zip(tests, sides, strict=True)
        )
    columns = machine.columns
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for j, side in zip(tests, sides, strict=True):
        column = int(machine.selection[j])
        feature = int(columns.feature[column])
        is_member = columns.rule[column] == Rule.MEMBER
        groups.setdefault((feature, -1 if is_member else column), []).append((j, side))
    return tuple(
        _members(machine, asked, brief)
        if column < 0
        else _interval(machine, asked, is_whole=feature in whole)
        for (feature, column), asked in groups.items()
    )


def _interval(
    machine: DecisionMachine, asked: list[tuple[int, int]], *, is_whole: bool
) -> Condition:
    """Tests that compare one column with thresholds: the numbers that pass them all."""
    columns = machine.columns
    column = int(machine.selection[asked[0][0]])
    lower = max((float(machine.t[j]) for j, side in asked if side > 0), default=None)
    upper = min((float(machine.t[j]) for j, side in asked if side < 0), default=None)
    missing = all(machine.missing[j] == side for j, side in asked)
    if columns.rule[column] == Rule.NAN_AS_ZERO:
        missing = (lower is None or lower < 0) and (upper is None or upper >= 0)
    elif columns.rule[column] == Rule.LOOK_UP:
        missing = False  # a table has a statistic for every row
    text, has_or = _words_of_numbers(columns, column, lower, upper, missing, is_whole)
    feature, tests = int(columns.feature[column]), tuple(j for j, _ in asked)
    return Condition(feature, text, lower, upper, missing=missing, tests=tests, has_or=has_or)


def _words_of_numbers(
    columns: Columns,
    column: int,
    lower: float | None,
    upper: float | None,
    missing: bool,
    is_whole: bool,
) -> tuple[str, bool]:
    """Which numbers pass in words, and whether there is an "or" in them."""
    name, dtype = columns.name(column), columns.dtype
    ways, refused = [], []
    if columns.rule[column] == Rule.ZERO_AS_NAN:
        lower, upper, zero = _around_zero(lower, upper, missing, dtype)
        ways += ["zero"] if zero and missing else []
        refused += [f"{name} is not zero"] if zero and not missing else []
    is_missing = float(dtype.type(columns.missing_value))
    passes = (lower is None or is_missing > lower) and (upper is None or is_missing <= upper)
    if is_missing == is_missing and passes != missing:
        means_missing = _exactly(is_missing)
        if missing:
            ways.append(means_missing)
        else:
            refused.append(f"{name} ≠ {means_missing}")
    ways += ["missing"] if missing else []
    if is_empty(lower, upper):
        if ways:
            return f"{name} is {' or '.join(ways)}", len(ways) > 1
        return f"{words_of_interval(name, lower, upper, dtype)} (never)", False
    if ways == ["missing"] and lower is None and (upper is None or upper == np.inf):
        return f"{name} is anything", False
    between = words_of_interval(name, lower, upper, dtype, whole=is_whole)
    said = " and ".join([between, *refused])
    named = [f"{name} = {way}" if way not in ("zero", "missing") else way for way in ways]
    return " or ".join([said, *named]), bool(named)


def _around_zero(
    lower: float | None, upper: float | None, missing: bool, dtype: np.dtype
) -> tuple[float | None, float | None, bool]:
    """The interval where numbers near zero are missing, and whether zero must be named besides.

    Then it passes though it lies outside, or it does not though it lies inside.
    """
    below = float(np.nextafter(dtype.type(-ZERO), dtype.type(-np.inf)))  # the last before zero
    has_below = lower is None or lower < below
    has_above = upper is None or upper > ZERO
    if missing:
        touches = (lower is None or lower <= ZERO) and (upper is None or upper >= below)
        if not touches or is_empty(lower, upper):
            return lower, upper, True
        return (lower if has_below else below), (upper if has_above else ZERO), False
    overlaps = (lower is None or lower < ZERO) and (upper is None or upper > below)
    if not overlaps or is_empty(lower, upper):
        return lower, upper, False
    if has_below and has_above:
        return lower, upper, True
    if has_below or has_above:
        return (lower, below, False) if has_below else (ZERO, upper, False)
    return np.inf, np.inf, False  # nothing but numbers near zero


def _exactly(x: float) -> str:
    """All digits of a number that others are compared with, so that a float64 reads the same."""
    return digits(x, np.dtype(np.float64))


def is_empty(lower: float | None, upper: float | None) -> bool:
    """Whether no number is above `lower` and not above `upper`."""
    return lower is not None and (lower == np.inf or (upper is not None and lower >= upper))


def words_of_interval(
    name: str, lower: float | None, upper: float | None, dtype: np.dtype, *, whole: bool = False
) -> str:
    """The numbers above `lower` and not above `upper`, each None where there is no such end.

    Examples
    --------
    >>> words_of_interval("age", 29.999998, 40.0, np.dtype(np.float32))
    '30 ≤ age ≤ 40'
    >>> words_of_interval("age", None, np.inf, np.dtype(np.float32))
    'age is present'
    """
    if upper is None or upper == np.inf:
        if lower is None:
            return f"{name} is present"
        return f"{name} {boundary(lower, dtype, whole=whole).above}"
    high = boundary(upper, dtype, whole=whole)
    if lower is None:
        return f"{name} {high.below}"
    if next_above(lower, dtype == np.float32) == upper and float(digits(upper, dtype)) == upper:
        return f"{name} = {digits(upper, dtype)}"
    low = boundary(lower, dtype, whole=whole)
    return f"{low.number} {'<' if low.is_left else '≤'} {name} {high.below}"


def _members(machine: DecisionMachine, asked: list[tuple[int, int]], brief: bool) -> Condition:
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
    # No category is 2**31 or more: there every number is one of the others.
    listed = [k for k in sorted(codes) if k < 2**31 and passes(k) != others]
    missing = all(machine.missing[j] == side for j, side, _, _ in parts)
    column = int(machine.selection[asked[0][0]])
    feature = int(columns.feature[column])
    text, has_or = words_of_categories(
        columns, feature, listed, excludes=others, missing=missing, brief=brief
    )
    return Condition(
        feature,
        text,
        categories=tuple(label(columns, feature, k) for k in listed),
        excludes=others,
        missing=missing,
        tests=tuple(j for j, _ in asked),
        has_or=has_or,
    )


def words_of_categories(
    columns: Columns,
    feature: int,
    codes: Sequence[int],
    *,
    excludes: bool,
    missing: bool,
    brief: bool = False,
) -> tuple[str, bool]:
    """A set of categories (of all others, if it `excludes`) in words, and whether they say "or"."""
    name = columns.feature_name(feature)
    named = set_text(columns, feature, codes, most=FEW_LABELS if brief else None)
    is_missing = float(columns.dtype.type(columns.missing_value))
    ways, refused = [], ""
    if is_missing == is_missing:
        assert columns.sets is not None
        if ((columns.sets.category(is_missing) in codes) != excludes) != missing:
            value = _exactly(is_missing)
            ways += [value] if missing else []
            refused = "" if missing else f" and {name} ≠ {value}"
    ways += ["missing"] if missing else []
    if not codes and not excludes:
        if not ways:
            return f"{name} in {{}} (never)", False
        return f"{name} is {' or '.join(ways)}", len(ways) > 1
    if not codes and ways == ["missing"]:
        return f"{name} is anything", False
    said = f"{name} {'not in' if excludes else 'in'} {named}" if codes else f"{name} is present"
    more = [way if way == "missing" else f"{name} = {way}" for way in ways]
    return " or ".join([said + refused, *more]), bool(more)


def _oblique(machine: DecisionMachine, j: int, side: int, brief: bool) -> Condition:
    """A test of a weighted sum of columns."""
    columns, row = machine.columns, machine.S[[j]]
    t = float(machine.t[j])
    missing = bool(machine.missing[j] == side)
    if brief:
        said = _brief_sum(machine.columns, row.indices, row.data, side, t)
    else:
        weights = [digits(abs(w), columns.dtype) for w in row.data.tolist()]
        said = _sum(columns, row.indices, row.data, weights, brief=False)
        found = boundary(t, columns.dtype)
        said += f" {found.below if side < 0 else found.above}"
    return Condition(
        None,
        said + (" or missing" if missing else ""),
        None if side < 0 else t,
        t if side < 0 else None,
        missing=missing,
        tests=(j,),
        has_or=missing,
    )


def _brief_sum(
    columns: Columns, which: np.ndarray, weights: np.ndarray, side: int, t: float
) -> str:
    """The largest terms and the threshold in few digits, marked where that is not all."""
    order = np.argsort(-np.abs(weights), kind="stable")[:FEW_TERMS]
    bound, is_exact = few_digits(t)
    few = [few_digits(abs(w)) for w in weights[order].tolist()]
    said = _sum(columns, which[order], weights[order], [text for text, _ in few], brief=True)
    more = f" + … {len(weights)} terms" if len(order) < len(weights) else ""
    mark = "" if is_exact and all(exact for _, exact in few) else "≈ "
    return f"{mark}{said}{more} {'≤' if side < 0 else '>'} {bound}"


def _sum(
    columns: Columns, which: np.ndarray, weights: np.ndarray, sizes: list[str], *, brief: bool
) -> str:
    """A weighted sum of columns, the sizes of the weights given as text."""
    said = ""
    for column, weight, size in zip(which.tolist(), weights.tolist(), sizes, strict=True):
        sign = "-" if weight < 0 else "+"
        said += f" {sign} " if said else sign.strip("+")
        said += f"{size}·{_term(columns, column, brief)}"
    return said or "0"


def _term(columns: Columns, column: int, brief: bool) -> str:
    """What a weight multiplies: a feature, or 1 for some of its categories."""
    name, rule = columns.name(column), columns.rule[column]
    if rule == Rule.MEMBER:
        members, answers, outside = columns.members(column)
        excludes = outside > 0
        feature, codes = int(columns.feature[column]), members[(answers > 0) != excludes].tolist()
        said, _ = words_of_categories(
            columns, feature, codes, excludes=excludes, missing=False, brief=brief
        )
        return f"[{said}]"
    if rule == Rule.NAN_AS_ZERO:
        return f"({name}, missing as 0)"
    return f"({name}, zero as missing)" if rule == Rule.ZERO_AS_NAN else name
