"""The least and the most that a machine can answer over a box of inputs."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, UnsupportedModelError
from ...machine.coded import coded
from ...machine.digits import digits
from ...machine.feature_names import feature_numbers
from ..given import box_of
from .cells import Cells, to_bits
from .reach import Reach
from .regions import regions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from ...machine import DecisionMachine

DOING = "bounding a machine over a box"
ROWS_AT_ONCE = 4096
Found = tuple[np.ndarray, np.ndarray, Any, Any, int]
"""Lower and upper bounds, inputs that come closest, their margins, and the boxes looked at."""


@dataclass(frozen=True, repr=False)
class OutputBounds:
    """Certified bounds on every margin, inputs that come closest, and whether they attain them."""

    lower: Float[np.ndarray, "k"]
    """No input of the box has a margin below this, in the machine's own arithmetic."""
    upper: Float[np.ndarray, "k"]
    least: Float[np.ndarray, "k n"]
    """For each output, an input of the box with the least margin found."""
    most: Float[np.ndarray, "k n"]
    found_lower: Float[np.ndarray, "k"]
    """The margins of `least`."""
    found_upper: Float[np.ndarray, "k"]
    boxes: int

    @property
    def exact(self) -> bool:
        """Whether the bounds are attained, to the bit."""
        return bool(
            np.array_equal(self.lower, self.found_lower)
            and np.array_equal(self.upper, self.found_upper)
        )

    def __repr__(self) -> str:
        parts = []
        for i in range(len(self.lower)):
            ends = (self.lower[i], self.upper[i], self.found_lower[i], self.found_upper[i])
            low, high, least, most = (digits(v, self.lower.dtype) for v in ends)
            text = f"[{low}, {high}]"
            if self.lower[i] != self.found_lower[i] or self.upper[i] != self.found_upper[i]:
                text += f" (found {least} to {most})"
            parts.append(text)
        return f"OutputBounds({', '.join(parts)}{', exact' if self.exact else ''})"


def bounds(
    machine: DecisionMachine,
    lower: Any = None,
    upper: Any = None,
    *,
    missing: Any = (),
    budget: int = 2000,
) -> OutputBounds:
    """See `DecisionMachine.bounds`."""
    if machine.linear is not None:
        raise UnsupportedModelError(
            DOING, "its leaves are linear functions", "use a machine whose leaves are constants"
        )
    if not isinstance(budget, (int, np.integer)) or budget < 1:
        raise InputError(DOING, f"budget={budget!r}", "give a whole number of boxes, at least 1")
    cells = Cells(machine, DOING)
    domain = Domain(cells, lower, upper, missing)
    search = _one_tree if machine.n_trees <= 1 else _forest
    low, high, rows, found, boxes = search(domain, int(budget))
    return OutputBounds(low, high, rows[0], rows[1], found[0], found[1], boxes)


