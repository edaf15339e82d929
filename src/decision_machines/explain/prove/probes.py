"""Inputs that reach every test of a tree and stand on both sides of its boundary.

A test reads one feature, so it is known everywhere once it is known at its boundary: at the
threshold, at the next value above, at NaN, at every category in its set and at some outside. A test
of a statistic is known once it is known at every row of its table. The rows built here reach the
test first: all tests above it are answered as its path asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import Rule
from ...machine.columns import ZERO
from .combinations import Combinations

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from ...machine import DecisionMachine

EDGES = (0.0, -0.0, 1e-36, -1e-36, ZERO, -ZERO, 2 * ZERO, -2 * ZERO)
NO_CATEGORY = (-1.0, -0.5, 2.0**24, 2.0**31, 1e30)
ODD_CATEGORY = (0.7,)
"""Fractions added to a member: libraries truncate."""
FEW_CODES = 64
"""A feature of no more codes is probed with all of them at every test."""
Path = list[tuple[int, int]]
"""(test, side) of the tests above that read one feature."""


@dataclass
class Probes:
    """The rows that probe one tree."""

    X: Float[np.ndarray, "p n_features"]
    test: Int[np.ndarray, "p"]
    """The test that each row probes; -1 for the row of a tree without tests."""
    reached: Bool[np.ndarray, "J"]
    """Whether any input reaches each test of the tree."""
    both_sides: Bool[np.ndarray, "J"]
    """Whether inputs that reach the test leave it on both sides."""
    unknown: Bool[np.ndarray, "J"]
    """Tests on labels that the model does not keep, and tests that only such labels reach."""


def probe_tree(
    machine: DecisionMachine,
    tree: int,
    *,
    takes_infinity: bool = True,
    takes_nan: bool = True,
    codes: dict[int, list[float]] | None = None,
    resting: dict[int, float] | None = None,
    combinations: Combinations | None = None,
) -> Probes:
    """Rows that reach every reachable test of one tree, on both sides of its boundary.

    Parameters
    ----------
    takes_infinity, takes_nan
        Whether the model can be given these.
    codes
        For features that the machine knows by labels: the codes (positions of labels, -1 for one
        of no training row, NaN for none) that the model can be asked about.
    resting
        Numbers of features that the model refuses 0 for: one that it takes.
    combinations
        What `Combinations(machine, codes)` gives, kept from one tree to the next.
    """
    if machine.is_oblique:
        raise UnsupportedModelError(
            "probing a machine",
            "its tests are oblique",
            "certify machines whose tests read one column",
        )
    codes = codes or {}
    combinations = combinations or Combinations(machine, codes)
    walker = _Walker(machine, tree, takes_infinity, takes_nan, codes, combinations, resting or {})
    walker.walk()
    n = machine.n_features
    X = np.array(walker.rows).reshape(-1, n)
    return Probes(
        X, np.array(walker.tests, int), walker.reached, walker.both_sides, walker.unknown()
    )


@dataclass
class _Walker:
    machine: DecisionMachine
    tree: int
    takes_infinity: bool
    takes_nan: bool
    codes: dict[int, list[float]]
    combinations: Combinations
    resting: dict[int, float] = field(default_factory=dict)
    rows: list[list[float]] = field(default_factory=list)
    tests: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        m = self.machine
        tests = m.trees.tests(self.tree)
        self.first = tests.start
        n_tests = tests.stop - tests.start
        self.reached = np.zeros(n_tests, bool)
        self.both_sides = np.zeros(n_tests, bool)
        self.is_float32 = m.columns.dtype == np.float32
        column = m.selection[tests]
        self.column = column.tolist()
        self.feature = m.columns.feature[column].tolist()
        self.rule = m.columns.rule[column].tolist()
        self.look_up = {
            j: m.columns.look_up(c)
            for j, (c, rule) in enumerate(zip(self.column, self.rule, strict=True))
            if rule == Rule.LOOK_UP
        }
        """test → the table and the statistic that it asks for."""
        t = m.t[tests]
        inf = np.array(np.inf, t.dtype)
        self.t = t.astype(float).tolist()
        with np.errstate(over="ignore", under="ignore"):
            self.above = np.nextafter(t, inf).astype(float).tolist()
            self.below = np.nextafter(t, -inf).astype(float).tolist()
        self.missing = m.missing[tests].tolist()
        self.children = m.children[tests].tolist()
        self.sets = _set_tables(m)

    def walk(self) -> None:
        """Down the tree with a row that reaches the present test and the answers given above it."""
        start = [
            self.codes[feature][0] if self.codes.get(feature) else self.resting.get(feature, 0.0)
            for feature in range(self.machine.n_features)
        ]
        if not self.children:
            self.rows.append(start)
            self.tests.append(-1)
            return
        stack: list[tuple[int, list[float], Path]] = [(0, start, [])]
        while stack:
            j, row, path = stack.pop()
            self.reached[j] = True
            seen: dict[int, list[float] | None] = {-1: None, 1: None}
            for probe in [row, *self._probes(j, row)]:
                if not self._reaches(path, probe):
                    continue
                side = self.answer(j, probe)
                if seen[side] is None:
                    seen[side] = probe
                self.rows.append(probe)
                self.tests.append(self.first + j)
            # The rest of the way to a child may need a value from another test above.
            for side in (-1, 1):
                if seen[side] is None:
                    seen[side] = self._search(path, row, j, side)
            self.both_sides[j] = seen[-1] is not None and seen[1] is not None
            for side, child in zip((-1, 1), self.children[j], strict=True):
                below = seen[side]
                if child >= 0 and below is not None:
                    stack.append((child - self.first, below, [*path, (j, side)]))

    def _probes(self, j: int, row: list[float]) -> list[list[float]]:
        """The row with other values of what test j reads."""
        if j in self.look_up:
            features, given, _ = self.combinations.of(self.look_up[j][0])
        else:
            features, given = (self.feature[j],), [(x,) for x in self.probe_values(j)]
        found = []
        for values in given:
            probe = list(row)
            for feature, x in zip(features, values, strict=True):
                probe[feature] = x
            found.append(probe)
        return found

    def unknown(self) -> np.ndarray:
        """Tests whose sets hold codes that cannot be asked about, and what they cut off."""
        found = np.zeros(len(self.children), bool)
        for j, feature in enumerate(self.feature):
            if feature in self.codes and self.rule[j] == Rule.MEMBER:
                members = self.sets[self.column[j]].members
                found[j] |= not set(members) <= set(self.codes[feature])
            elif j in self.look_up:
                found[j] |= not self.combinations.of(self.look_up[j][0]).is_whole
            for child in self.children[j]:
                if child >= 0 and found[j] and not self.reached[child - self.first]:
                    found[child - self.first] = True
        if self.look_up:
            # Combinations are tried one at a time: what was not reached so may yet be reached.
            found |= ~self.reached
        return found

    def _reaches(self, path: Path, row: list[float]) -> bool:
        return all(self.answer(j, row) == side for j, side in path)

    def _search(self, path: Path, row: list[float], j: int, side: int) -> list[float] | None:
        """A row that passes the tests above and leaves test j on this side."""
        read = self._read(j)
        for above, _ in path:
            if not read.isdisjoint(self._read(above)):
                for probe in self._probes(above, row):
                    if self.answer(j, probe) == side and self._reaches(path, probe):
                        return probe
        return None

    def _read(self, j: int) -> set[int]:
        """The features that test j reads."""
        if j in self.look_up:
            return set(self.combinations.of(self.look_up[j][0]).features)
        return {self.feature[j]}

    def answer(self, j: int, row: list[float]) -> int:
        """Test j's answer to a row, by the rules of the columns."""
        if j in self.look_up:
            x = self.combinations.statistic(*self.look_up[j], row)
            return -1 if x <= self.t[j] else 1
        x = row[self.feature[j]]
        if self.is_float32:
            with np.errstate(over="ignore"):
                x = float(np.float32(x))
        rule = self.rule[j]
        if x == self.machine.columns.missing_value:
            x = float("nan")
        if rule == Rule.NAN_AS_ZERO and x != x:
            x = 0.0
        elif rule == Rule.ZERO_AS_NAN and abs(x) <= ZERO:
            x = float("nan")
        elif rule == Rule.MEMBER:
            x = self.sets[self.column[j]](x)
        if x != x:
            return int(self.missing[j])
        return -1 if x <= self.t[j] else 1

    def probe_values(self, j: int) -> list[float]:
        """What test j is probed with, among the values that the model can be given."""
        values = self._values(j)
        if self.feature[j] in self.codes:
            codes = self.codes[self.feature[j]]
            values = [x for x in values if x in codes] + [x for x in codes if not x >= 0]
            if len(codes) <= FEW_CODES:
                values += [x for x in codes if x >= 0 and x not in values]
        if not self.takes_nan:
            values = [x for x in values if x == x]
        return values if self.takes_infinity else [x for x in values if not np.isinf(x)]

    def _values(self, j: int) -> list[float]:
        """Both sides of test j's boundary and everything that libraries treat specially."""
        if self.rule[j] == Rule.MEMBER:
            members = self.sets[self.column[j]].members
            whole = [float(k) for k in members]
            outside = [float(k + 1) for k in members[-1:]] or [0.0]
            gap = next((k for k in range(len(members) + 1) if k not in members), 0)
            odd = [k + part for k in whole[:1] for part in ODD_CATEGORY]
            return [*whole, *outside, float(gap), *odd, *NO_CATEGORY, float("nan")]
        t, above, below = self.t[j], self.above[j], self.below[j]
        values = [t, above, below, float("nan"), *EDGES]
        if self.is_float32 and np.isfinite(above) and np.isfinite(t):
            values += [t + 0.25 * (above - t), t + 0.75 * (above - t)]
        return [*values, float("inf"), float("-inf")]


class _SetTable:
    """One member column as a look-up: 0, 1 or NaN for a value."""

    def __init__(self, machine: DecisionMachine, which: int) -> None:
        sets = machine.columns.sets
        assert sets is not None
        span = slice(int(sets.start[which]), int(sets.start[which + 1]))
        self.members = sets.members[span].tolist()
        self.answers = dict(zip(self.members, sets.answer[span].tolist(), strict=True))
        self.outside = int(sets.outside[which])
        self.lowest = -1.0 if sets.negative_fractions else 0.0
        self.whole = sets.whole

    def __call__(self, x: float) -> float:
        if x != x:
            return x
        is_category = (x > self.lowest or x == 0.0) and x < 2.0**31
        is_category = is_category and not (self.whole and x != int(x))
        answer = self.answers.get(int(x), self.outside) if is_category else self.outside
        return {-1: 0.0, 1: 1.0, 0: float("nan")}[answer]


def _set_tables(machine: DecisionMachine) -> dict[int, _SetTable]:
    members = np.flatnonzero(machine.columns.rule == Rule.MEMBER)
    return {int(column): _SetTable(machine, i) for i, column in enumerate(members)}
