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

    from jaxtyping import Float
    from torch import Tensor

    from ..machine import DecisionMachine


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

    def __init__(self, machine: DecisionMachine) -> None:
        super().__init__()
        self.children_of, self.test_start = machine.children, machine.trees.test_start
        self.n_tests, self.n_leaves = machine.n_tests, machine.n_leaves
        test_order, leaf_order, next_index, leaf_index, self.levels = _levels(machine)
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


def _levels(machine: DecisionMachine):
    """Level order, and the places of each level's children in [lefts; rights] of their parents."""
    sizes = np.diff(machine.trees.test_start)
    is_stump = sizes == 0
    level = machine.trees.test_start[:-1][~is_stump]
    tests, leaves = [], [machine.trees.leaf_start[:-1][is_stump]]
    next_index, leaf_index, levels = [], [], []
    while len(level):
        below = machine.children[level].T.reshape(-1)
        is_leaf = below < 0
        tests.append(level)
        leaves.append(~below[is_leaf])
        next_index.append(np.flatnonzero(~is_leaf))
        leaf_index.append(np.flatnonzero(is_leaf))
        levels.append((len(level), len(next_index[-1]), len(leaf_index[-1])))
        level = below[~is_leaf]
    empty = [np.empty(0, np.int64)]
    joined = (np.concatenate(empty + parts) for parts in (tests, leaves, next_index, leaf_index))
    return *joined, levels