class Domain:
    """A box of inputs: the cells that it touches, and a value inside it for each of them."""

    def __init__(self, cells: Cells, lower: Any, upper: Any, missing: Any) -> None:
        machine = cells.machine
        self.cells = cells
        columns = machine.columns
        low, high, codes = box_of(columns, lower, upper, DOING)
        only_missing = np.isnan(low) & np.isnan(high)
        asked = low, high
        with np.errstate(over="ignore", invalid="ignore"):
            # x is cast before it is tested, and casting keeps the order.
            low, high = (side.astype(cells.dtype).astype(float) for side in (low, high))
        wrong = ~only_missing & ~(low <= high)
        if np.any(wrong):
            f = int(np.argmax(wrong))
            raise InputError(
                DOING,
                f"{columns.feature_name(f)} from {low[f]} to {high[f]}",
                "give lower ≤ upper, or NaN in both for a feature that is missing",
            )
        may_miss = only_missing.copy()
        which = range(machine.n_features) if missing is True else missing
        may_miss[feature_numbers(columns, which, "missing")] = True
        self.mask = np.zeros(cells.n_cells, bool)
        self.value = np.full(cells.n_cells, np.nan)
        for f in range(machine.n_features):
            at = slice(int(cells.start[f]), int(cells.start[f + 1]) - 1)
            if not only_missing[f]:
                a = np.maximum(cells.low(f).astype(float), low[f])
                b = np.minimum(cells.ends[f].astype(float), high[f])
                self.mask[at] = a <= b
                middle = np.where(np.isfinite(b), b, np.where(np.isfinite(a), a, 0.0))
                is_one = ~np.isfinite(a) & ~np.isfinite(b) & (a == b)
                # What was asked for, cast, is the same number.
                self.value[at] = np.clip(np.where(is_one, b, middle), asked[0][f], asked[1][f])
            self.mask[at.stop] = may_miss[f]
            if f in codes:
                own = cells.cell(f, np.array(codes[f], float))
                self.mask[at] = np.isin(np.arange(at.stop - at.start), own)
                self.value[at.start + own] = codes[f]

    def row(self, mask: Bool[np.ndarray, "C"]) -> Float[np.ndarray, "n"]:
        """An input of a part of the box: the first cell of every feature."""
        start = self.cells.start
        at = np.flatnonzero(mask)
        first = at[np.searchsorted(at, start[:-1])]
        return self.value[first]


