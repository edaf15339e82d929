"""`children` as trees: checking them, measuring them, and laying out trees numbered otherwise."""

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
    tree = trees.of_test
    parent = np.arange(len(children))
    is_test = children >= 0
    leaf_start = trees.leaf_start
    for side, word in enumerate(("left", "right")):
        child = children[:, side]
        low = np.where(is_test[:, side], parent + 1, leaf_start[tree])
        high = np.where(is_test[:, side], trees.test_start[tree + 1], leaf_start[tree + 1])
        number = np.where(is_test[:, side], child, ~child)
        wrong = (number < low) | (number >= high)
        if np.any(wrong):
            j = int(np.argmax(wrong))
            kind = "test" if is_test[j, side] else "leaf"
            raise InvariantError(
                "children come after their parent, in its own tree",
                f"the {word} child of test {j} (tree {tree[j]}) is {kind} {number[j]}, "
                f"not one of {low[j]}..{high[j] - 1}",
                "number tests parents first, and write leaf i as ~i",
            )
    tests = children[is_test]
    parents_of_test = np.bincount(tests, minlength=len(children))
    expected = np.ones(len(children), dtype=np.int64)
    roots = trees.test_start[:-1][np.diff(trees.test_start) > 0]
    expected[roots] = 0
    _each_once("test", parents_of_test, expected)
    parents_of_leaf = np.bincount(~children[~is_test], minlength=trees.n_leaves)
    expected = np.ones(trees.n_leaves, dtype=np.int64)
    expected[leaf_start[:-1][np.diff(trees.test_start) == 0]] = 0
    _each_once("leaf", parents_of_leaf, expected)
    empty = [np.empty(trees.n_tests, np.int32) for _ in range(3)]
    found = Structure(empty[0], empty[1], empty[2], np.empty(trees.n_leaves, np.int32))
    _native.measure(
        children, trees.test_start, found.depth, found.first_leaf, found.n_leaves, found.leaf_depth
    )
    _check_left_to_right(children, found)
    for array in vars(found).values():
        array.flags.writeable = False
    return found


def _each_once(kind: str, parents: np.ndarray, expected: np.ndarray) -> None:
    wrong = parents != expected
    if np.any(wrong):
        j = int(np.argmax(wrong))
        raise InvariantError(
            "every node has one parent",
            f"{kind} {j} is the child of {parents[j]} tests where {expected[j]} is right",
            "make every test but the root, and every leaf, the child of exactly one test",
        )


def _check_left_to_right(children: np.ndarray, found: Structure) -> None:
    left, right = children[:, 0], children[:, 1]
    below_left = np.where(left >= 0, found.n_leaves[np.maximum(left, 0)], 1)
    wrong = ((left < 0) & (~left != found.first_leaf)) | (
        (right < 0) & (~right != found.first_leaf + below_left)
    )
    if np.any(wrong):
        j = int(np.argmax(wrong))
        raise InvariantError(
            "leaves count from left to right",
            f"the children of test {j} are {children[j].tolist()}, but the leaves below it start "
            f"at leaf {found.first_leaf[j]}",
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
        What to say we were doing, should it be no tree.

    Examples
    --------
    >>> found = layout([2, -1, -1], [1, -1, -1], [0, 3])
    >>> found.children.tolist(), found.leaves.tolist()
    ([[-1, -2]], [2, 1])
    """
    node_start = np.ascontiguousarray(node_start, np.int64)
    *arrays, fault, tree, node = _native.layout(
        np.ascontiguousarray(left, np.int64), np.ascontiguousarray(right, np.int64), node_start
    )
    if fault:
        raise ModelFormatError(
            doing,
            f"node {node} of tree {tree} is no part of a binary tree: {_FAULTS[fault]}",
            "check that the model file is whole and unedited",
        )
    tests, leaves, children, test_start = arrays
    for array in arrays:
        array.flags.writeable = False
    return Layout(tests, leaves, children.reshape(-1, 2), test_start)
