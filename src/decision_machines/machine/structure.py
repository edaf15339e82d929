"""`children` as trees: checked, measured, and laid out where they are numbered in other ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _native
from ..errors import InvariantError, ModelFormatError

if TYPE_CHECKING:
    from jaxtyping import Int

    from .trees import Trees


@dataclass(frozen=True, eq=False)
class Structure:
    """Depths and leaf spans, derived once from `children`."""

    depth: Int[np.ndarray, "J"]
    """How many tests stand above each test."""
    first_leaf: Int[np.ndarray, "J"]
    """The leftmost leaf below each test."""
    n_leaves: Int[np.ndarray, "J"]
    """How many leaves stand below each test."""
    leaf_depth: Int[np.ndarray, "L"]
    """How many tests each leaf's template asks for."""


def check_structure(children: Int[np.ndarray, "J 2"], trees: Trees) -> Structure:
    """Prove that `children` is one binary tree for each of `trees`, and measure it.

    Raises
    ------
    InvariantError
        That names the rule broken and the first test that breaks it.
    """
    if len(children) != trees.n_tests:
        raise InvariantError(
            "children of every test",
            f"{len(children)} rows of children for {trees.n_tests} tests",
            "give a left and a right child for each test",
        )
    empty = [np.empty(trees.n_tests, np.int32) for _ in range(3)]
    found = Structure(empty[0], empty[1], empty[2], np.empty(trees.n_leaves, np.int32))
    rule, test, side = _native.check(
        children, trees.test_start, found.depth, found.first_leaf, found.n_leaves, found.leaf_depth
    )
    if rule:
        raise _breach(rule, test, side, children, trees)
    for array in vars(found).values():
        array.flags.writeable = False
    return found


def _breach(rule: int, test: int, side: int, children: np.ndarray, trees: Trees) -> InvariantError:
    """The rule broken, in words; `side` -1 and -2 mean a test and a leaf without a parent."""
    if side < 0:
        return InvariantError(
            "every node has one parent",
            f"{'test' if side == -1 else 'leaf'} {test} is the child of no test",
            "make every test but the root, and every leaf, the child of exactly one test",
        )
    child = int(children[test, side])
    which = f"test {child}" if child >= 0 else f"leaf {~child}"
    found = f"{which}, the {('left', 'right')[side]} child of test {test}"
    if rule == 1:
        tree = int(trees.of_test[test])
        tests, leaves = trees.tests(tree), trees.leaves(tree)
        return InvariantError(
            "children come after their parent, in its own tree",
            f"{found}, is not a test of {test + 1}..{tests.stop - 1} nor a leaf of "
            f"{leaves.start}..{leaves.stop - 1} (tree {tree})",
            "number tests parents first, and write leaf i as ~i",
        )
    if rule == 2:
        return InvariantError(
            "every node has one parent",
            f"{found}, is the child of another test too",
            "make every test but the root, and every leaf, the child of exactly one test",
        )
    return InvariantError(
        "leaves count from left to right",
        f"{found}, is out of its place",
        "number the leaves of each tree from left to right (and V's rows with them)",
    )


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the nodes of a source stand in a machine."""

    tests: Int[np.ndarray, "J"]
    """The source's node of each test, as an index into the concatenated nodes; preorder."""
    leaves: Int[np.ndarray, "L"]
    """The source's node of each leaf, left to right."""
    children: Int[np.ndarray, "J 2"]
    test_start: Int[np.ndarray, "T+1"]


_FAULTS = {
    1: "its child does not exist",
    2: "it is reached twice: a cycle, or two parents",
    3: "it has one child only",
}


def layout(
    left: Int[np.ndarray, "N"],
    right: Int[np.ndarray, "N"],
    node_start: Int[np.ndarray, "T+1"],
    doing: str = "laying out trees",
) -> Layout:
    """Order the nodes of trees that a source numbers in its own way.

    Parameters
    ----------
    left, right
        Children of every node, counted within its tree; both negative at a leaf.
        Node 0 of each tree is its root. Nodes that no path reaches are left out.
    node_start
        Where each tree's nodes start.
    doing
        What to say we were doing, if it is not a tree.

    Examples
    --------
    >>> found = layout([2, -1, -1], [1, -1, -1], [0, 3])
    >>> found.children.tolist(), found.leaves.tolist()
    ([[-1, -2]], [2, 1])
    """
    node_start = np.ascontiguousarray(node_start, np.int64)
    tests, leaves, children, test_start, fault, tree, node = _native.layout(
        np.ascontiguousarray(left, np.int64), np.ascontiguousarray(right, np.int64), node_start
    )
    if fault:
        raise ModelFormatError(
            doing,
            f"node {node} of tree {tree} is not part of a binary tree: {_FAULTS[fault]}",
            "check that the model file is whole and unedited",
        )
    for array in (tests, leaves, children, test_start):
        array.flags.writeable = False
    return Layout(tests, leaves, children.reshape(-1, 2), test_start)
