"""Products with B as sums along paths: level by level, all trees at once, in O(leaves).

Row i of B is nonzero on the path to leaf i alone, so B · query is, for each leaf, the sum of one
term for each test above it: `left` where the path turns left, `right` where it turns right. A
level of all trees is one addition; nothing of size L × J is ever made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float, Int
    from torch import Tensor

    from ..machine import DecisionMachine
    from .soft_structure import SoftStructure


class Paths(nn.Module):
    """The tests of a forest in the order of their levels, and where each level leads.

    Tensors are tests first: (J, m), so that taking the tests of a level copies whole rows. Tests
    and leaves come in *level order*: by depth, and within a depth lefts before rights.

    Attributes
    ----------
    levels
        For each level how many tests it has, and how many of their children are tests and leaves.
    test_order, leaf_order
        The machine's number of each test and leaf in level order.
    test_rank, leaf_rank
        Where each of the machine's tests and leaves stands in level order.
    children_of, test_start
        The machine's own arrays, for kernels that walk the trees themselves.
    """

    test_order: Tensor
    leaf_order: Tensor
    test_rank: Tensor
    leaf_rank: Tensor
    next_index: Tensor
    leaf_index: Tensor

    def __init__(
        self, children: Int[np.ndarray, "J 2"], test_start: Int[np.ndarray, "T+1"]
    ) -> None:
        super().__init__()
        self.children_of, self.test_start = children, test_start
        self._structures: dict[tuple[int, bool], SoftStructure] = {}
        self.n_tests, self.n_leaves = len(children), len(children) + len(test_start) - 1
        test_order, leaf_order, next_index, leaf_index, self.levels = _levels(children, test_start)
        self.n_stumps = len(leaf_order) - sum(n_leaves for _, _, n_leaves in self.levels)
        blocks = [self.n_stumps, *(n_leaves for _, _, n_leaves in self.levels)]
        self.leaf_blocks = [n for n in blocks if n] or [0]
        for name, index in (
            ("test_order", test_order),
            ("leaf_order", leaf_order),
            ("test_rank", np.argsort(test_order, kind="stable")),
            ("leaf_rank", np.argsort(leaf_order, kind="stable")),
            ("next_index", next_index),
            ("leaf_index", leaf_index),
        ):
            self.register_buffer(name, torch.from_numpy(index.astype(np.int64)), persistent=False)

    @classmethod
    def of(cls, machine: DecisionMachine) -> Paths:
        """The machine's own paths."""
        return cls(machine.children, machine.trees.test_start)

    def structure(self, n_outputs: int) -> SoftStructure:
        """These trees for the native kernel, each test reading a column of its own."""
        tests = np.arange(self.n_tests)
        return self._structure((n_outputs, False), self.n_tests, tests)

    def mixed_structure(self, n_outputs: int, n_columns: int) -> SoftStructure:
        """These trees for the native kernel, tests weighing columns as each call says."""
        return self._structure((n_outputs, True), n_columns, np.zeros(self.n_tests, np.int64))

    def _structure(
        self, key: tuple[int, bool], n_columns: int, selection: Int[np.ndarray, "J"]
    ) -> SoftStructure:
        from .soft_structure import SoftStructure

        if key not in self._structures:
            every_output = np.full(len(self.test_start) - 1, -1)
            self._structures[key] = SoftStructure(
                self.children_of,
                self.test_start,
                selection,
                np.full(self.n_tests, -1),
                every_output,
                n_columns,
                key[0],
            )
        return self._structures[key]

    def sums(self, left: Float[Tensor, "J m"], right: Float[Tensor, "J m"]) -> Float[Tensor, "L m"]:
        """Σ of the terms along the path to each leaf; everything in level order."""
        return torch.cat(list(self._descend(left, right, is_product=False)))

    def products(
        self, left: Float[Tensor, "J m"], right: Float[Tensor, "J m"]
    ) -> Iterator[Float[Tensor, "l m"]]:
        """Π of the factors along the path to each leaf, a block of leaves for each level."""
        return self._descend(left, right, is_product=True)

    def _descend(self, left: Tensor, right: Tensor, is_product: bool) -> Iterator[Tensor]:
        start = left.new_full((self.n_stumps, left.shape[1]), 1.0 if is_product else 0.0)
        if self.n_stumps or not self.levels:
            yield start
        if not self.levels:
            return
        n_tests, n_next, n_leaves = zip(*self.levels, strict=True)
        # `split`, because the gradient of each slice would be as large as all levels together.
        levels = zip(
            left.split(n_tests),
            right.split(n_tests),
            self.next_index.split(n_next),
            self.leaf_index.split(n_leaves),
            strict=True,
        )
        above = None
        for left_here, right_here, to_tests, to_leaves in levels:
            both = (left_here, right_here)
            if above is not None:
                both = tuple(above * side if is_product else above + side for side in both)
            below = torch.cat(both)
            # All leaves or all tests stand as they are: most levels of a balanced tree do.
            if len(to_leaves):
                yield below.index_select(0, to_leaves) if len(to_tests) else below
            above = below.index_select(0, to_tests) if len(to_leaves) else below


def _levels(
    children: Int[np.ndarray, "J 2"], test_start: Int[np.ndarray, "T+1"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[tuple[int, int, int]]]:
    """Level order, and the places of each level's children in [lefts; rights] of their parents."""
    is_stump = np.diff(test_start) == 0
    level = test_start[:-1][~is_stump]
    # A tree has one leaf more than tests.
    first_leaf = test_start[:-1] + np.arange(len(is_stump))
    tests, leaves = [], [first_leaf[is_stump]]
    next_index, leaf_index, levels = [], [], []
    while len(level):
        below = children[level].T.reshape(-1)
        is_leaf = below < 0
        tests.append(level)
        leaves.append(~below[is_leaf])
        next_index.append(np.flatnonzero(~is_leaf))
        leaf_index.append(np.flatnonzero(is_leaf))
        levels.append((len(level), len(next_index[-1]), len(leaf_index[-1])))
        level = below[~is_leaf]

    def joined(parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.empty(0, np.int64), *parts])

    return joined(tests), joined(leaves), joined(next_index), joined(leaf_index), levels
