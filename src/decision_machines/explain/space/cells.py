"""Every feature's values cut into cells that no test tells apart.

Questions about *all* inputs (which leaves can be reached, what is the nearest other answer, what
are the bounds over a box) become finite: a test answers the same throughout a cell, so an input is
known once the cell of every feature is. Cells of a feature are intervals in ascending order, each
open below and closed above in the columns' own dtype, and then one cell for NaN.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import CategorySets, Rule
from ...machine.columns import ZERO
from ...machine.look_ups import check_single_features

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from ...machine import Columns, DecisionMachine


class Cells:
    """The cells of a machine's features, and the side on which every test sends each of them.

    Examples
    --------
    >>> import decision_machines as dm
    >>> cells = Cells(dm.figure_one())
    >>> cells.ends[1].tolist()  # x[2] is tested at 2 and at 4
    [2.0, 4.0, inf]
    >>> cells.left(3).tolist()  # x[2] ≤ 2: the first cell; NaN, the last, goes right
    [True, False, False, False]
    """

    def __init__(self, machine: DecisionMachine, doing: str = "explaining a machine") -> None:
        if machine.is_oblique:
            raise UnsupportedModelError(
                doing,
                "its tests are oblique: they weigh several columns, so their regions are not boxes",
                "use a machine whose tests read one column each",
            )
        check_single_features(machine, doing)
        self.machine = machine
        self.dtype = machine.columns.dtype
        columns = machine.columns
        self.feature = columns.feature[machine.selection]
        self.rule = columns.rule[machine.selection]
        used, first = np.unique(np.sort(self.feature), return_index=True)
        by_feature = np.split(np.argsort(self.feature, kind="stable"), first[1:])
        nothing = np.array([np.inf], self.dtype)
        self.ends: list[np.ndarray] = [nothing] * machine.n_features
        self.tests: dict[int, np.ndarray] = {}
        for feature, tests in zip(used.tolist(), by_feature if len(used) else [], strict=True):
            self.tests[feature] = tests
            self.ends[feature] = _ends(machine, tests)
        sizes = np.array([len(ends) + 1 for ends in self.ends], np.int64)
        self.start = np.concatenate([[0], np.cumsum(sizes)])
        """Where each feature's cells start among all cells; its NaN cell is the last of them."""
        is_plain = (self.rule == Rule.VALUE) | (self.rule == Rule.NAN_AS_ZERO)
        self.is_prefix = is_plain & bool(np.isnan(columns.missing_value))
        """(J,) tests whose left side is a run of cells from the lowest one on (NaN apart)."""
        self._bits: dict[int, int] = {}
        """What `left_bits` found, by test."""
        self._z: dict[int, np.ndarray] = {}
        """What `_column` read, by column."""

    @property
    def n_cells(self) -> int:
        return int(self.start[-1])

    @functools.cached_property
    def cut(self) -> np.ndarray:
        """(J,) for tests with `is_prefix`: how many cells of numbers lie left."""
        found = np.zeros(self.machine.n_tests, np.int64)
        for feature, tests in self.tests.items():
            found[tests] = np.searchsorted(self.ends[feature], self.machine.t[tests], side="right")
        return found

    @functools.cached_property
    def nan_goes_left(self) -> Bool[np.ndarray, "J"]:
        """Where each test sends x = NaN, its column's rule applied."""
        m = self.machine
        found = m.missing < 0
        as_zero = self.rule == Rule.NAN_AS_ZERO
        found = np.where(as_zero, m.t >= 0, found)
        return found

    def left(self, test: int) -> Bool[np.ndarray, "c"]:
        """Which cells of its feature a test sends left; the last is NaN."""
        if self.is_prefix[test]:
            n = len(self.ends[self.feature[test]])
            found: np.ndarray = np.arange(n + 1) < self.cut[test]
            found[n] = self.nan_goes_left[test]
            return found
        m = self.machine
        z = self._column(int(m.selection[test]))
        return np.asarray(np.where(np.isnan(z), m.missing[test] < 0, z <= m.t[test]))

    def answers(self, row: Float[np.ndarray, "n"]) -> Int[np.ndarray, "J"]:
        """h: what every test answers to an input, -1 for left and +1 for right."""
        own = np.array([int(self.cell(f, row[f])) for f in range(len(self.ends))], np.int64)
        last = np.array([len(ends) for ends in self.ends], np.int64)
        at = own[self.feature]
        left = np.where(at == last[self.feature], self.nan_goes_left, at < self.cut)
        for j in np.flatnonzero(~self.is_prefix).tolist():
            left[j] = bool(self.left_bits(j) >> int(at[j]) & 1)
        return np.where(left, -1, 1).astype(np.int8)

    def left_bits(self, test: int) -> int:
        """`left` as the bits of one whole number."""
        bits = self._bits.get(test)
        if bits is None:
            if self.is_prefix[test]:
                bits = (1 << int(self.cut[test])) - 1
                if self.nan_goes_left[test]:
                    bits |= 1 << len(self.ends[self.feature[test]])
            else:
                bits = to_bits(self.left(test))
            self._bits[test] = bits
        return bits

    def _column(self, column: int) -> Float[np.ndarray, "c"]:
        """z of a column in every cell of its feature, read as the machine reads it."""
        z = self._z.get(column)
        if z is None:
            ends = self.ends[self.machine.columns.feature[column]]
            x = np.append(ends, self.dtype.type(np.nan))
            z = _one_column(self.machine.columns, column).read(x[:, None])[:, 0]
            self._z[column] = z
        return z

    def all_bits(self, feature: int) -> int:
        """Every cell of a feature, NaN included."""
        return (1 << (len(self.ends[feature]) + 1)) - 1

    def nan_bit(self, feature: int) -> int:
        return 1 << len(self.ends[feature])

    def cell(self, feature: int, x: Any) -> Int[np.ndarray, "..."]:
        """The cell in which each value of a feature lies."""
        x = np.asarray(x, self.dtype)
        ends = self.ends[feature]
        return np.where(np.isnan(x), len(ends), np.searchsorted(ends, x, side="left"))

    def low(self, feature: int) -> Float[np.ndarray, "c"]:
        """The least value of each cell of numbers."""
        ends = self.ends[feature]
        with np.errstate(over="ignore", under="ignore"):
            after = np.nextafter(ends[:-1], self.dtype.type(np.inf))
        return np.concatenate([[self.dtype.type(-np.inf)], after]).astype(self.dtype)

    def representative(self, feature: int, bits: int) -> float:
        """Some value in one of these cells, a finite one wherever there is one."""
        numbers = bits & ~self.nan_bit(feature)
        if not numbers:
            return float("nan")
        ends = self.ends[feature]
        if np.all(self.rule[self.tests[feature]] == Rule.MEMBER):
            category = self._category(feature, numbers)
            if category is not None:
                return category
        at = (numbers & -numbers).bit_length() - 1
        if np.isfinite(ends[at]):
            return float(ends[at])
        low = float(self.low(feature)[at])
        if np.isfinite(low):
            with np.errstate(over="ignore"):
                further = float(self.dtype.type(ends[at - 1] + max(1.0, abs(low))))
            return further if np.isfinite(further) else low
        return 0.0 if ends[at] > 0 and low < 0 else float(ends[at])

    def _category(self, feature: int, numbers: int) -> float | None:
        """The first whole number from 0 on in these cells."""
        low = np.maximum(np.ceil(self.low(feature)), 0)
        inside = from_bits(numbers, len(low)) & (low <= self.ends[feature])
        return float(low[np.argmax(inside)]) if np.any(inside) else None