def margins(machine: DecisionMachine, rows: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
    """The machine's own margins for rows of numbers."""
    return coded(machine).margin(rows, n_threads=1)


def combined(machine: DecisionMachine, values: Float[np.ndarray, "T k"], output: int) -> Any:
    """One margin from one value for each tree, in the machine's own dtype and order.

    Rounded sums rise with every summand, so the largest summands give a bound to the bit.
    """
    out = machine.output
    feeds = machine.trees.feeds
    own = values[:, output] if not machine.is_narrow else values[feeds == output, 0]
    with np.errstate(over="ignore"):
        own = own.astype(out.dtype)
    base = out.base[output]
    if out.aggregate == "sum":
        first = base if out.base_first else out.dtype.type(0)
        total = np.cumsum(np.concatenate([[first], own]), dtype=out.dtype)[-1]
    elif out.aggregate == "median":
        return _median(own, out.weights)
    else:
        total = (np.min if out.aggregate == "min" else np.max)(own)
    if out.divisor != 1.0:
        total = total / out.dtype.type(out.divisor)
    if out.scale != 1.0:
        total = total * out.dtype.type(out.scale)
    return total if out.aggregate == "sum" and out.base_first else total + base


def _median(values: np.ndarray, weights: np.ndarray | None) -> Any:
    order = np.argsort(values, kind="stable")
    share = np.cumsum((np.ones(len(values)) if weights is None else weights)[order])
    return values[order][int(np.argmax(share >= 0.5 * share[-1]))]


def _one_tree(domain: Domain, budget: int) -> Found:
    """Every leaf that the box reaches, by its own input."""
    cells = domain.cells
    m = cells.machine
    rows = [domain.row(domain.mask)]
    if m.n_trees:
        within = {}
        for f in cells.tests:
            at = slice(int(cells.start[f]), int(cells.start[f + 1]))
            within[f] = to_bits(domain.mask[at])
        base = rows[0]
        rows = []
        for _, sets in regions(cells, 0, within):
            row = base.copy()
            for f, bits in sets.items():
                row[f] = domain.value[int(cells.start[f]) + (bits & -bits).bit_length() - 1]
            rows.append(row)
    X = np.array(rows)
    found = np.concatenate(
        [margins(m, X[a : a + ROWS_AT_ONCE]) for a in range(0, len(X), ROWS_AT_ONCE)]
    )
    least, most = found.argmin(axis=0), found.argmax(axis=0)
    k = np.arange(m.n_outputs)
    low, high = found[least, k], found[most, k]
    return low, high, (X[least], X[most]), (low.copy(), high.copy()), len(X)


def _forest(domain: Domain, budget: int) -> Found:
    m = domain.cells.machine
    reach = Reach(domain.cells)
    ends = np.empty((2, m.n_outputs), m.output.dtype)
    found = np.empty((2, m.n_outputs), m.output.dtype)
    rows = np.empty((2, m.n_outputs, m.n_features))
    boxes = 0
    for output in range(m.n_outputs):
        for side, sign in enumerate((-1, 1)):
            share = max(budget // (2 * m.n_outputs), 1)
            search = _Extreme(domain, reach, output, sign, share)
            ends[side, output], found[side, output], rows[side, output] = search.run()
            boxes += search.boxes
    return ends[0], ends[1], rows, found, boxes


class _Extreme:
    """The least (sign -1) or the most (+1) of one output, best box first."""

    def __init__(self, domain: Domain, reach: Reach, output: int, sign: int, budget: int) -> None:
        self.domain, self.reach, self.output, self.budget = domain, reach, output, budget
        self.machine = reach.machine
        self.sign = sign
        # A negative factor turns the sum around.
        self.up = sign * np.sign(self.machine.output.scale / self.machine.output.divisor)
        self.W = self.machine.V.astype(np.float64) * self.up
        self.boxes = 0

    def run(self) -> tuple[Any, Any, np.ndarray]:
        row = self._climb(self.domain.row(self.domain.mask))
        best, best_row = self._value(row[None])[0], row
        start = self._bound(self.domain.mask)
        heap: list[tuple[Any, int, np.ndarray, tuple[Any, int | None]]] = [
            (-self.sign * start[0], 0, np.packbits(self.domain.mask), start)
        ]
        count = 0
        while heap:
            key, _, packed, (bound, test) = heap[0]
            if self.sign * (bound - best) <= 0 or test is None or self.boxes >= self.budget:
                break
            heapq.heappop(heap)
            here = np.unpackbits(packed, count=len(self.domain.mask)).astype(bool)
            for part in self.reach.split(here, test):
                row = self.domain.row(part)
                value = self._value(row[None])[0]
                if self.sign * (value - best) > 0:
                    best, best_row = value, row
                found = self._bound(part)
                if self.sign * (found[0] - best) > 0:
                    count += 1
                    key = -self.sign * float(found[0])
                    heapq.heappush(heap, (key, count, np.packbits(part), found))
        bound = heap[0][3][0] if heap else best
        return (bound if self.sign * (bound - best) > 0 else best), best, best_row

    def _value(self, rows: np.ndarray) -> np.ndarray:
        return margins(self.machine, rows)[:, self.output]

    def _bound(self, mask: np.ndarray) -> tuple[Any, int | None]:
        """The bound of a box, and the test to split it by (None where no test does)."""
        self.boxes += 1
        at_leaf, _, straddled = self.reach.walk(mask)
        tops = self.reach.most(at_leaf, self.W)
        gap = tops + self.reach.most(at_leaf, -self.W)
        own = (
            np.where(self.machine.trees.feeds == self.output, gap[:, 0], 0.0)
            if self.machine.is_narrow
            else gap[:, self.output]
        )
        straddled = straddled & (own[self.machine.trees.of_test] > 0)
        bound = combined(self.machine, (tops * self.up), self.output)
        return bound, self.reach.branch(straddled, own)

    def _climb(self, row: np.ndarray) -> np.ndarray:
        """A better input, by the best single change again and again."""
        cells = np.flatnonzero(self.domain.mask)
        feature = np.searchsorted(self.domain.cells.start, cells, side="right") - 1
        movable = np.bincount(feature, minlength=len(row))[feature] > 1
        cells, feature = cells[movable][:ROWS_AT_ONCE], feature[movable][:ROWS_AT_ONCE]
        value = self._value(row[None])[0]
        for _ in range(60 if len(cells) else 0):
            rows = np.repeat(row[None], len(cells), axis=0)
            rows[np.arange(len(cells)), feature] = self.domain.value[cells]
            found = self._value(rows)
            at = int(np.argmax(self.sign * found))
            if not self.sign * (found[at] - value) > 0:
                break
            row, value = rows[at], found[at]
        return row
