"""Down the tree, level by level, all rows at once: exact, and linear in the depth.

For machines whose templates are too large for the reference equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .combine import combine
from .reference import leaf_values, selected

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

    from ...machine import DecisionMachine


def exit_leaves(
    machine: DecisionMachine, z: Num[np.ndarray, "m n"], tree: int
) -> Int[np.ndarray, "m"]:
    """The leaf (counted over all trees) that each row reaches in one tree."""
    tests, leaves = machine.trees.tests(tree), machine.trees.leaves(tree)
    if tests.start == tests.stop:
        return np.full(len(z), leaves.start, np.int64)
    node = np.full(len(z), tests.start, np.int64)
    rows = np.arange(len(z))
    # Columns side by side, because `selected` adds the terms column by column. It does not use
    # SciPy's product, which has other bits where a compiler fused multiplication and addition.
    oblique = selected(machine, np.asfortranarray(z), tests) if machine.is_oblique else None
    while len(rows):
        at = node[rows]
        q = (
            oblique[rows, at - tests.start]
            if oblique is not None
            else z[rows, machine.selection[at]]
        )
        goes_left = np.where(np.isnan(q), machine.missing[at] < 0, q <= machine.t[at])
        below = machine.children[at, np.where(goes_left, 0, 1)]
        node[rows] = below
        rows = rows[below >= 0]
    return ~node


def apply(machine: DecisionMachine, X: Num[np.ndarray, "m n_features"]) -> Int[np.ndarray, "m T"]:
    z = machine.columns.read(X)
    leaf_start = machine.trees.leaf_start
    found = np.empty((len(X), machine.n_trees), np.int32)
    for tree in range(machine.n_trees):
        found[:, tree] = exit_leaves(machine, z, tree) - leaf_start[tree]
    return found


def margin(
    machine: DecisionMachine, X: Num[np.ndarray, "m n_features"]
) -> Float[np.ndarray, "m k"]:
    z = machine.columns.read(X)
    values = (
        leaf_values(machine, X, exit_leaves(machine, z, tree)) for tree in range(machine.n_trees)
    )
    import array_api_compat.numpy as xp

    found: np.ndarray = combine(machine, values, len(X), xp)
    return found
