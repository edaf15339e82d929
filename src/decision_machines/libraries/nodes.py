"""A machine's trees as lists of nodes, tests and leaves together, as most libraries keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

    from ..machine import DecisionMachine


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees side by side; the root of each tree is its node 0."""

    start: Int[np.ndarray, "T+1"]
    test: Int[np.ndarray, "N"]
    """The machine's test at each node; -1 at a leaf."""
    leaf: Int[np.ndarray, "N"]
    """The machine's leaf at each node; -1 at a test."""
    left: Int[np.ndarray, "N"]
    """The left child, counted within the tree; -1 at a leaf."""
    right: Int[np.ndarray, "N"]

    def spread(self, of_tests: np.ndarray, of_leaves: Any, dtype: Any = None) -> np.ndarray:
        """One value for each node, from those of the tests and those of the leaves."""
        of_leaves = np.asarray(of_leaves)
        found = np.empty(len(self.test), np.asarray(of_tests).dtype if dtype is None else dtype)
        is_test = self.test >= 0
        found[is_test] = np.asarray(of_tests)[self.test[is_test]]
        found[~is_test] = of_leaves[self.leaf[~is_test]] if of_leaves.ndim else of_leaves
        return found

    def tree(self, i: int) -> slice:
        return slice(int(self.start[i]), int(self.start[i + 1]))


def nodes_of(
    machine: DecisionMachine,
    swap: Bool[np.ndarray, "J"] | None = None,
    *,
    siblings_together: bool = False,
) -> Nodes:
    """Number the nodes of each tree.

    Nodes keep the numbers that the source gave them, where these number them from the root on;
    otherwise they are numbered level by level.

    Parameters
    ----------
    swap
        (J,) whether the two sides of a test change places.
    siblings_together
        Whether a right child must be the node after the left one.
    """
    trees = machine.trees
    sizes = np.diff(trees.test_start) + np.diff(trees.leaf_start)
    start = np.concatenate([[0], np.cumsum(sizes)])
    children = machine.children
    if swap is not None:
        children = np.where(np.asarray(swap)[:, None], children[:, ::-1], children)
    numbers = _own_numbers(machine, start, children, siblings_together)
    if numbers is None:
        numbers = _by_level(machine, start, children)
    of_test, of_leaf = numbers
    test, leaf = np.full(start[-1], -1), np.full(start[-1], -1)
    place = start[trees.of_test] + of_test
    test[place] = np.arange(machine.n_tests)
    leaf[start[trees.of_leaf] + of_leaf] = np.arange(machine.n_leaves)
    left, right = np.full(start[-1], -1), np.full(start[-1], -1)
    left[place], right[place] = _numbered(children, of_test, of_leaf).T
    return Nodes(start, test, leaf, left, right)


def _numbered(children: np.ndarray, of_test: np.ndarray, of_leaf: np.ndarray) -> np.ndarray:
    """(J, 2) the numbers of the children."""
    if not len(children):
        return np.empty((0, 2), np.int64)
    found: np.ndarray = np.where(
        children >= 0, of_test[np.maximum(children, 0)], of_leaf[np.maximum(~children, 0)]
    )
    return found


def _own_numbers(
    machine: DecisionMachine, start: np.ndarray, children: np.ndarray, siblings_together: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """The source's numbers of tests and leaves, or None where they do not number the nodes."""
    trees = machine.trees
    if trees.test_ids is None or trees.leaf_ids is None or not machine.n_leaves:
        return None
    of_test, of_leaf = trees.test_ids.astype(np.int64), trees.leaf_ids.astype(np.int64)
    tree = np.concatenate([trees.of_test, trees.of_leaf])
    number = np.concatenate([of_test, of_leaf])
    if np.any((number < 0) | (number >= np.diff(start)[tree])):
        return None
    taken = np.zeros(start[-1], bool)
    taken[start[tree] + number] = True
    child = _numbered(children, of_test, of_leaf)
    siblings = not siblings_together or np.all(child[:, 1] == child[:, 0] + 1)
    has_tests = np.diff(trees.test_start) > 0
    roots = np.all(of_test[trees.test_start[:-1][has_tests]] == 0)
    return (of_test, of_leaf) if np.all(taken) and siblings and roots else None


def _by_level(
    machine: DecisionMachine, start: np.ndarray, children: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers level by level, within a level in the order of the parents."""
    of_test, of_leaf = np.zeros(machine.n_tests, np.int64), np.zeros(machine.n_leaves, np.int64)
    first = machine.trees.test_start[:-1]
    level = first[np.diff(machine.trees.test_start) > 0]
    free = np.ones(machine.n_trees, np.int64)
    tree_of = machine.trees.of_test
    while len(level):
        below = children[level]
        tree = tree_of[level]
        # Parents stand tree by tree, so a parent's rank among its tree's is its place less the
        # place of the tree's first.
        begins = np.searchsorted(tree, np.arange(machine.n_trees))
        left = free[tree] + 2 * (np.arange(len(level)) - begins[tree])
        for side in (0, 1):
            is_test = below[:, side] >= 0
            of_test[below[is_test, side]] = left[is_test] + side
            of_leaf[~below[~is_test, side]] = left[~is_test] + side
        free += 2 * np.bincount(tree, minlength=machine.n_trees)
        level = below[below >= 0]
    return of_test, of_leaf
