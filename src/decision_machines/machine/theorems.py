"""The paper's two theorems, checked on any machine by exact integer arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .templates import tree_of_templates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Bool, Int
    from scipy.sparse import csr_array

    from .machine import DecisionMachine

ENTRIES_AT_ONCE = 5_000_000
"""How many entries of B are held at a time, so that a large forest is checked in little memory."""


def column_rank(machine: DecisionMachine) -> Int[np.ndarray, "T"]:
    """The rank of each tree's template matrix; the whole B has their sum.

    Paper: Theorem `rank`. The proof made into a computation: subtract each template from the
    next one. Neighbouring leaves separate at one test; there the difference is +2, and at all tests
    above it is 0. So, tests standing parents first, every difference *leads* with a 2, and
    differences that lead at different tests are independent. The rank is at least the number of
    tests that lead a difference, and at most the number of tests: where both agree, it is proven,
    in integers and in time linear in the entries of B.

    Examples
    --------
    >>> import decision_machines as dm
    >>> column_rank(dm.figure_one())
    array([5])
    """
    ranks = np.zeros(machine.n_trees, np.int64)
    for trees, B in _blocks(machine):
        D = (B[1:].astype(np.int16) - B[:-1].astype(np.int16)).tocsr()
        D.eliminate_zeros()
        D.sort_indices()
        # Differences across two trees are not a difference of one tree's templates.
        leaf_start = machine.trees.leaf_start[trees] - machine.trees.leaf_start[trees[0]]
        within = np.ones(D.shape[0], bool)
        within[leaf_start[1:] - 1] = False
        rows = np.flatnonzero(within & (np.diff(D.indptr) > 0))
        leading = D.indices[D.indptr[rows]]
        is_two = D.data[D.indptr[rows]] == 2
        tests = np.unique(leading[is_two]) + machine.trees.test_start[trees[0]]
        ranks[trees] += np.bincount(machine.trees.of_test[tests], minlength=trees[-1] + 1)[trees]
    return ranks


def exit_is_unique(machine: DecisionMachine) -> Bool[np.ndarray, "T"]:
    """For each tree, whether every vector h of answers matches exactly one template.

    Paper: Theorem `correctness`. Two things are shown from B alone: the tree recovered from it
    is `children` (so any two leaves ask opposite answers of the test where they separate, and no h
    matches both), and 2^(-depth) sums to 1 over the leaves, in integers (so no h is left out).
    """
    unique = np.ones(machine.n_trees, bool)
    depth = machine.structure.leaf_depth
    for i in range(machine.n_trees):
        tests, leaves = machine.trees.tests(i), machine.trees.leaves(i)
        children, order = tree_of_templates(machine.templates(i))
        own = machine.children[tests].astype(np.int64)
        own = np.where(own >= 0, own - tests.start, own + leaves.start)
        depths = np.bincount(depth[leaves]).tolist()
        deepest = len(depths) - 1
        shares = sum(n << (deepest - d) for d, n in enumerate(depths))
        unique[i] = (
            np.array_equal(order, np.arange(len(own)))
            and np.array_equal(children, own)
            and shares == 1 << deepest
        )
    return unique


def _blocks(machine: DecisionMachine) -> Iterator[tuple[np.ndarray, csr_array]]:
    """The templates of a few trees at a time."""
    entries = (
        np.add.reduceat(
            machine.structure.leaf_depth.astype(np.int64), machine.trees.leaf_start[:-1]
        )
        if machine.n_trees
        else np.empty(0, np.int64)
    )
    first = 0
    while first < machine.n_trees:
        last, held = first, 0
        while last < machine.n_trees and (last == first or held + entries[last] <= ENTRIES_AT_ONCE):
            held += entries[last]
            last += 1
        yield np.arange(first, last), machine.templates(first, last)
        first = last
