"""Which leaves a box of inputs can reach in every tree of a forest, all trees at once.

A box is one mask over all cells of all features. What a test can answer over the box follows from
counts of its cells; where the path from the root can go, from that. For boxes of intervals without
NaN this is exact in each tree; else it may keep leaves that no input of the box reaches, never lose
one: what is bounded by it is certified.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from .cells import Cells


class Reach:
    """The forest laid out for boxes."""

    def __init__(self, cells: Cells) -> None:
        m = cells.machine
        self.cells, self.machine = cells, m
        feature = cells.feature
        self.first = cells.start[feature]
        self.nan = cells.start[feature + 1] - 1 if len(feature) else self.first
        self.cut = self.first + cells.cut
        self.nan_left = cells.nan_goes_left
        self.odd = np.flatnonzero(~cells.is_prefix)
        self.odd_left = _odd_matrix(cells, self.odd)
        depth = m.structure.depth
        order = np.argsort(depth, kind="stable")
        self.levels = np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)
        self.leaf_start = m.trees.leaf_start[:-1]
        self.of_test = m.trees.of_test
        self.is_root = np.zeros(m.n_tests, bool)
        has_tests = np.diff(m.trees.test_start) > 0
        self.is_root[m.trees.test_start[:-1][has_tests]] = True
        self.lone = self.leaf_start[~has_tests]

    @functools.cached_property
    def same_test(self) -> Int[np.ndarray, "J"]:
        """A number for each test, equal for tests that ask the same question."""
        m = self.machine
        key = np.stack([m.selection, m.t.astype(np.float64).view(np.int64), m.missing])
        return np.unique(key, axis=1, return_inverse=True)[1].reshape(-1)

    def sides(self, box: Bool[np.ndarray, "C"]) -> tuple[np.ndarray, np.ndarray]:
        """(J,) whether some cell of the box goes left, and right, at each test."""
        count = np.concatenate([[0], np.cumsum(box)])
        low = count[self.cut] - count[self.first]
        high = count[self.nan] - count[self.cut]
        nan = box[self.nan]
        left = (low > 0) | (nan & self.nan_left)
        right = (high > 0) | (nan & ~self.nan_left)
        if len(self.odd):
            cells = box.astype(np.int32)
            n_left = self.odd_left @ cells
            total = (count[self.nan + 1] - count[self.first])[self.odd]
            left[self.odd], right[self.odd] = n_left > 0, total > n_left
        return left, right

    def walk(self, box: Bool[np.ndarray, "C"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(L,) leaves and (J,) tests that the box may reach; tests that it leaves on both sides."""
        left, right = self.sides(box)
        m = self.machine
        at_test = self.is_root.copy()
        at_leaf = np.zeros(m.n_leaves, bool)
        at_leaf[self.lone] = True
        for tests in self.levels:
            tests = tests[at_test[tests]]
            for side, can in ((0, left), (1, right)):
                below = m.children[tests[can[tests]], side]
                at_test[below[below >= 0]] = True
                at_leaf[~below[below < 0]] = True
        return at_leaf, at_test, at_test & left & right

    def most(
        self, at_leaf: Bool[np.ndarray, "L"], W: Float[np.ndarray, "L q"]
    ) -> Float[np.ndarray, "T q"]:
        """The most that each tree can add, of the leaves reached."""
        worth = np.where(at_leaf[:, None], W, -np.inf)
        return np.maximum.reduceat(worth, self.leaf_start, axis=0)

    def branch(self, straddled: Bool[np.ndarray, "J"], gap: Float[np.ndarray, "T"]) -> int | None:
        """The test that splits a box best: first on the way in the trees that leave most open."""
        tests = np.flatnonzero(straddled)
        if not len(tests):
            return None
        # Up to the first test that splits the box its way is one, so that test is above, and
        # numbered before, all others that the tree reaches.
        trees = self.of_test[tests]
        is_first = np.ones(len(tests), bool)
        is_first[1:] = trees[1:] != trees[:-1]
        tests, trees = tests[is_first], trees[is_first]
        worth = np.bincount(self.same_test[tests], weights=gap[trees] + 1e-300)
        best = int(np.argmax(worth))
        return int(tests[self.same_test[tests] == best][0])

    def split(self, box: Bool[np.ndarray, "C"], test: int) -> tuple[np.ndarray, np.ndarray]:
        """The parts of a box left and right of a test."""
        at = slice(int(self.first[test]), int(self.nan[test]) + 1)
        goes_left = self.cells.left(test)
        left, right = box.copy(), box.copy()
        left[at] &= goes_left
        right[at] &= ~goes_left
        return left, right


def _odd_matrix(cells: Cells, odd: np.ndarray) -> sp.csr_array:
    """(odd tests, C) the cells that go left, where they are not a run of cells."""
    rows = [np.flatnonzero(cells.left(int(j))) + cells.start[cells.feature[j]] for j in odd]
    indptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    indices = np.concatenate([np.empty(0, np.int64), *rows])
    return sp.csr_array(
        (np.ones(len(indices), np.int32), indices, indptr), shape=(len(odd), cells.n_cells)
    )
