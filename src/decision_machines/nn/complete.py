"""Complete trees: where their tests lead, and machines made of them.

Tests of a tree stand in level order: below test j stand 2j + 1 and 2j + 2, and leaves are counted
from the left. Trees follow one another.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..errors import InputError
from ..machine import Columns, DecisionMachine, Output, Trees
from ..machine.columns import Rule

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def complete_children(depth: int, trees: int) -> Int[np.ndarray, "J 2"]:
    """Left and right of every test over all trees, a test or ~leaf.

    Examples
    --------
    >>> complete_children(1, 2).tolist()
    [[-1, -2], [-3, -4]]
    """
    n_tests = 2**depth - 1
    below = 2 * np.arange(n_tests)[:, None] + np.array([1, 2])
    tree = np.arange(trees)[:, None, None]
    test, leaf = below + tree * n_tests, below - n_tests + tree * (n_tests + 1)
    found: np.ndarray = np.where(below < n_tests, test, ~leaf)
    return found.reshape(-1, 2).astype(np.int32)


def test_starts(depth: int, trees: int) -> Int[np.ndarray, "T+1"]:
    """Where each tree's tests start."""
    found: np.ndarray = np.arange(trees + 1) * (2**depth - 1)
    return found


def complete_machine(
    selection: Int[np.ndarray, "J"] | Float[np.ndarray, "J n"],
    t: Float[np.ndarray, "J"],
    V: Float[np.ndarray, "L k"],
    n_features: int,
    depth: int,
    *,
    output: Output,
    source: str,
    missing: Int[np.ndarray, "J"] | None = None,
) -> DecisionMachine:
    """The machine of complete trees: tests that read one column each, or weigh all of them."""
    trees = len(t) // (2**depth - 1)
    return DecisionMachine(
        columns=Columns(n_features, np.float64),
        selection=selection if selection.ndim == 1 else sp.csr_array(selection),
        t=t,
        missing=np.full(len(t), -1) if missing is None else missing,
        children=complete_children(depth, trees),
        V=V,
        trees=Trees(test_starts(depth, trees)),
        output=output,
        source=source,
    )


def class_output(n_classes: int) -> Output:
    """Leaves hold class probabilities; the labels are the class numbers."""
    return Output(np.zeros(n_classes), decision="argmax", classes=(np.arange(n_classes),))


def value_output(n_outputs: int) -> Output:
    """Leaves hold numbers."""
    return Output(np.zeros(n_outputs))


def completed(
    machine: DecisionMachine, doing: str
) -> tuple[int, Float[np.ndarray, "J n"], Float[np.ndarray, "J"], Float[np.ndarray, "L k"]]:
    """A machine's trees filled up to complete ones of its depth: depth, S, t and V.

    A test that is added below a leaf has no weights and sends every row left; both of its leaves
    have the leaf's value.
    """
    _check_plain(machine, doing)
    structure = machine.structure
    depth = max(1, int(structure.leaf_depth.max(initial=1)))
    n_tests, n_trees = 2**depth - 1, machine.n_trees
    S = np.zeros((n_trees * n_tests, machine.n_features))
    t = np.zeros(n_trees * n_tests)
    V = np.zeros((n_trees * (n_tests + 1), machine.n_outputs))
    weights, columns = machine.S.tocsr(), machine.columns.feature
    for tree, (first, after) in enumerate(itertools.pairwise(machine.trees.test_start)):
        first_leaf = int(machine.trees.leaf_start[tree])
        nodes = np.full(2 * n_tests + 1, ~first_leaf)
        if after > first:
            nodes[0] = first
        for at in range(n_tests):
            node = int(nodes[at])
            if node >= 0:
                row = slice(weights.indptr[node], weights.indptr[node + 1])
                np.add.at(S[tree * n_tests + at], columns[weights.indices[row]], weights.data[row])
                t[tree * n_tests + at] = machine.t[node]
            nodes[2 * at + 1 : 2 * at + 3] = machine.children[node] if node >= 0 else node
        leaves = ~nodes[n_tests:]
        span = slice(tree * (n_tests + 1), (tree + 1) * (n_tests + 1))
        V[span] = _wide(machine)[leaves]
    return depth, S, t, V


def _wide(machine: DecisionMachine) -> Float[np.ndarray, "L k"]:
    if not machine.is_narrow:
        return machine.V.astype(np.float64)
    found = np.zeros((machine.n_leaves, machine.n_outputs))
    feeds = machine.trees.feeds[machine.trees.of_leaf]
    found[np.arange(machine.n_leaves), feeds] = machine.V[:, 0]
    return found


def _check_plain(machine: Any, doing: str) -> None:
    if not isinstance(machine, DecisionMachine):
        raise InputError(
            doing, f"a {type(machine).__name__}, not a machine", "pass dm.convert(model)"
        )
    if machine.n_trees == 0:
        raise InputError(doing, "a machine without trees", "pass one that has a tree")
    if np.any(machine.columns.rule != Rule.VALUE) or machine.columns.edges:
        raise InputError(
            doing,
            "a machine that reads categories, ranges, or gaps as numbers",
            "use machine.soften(...), which reads every kind of column",
        )
    if machine.linear is not None or machine.output.aggregate != "sum":
        raise InputError(
            doing,
            "leaves that are functions, or trees that are not added up",
            "use machine.soften(...), or its trees one by one: machine.tree(i)",
        )
