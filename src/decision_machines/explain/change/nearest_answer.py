"""The nearest input that meets a goal: exactly in one tree, between two bounds in a forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...machine.coded import coded
from ..space.cells import from_bits
from ..space.reach import Reach
from ..space.regions import regions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from ..space.cells import Cells
    from .goals import Goal
    from .moves import Moves

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Nearest:
    """What a search found, and what it proved."""

    row: Float[np.ndarray, "n"] | None
    lower: float
    """No input that meets the goal is nearer than this (in the metric searched by)."""
    exact: bool
    """Whether `row` is proven nearest, or, without a row, that no input meets the goal."""
    boxes: int = 0
    """How many boxes of inputs were looked at."""


def nearest_in_tree(cells: Cells, moves: Moves, goal: Goal, metric: str) -> Nearest:
    """The nearest input in a leaf that meets the goal, over all leaves of one tree."""
    keys, rows = [], []
    for tree in range(cells.machine.n_trees):
        for _, sets in regions(cells, tree):
            found = _nearest_in_sets(cells, moves, sets)
            if found is not None:
                row, changed, distance = found
                keys.append((distance, changed) if metric == "linf" else (changed, distance))
                rows.append(row)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for first in range(0, len(order), ROWS_AT_ONCE):
        some = order[first : first + ROWS_AT_ONCE]
        is_met = goal.met(np.array([rows[i] for i in some]))
        if np.any(is_met):
            best = some[int(np.argmax(is_met))]
            return Nearest(rows[best], keys[best][0], True, len(order))
    return Nearest(None, np.inf, True, len(order))


def _nearest_in_sets(
    cells: Cells, moves: Moves, sets: dict[int, int]
) -> tuple[Float[np.ndarray, "n"], int, float] | None:
    """The nearest input of a leaf, how many features it changes, and how far; None if none may."""
    row = moves.x.copy()
    changed, distance = 0, 0.0
    for feature, bits in sets.items():
        start = int(cells.start[feature])
        if bits >> int(moves.own[feature] - start) & 1:
            continue
        size = len(cells.ends[feature]) + 1
        own = np.where(from_bits(bits, size), moves.distance[start : start + size], np.inf)
        at = int(np.argmin(own))
        if not np.isfinite(own[at]):
            return None
        row[feature] = moves.value[start + at]
        changed, distance = changed + 1, max(distance, float(own[at]))
    return row, changed, distance


class ForestSearch:
    """Search by boxes: bounds rule boxes out, and boxes that they leave are split by a test."""

    def __init__(self, cells: Cells, moves: Moves, goal: Goal, budget: int) -> None:
        self.cells, self.moves, self.goal = cells, moves, goal
        self.reach = Reach(cells)
        self.budget = budget
        self.boxes = 0
        self.start = cells.start[:-1]

    def nearest(self, metric: str) -> Nearest:
        """The nearest input by L∞, or by the number of features changed and then L∞."""
        return self._by_distance() if metric == "linf" else self._by_count()

    # -- by distance ------------------------------------------------------------------------

    def _by_distance(self) -> Nearest:
        row, known = self._first_witness()
        if row is None and known:
            return Nearest(None, np.inf, True, self.boxes)
        row, lower, exact = self._radius(row, len(self.start))
        return Nearest(row, lower, exact, self.boxes)

    def _first_witness(self) -> tuple[Float[np.ndarray, "n"] | None, bool]:
        """Any input that meets the goal, drawn nearer as far as single changes go."""
        status, row = self.decide(self.moves.allowed, len(self.start), self._share(4))
        if row is None:
            return None, status == "none"
        return self.draw_nearer(row), True

    def _radius(
        self, row: Float[np.ndarray, "n"] | None, most_changes: int
    ) -> tuple[Float[np.ndarray, "n"] | None, float, bool]:
        """Bisection over the distances that cells have: (row, certified lower bound, exact)."""
        distance = self.moves.distance
        radii = np.unique(distance[np.isfinite(distance) & (distance > 0)])
        low, high = 0, len(radii)
        if row is not None:
            high = int(np.searchsorted(radii, self.distance(row)))
        is_open = row is None
        while low < high:
            # Small radii are cheap to clear, so the bisection leans to them.
            middle = low + (high - low) // 4
            ball = distance <= radii[middle]
            status, found = self.decide(ball, most_changes, self._share(3))
            if found is not None:
                row = self.draw_nearer(found, most_changes)
                high = int(np.searchsorted(radii, self.distance(row)))
                is_open = False
            elif status == "none":
                low = middle + 1
            else:
                high, is_open = middle, True
        lower = float(radii[low]) if low < len(radii) else float("inf")
        return row, lower, not is_open

    # -- by the number of changes ------------------------------------------------------------

    def _by_count(self) -> Nearest:
        row, known = self._first_witness()
        if row is None and known:
            return Nearest(None, np.inf, True, self.boxes)
        most = len(self.start) if row is None else self.count(row)
        for k in range(1, most + 1):
            status, found = self.decide(self.moves.allowed, k, self._share(2))
            if found is not None:
                row, _, exact = self._radius(self.draw_nearer(found, k), k)
                return Nearest(row, k, exact, self.boxes)
            if status == "unknown":
                return Nearest(row, k, False, self.boxes)
        return Nearest(row, most, False, self.boxes)

    # -- one question: is there an input in this box that meets the goal? ----------------------

    def decide(
        self, box: Bool[np.ndarray, "C"], most_changes: int, budget: int
    ) -> tuple[str, Float[np.ndarray, "n"] | None]:
        """("found", row), ("none", None) or ("unknown", None) for the box and so many changes."""
        stack: list[tuple[float, np.ndarray, int]] = []
        spent = 0

        def look(given: Bool[np.ndarray, "C"]) -> Float[np.ndarray, "n"] | None:
            """Put a box on the stack unless it can be ruled out; the row that settles it."""
            nonlocal spent
            spent += 1
            candidate = self._confine(given, most_changes)
            if candidate is None:
                return None
            at_leaf, _, straddled = self.reach.walk(candidate)
            tops = self.reach.most(at_leaf, self.goal.W)
            upper = self.goal.constant + tops.sum(axis=0) - self.goal.need + self.goal.slack
            worth = [upper[list(way)].min(initial=np.inf) for way in self.goal.ways]
            if not worth or max(worth) < 0:
                return None
            row = self.nearest_row(candidate)
            if self.goal.met(row[None])[0]:
                return row
            way = list(self.goal.ways[int(np.argmax(worth))])
            gap = (tops + self.reach.most(at_leaf, -self.goal.W))[:, way].sum(axis=1)
            test = self.reach.branch(straddled, gap)
            if test is not None:
                stack.append((max(worth), np.packbits(candidate), test))
            return None

        row = self.climb(box, most_changes)
        if row is None:
            row = look(box)
        while stack and row is None and spent < budget:
            _, packed, test = stack.pop()
            here = np.unpackbits(packed, count=len(box)).astype(bool)
            depth = len(stack)
            for part in self.reach.split(here, test):
                row = look(part)
                if row is not None:
                    break
            stack[depth:] = sorted(stack[depth:], key=lambda item: item[0])
        self.boxes += spent
        if row is not None:
            return "found", row
        return ("unknown" if stack else "none"), None

    def _confine(
        self, box: Bool[np.ndarray, "C"], most_changes: int
    ) -> Bool[np.ndarray, "C"] | None:
        """The box with at most so many features changed; None where it is empty."""
        stays = box[self.moves.own]
        if not np.all(np.logical_or.reduceat(box, self.start)):
            return None
        n_changed = int(np.count_nonzero(~stays))
        if n_changed > most_changes:
            return None
        if n_changed == most_changes and most_changes < len(stays):
            owner = np.repeat(stays, np.diff(self.cells.start))
            kept = ~owner
            kept[self.moves.own[stays]] = True
            box = box & kept
        return box

    def nearest_row(self, box: Bool[np.ndarray, "C"]) -> Float[np.ndarray, "n"]:
        """The input of a box that is nearest in every feature."""
        row = self.moves.x.copy()
        for feature in np.flatnonzero(~box[self.moves.own]).tolist():
            at = slice(int(self.cells.start[feature]), int(self.cells.start[feature + 1]))
            own = np.where(box[at], self.moves.distance[at], np.inf)
            row[feature] = self.moves.value[at.start + int(np.argmin(own))]
        return row

    def climb(self, box: Bool[np.ndarray, "C"], most_changes: int) -> Float[np.ndarray, "n"] | None:
        """A row of the box that meets the goal, by the best single change again and again."""
        if not self.goal.ways or not np.all(np.logical_or.reduceat(box, self.start)):
            return None
        row = self.nearest_row(box)
        cells = np.flatnonzero(box)
        feature = np.searchsorted(self.cells.start, cells, side="right") - 1
        movable = np.bincount(feature, minlength=len(self.start))[feature] > 1
        cells, feature = cells[movable][:ROWS_AT_ONCE], feature[movable][:ROWS_AT_ONCE]
        worth = float(self.worth(row[None])[0])
        for _ in range(min(3 * len(self.start), 60)):
            if self.goal.met(row[None])[0]:
                return row
            changed = self.places(row) != self.moves.own
            open_ = np.ones(len(cells), bool)
            if np.count_nonzero(changed) >= most_changes:
                open_ = changed[feature]
            if not np.any(open_):
                return None
            rows = np.repeat(row[None], np.count_nonzero(open_), axis=0)
            rows[np.arange(len(rows)), feature[open_]] = self.moves.value[cells[open_]]
            found = self.worth(rows)
            best = int(np.argmax(found))
            if not found[best] > worth:
                return None
            row, worth = rows[best], float(found[best])
        return None

    def worth(self, rows: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m"]:
        """How far rows are from meeting the goal: below 0 where they do not, rounding apart."""
        leaf = coded(self.goal.machine).apply(rows, n_threads=1) + self.reach.leaf_start
        found = self.goal.W[leaf].sum(axis=1) + self.goal.constant - self.goal.need
        ways = [found[:, list(way)].min(axis=1, initial=np.inf) for way in self.goal.ways]
        return np.asarray(np.max(ways, axis=0))

    # -- local improvement ---------------------------------------------------------------------

    def draw_nearer(
        self, row: Float[np.ndarray, "n"], most_changes: int | None = None
    ) -> Float[np.ndarray, "n"]:
        """A row that still meets the goal, each feature moved back as far as it goes alone."""
        for _ in range(4):
            before = row.copy()
            place = self.places(row)
            far = self.moves.distance[place]
            for feature in np.argsort(-far, kind="stable").tolist():
                if far[feature] == 0:
                    break
                at = slice(int(self.cells.start[feature]), int(self.cells.start[feature + 1]))
                nearer = np.flatnonzero(self.moves.distance[at] < far[feature])
                nearer = nearer[np.argsort(self.moves.distance[at][nearer], kind="stable")]
                if not len(nearer):
                    continue
                rows = np.repeat(row[None], len(nearer), axis=0)
                rows[:, feature] = self.moves.value[at][nearer]
                is_met = self.goal.met(rows)
                if np.any(is_met):
                    row = rows[int(np.argmax(is_met))]
            if np.array_equal(row, before, equal_nan=True):
                break
        return row

    def places(self, row: Float[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        """The cell of every feature of a row, among all cells."""
        stays = (row == self.moves.x) | (np.isnan(row) & np.isnan(self.moves.x))
        return np.array(
            [
                own if is_own else int(self.cells.start[f]) + int(self.cells.cell(f, row[f]))
                for f, (own, is_own) in enumerate(zip(self.moves.own, stays, strict=True))
            ]
        )

    def distance(self, row: Float[np.ndarray, "n"]) -> float:
        return float(self.moves.distance[self.places(row)].max(initial=0.0))

    def count(self, row: Float[np.ndarray, "n"]) -> int:
        return int(np.count_nonzero(self.places(row) != self.moves.own))

    def _share(self, parts: int) -> int:
        """Boxes for the next question: a part of those that are left."""
        return max((self.budget - self.boxes) // parts, 32)