def to_bits(mask: Bool[np.ndarray, "c"]) -> int:
    """A mask as the bits of one whole number, the first entry lowest."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def from_bits(bits: int, size: int) -> Bool[np.ndarray, "c"]:
    """The mask of so many entries that `to_bits` turned into a number."""
    raw = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), np.uint8)
    return np.unpackbits(raw, count=size, bitorder="little").astype(bool)


def _ends(machine: DecisionMachine, tests: np.ndarray) -> np.ndarray:
    """Upper ends of the cells of one feature, +inf last, from all that its tests can tell apart."""
    columns, dtype = machine.columns, machine.columns.dtype
    own = np.unique(machine.selection[tests])
    rules = columns.rule[own]
    inf = dtype.type(np.inf)
    numeric = np.isin(machine.selection[tests], own[rules != Rule.MEMBER])
    parts = [np.array([inf], dtype), machine.t[tests[numeric]]]
    if np.any(rules == Rule.ZERO_AS_NAN):
        parts.append(np.array([np.nextafter(dtype.type(-ZERO), -inf), ZERO], dtype))
    if not np.isnan(columns.missing_value):
        with np.errstate(over="ignore"):
            value = dtype.type(columns.missing_value)
        parts.append(np.array([np.nextafter(value, -inf), value], dtype))
    for column in own[rules == Rule.MEMBER]:
        parts.append(_category_ends(columns, int(column)))
    return np.unique(np.concatenate(parts))


def _category_ends(columns: Columns, column: int) -> np.ndarray:
    """Ends that set every member of a column's set apart from its neighbours."""
    assert columns.sets is not None
    members = [k for k in columns.members(column)[0].tolist() if k < 2**31]
    edges = [_below(columns.dtype, 0), _below(columns.dtype, 2**31)]
    if columns.sets.negative_fractions:
        edges.append(columns.dtype.type(-1))
    for k in members:
        low = columns.dtype.type(-1) if not k and columns.sets.negative_fractions else None
        edges.append(_below(columns.dtype, k) if low is None else low)
        edges.append(_below(columns.dtype, k + 1))
        if columns.sets.whole:
            edges += [_below(columns.dtype, k), np.nextafter(_below(columns.dtype, k), np.inf)]
    return np.array(edges, columns.dtype)


def _below(dtype: np.dtype[Any], value: int) -> Any:
    """The largest number of a dtype below a whole number."""
    found = dtype.type(value)
    return np.nextafter(found, dtype.type(-np.inf)) if int(found) >= value else found


def _one_column(columns: Columns, column: int) -> Columns:
    """One column as the only column of its only feature."""
    sets = None
    if columns.rule[column] == Rule.MEMBER:
        assert columns.sets is not None
        members, answers, outside = columns.members(column)
        sets = CategorySets(
            np.array([0, len(members)]),
            members,
            answers,
            np.array([outside]),
            columns.sets.negative_fractions,
            columns.sets.whole,
        )
    return replace(
        columns,
        n_features=1,
        feature=np.zeros(1, np.int32),
        rule=columns.rule[column : column + 1],
        names=None,
        sets=sets,
        categories={},
        table_categories=None,
        look_ups=None,
        edges={},
        accepted=None,
    )
