"""A machine as what `shap.TreeExplainer` takes: its trees in a dictionary.

SHAP values by background rows (`feature_perturbation="interventional"`) need the trees alone. Those
by paths (`"tree_path_dependent"`) need how much training weight reached each node: the machine's
covers, or counts of the rows that the user gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ..limits import Limits, missing_answers
from ..nodes import nodes_of

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from ..nodes import Nodes


def to_shap(machine: DecisionMachine, X: Any = None) -> dict[str, Any]:
    """A dictionary for `shap.TreeExplainer`; see `DecisionMachine.to_shap`."""
    limits = Limits(machine, "a model for shap.TreeExplainer")
    limits.columns((Rule.VALUE, Rule.NAN_AS_ZERO))
    limits.no_labels()
    limits.constant_leaves()
    limits.plain_sum()
    if not machine.n_trees:
        limits.refuse("it has no trees", "there is nothing to explain")
    output = machine.output
    factor = output.scale / output.divisor
    nodes = nodes_of(machine)
    feature = nodes.spread(machine.columns.feature[machine.selection], -1)
    t = nodes.spread(machine.t.astype(np.float64), -1.0)
    default = np.where(nodes.spread(missing_answers(machine) < 0, False), nodes.left, nodes.right)
    values = _values(machine, nodes) * factor
    if X is not None:
        weight = _weights(machine, nodes, X)
    elif machine.cover is not None:
        weight = nodes.spread(machine.cover.tests, machine.cover.leaves)
    else:
        weight = np.zeros(len(nodes.test))
    trees = []
    for i in range(machine.n_trees):
        at = nodes.tree(i)
        trees.append(
            {
                "children_left": nodes.left[at].astype(np.int32),
                "children_right": nodes.right[at].astype(np.int32),
                "children_default": default[at].astype(np.int32),
                "features": feature[at].astype(np.int32),
                "thresholds": t[at].copy(),
                "values": values[at].copy(),
                "node_sample_weight": weight[at].copy(),
            }
        )
    base = output.base.astype(np.float64) * (factor if output.base_first else 1.0)
    return {
        "trees": trees,
        "base_offset": base,
        "input_dtype": machine.columns.dtype.type,
        "internal_dtype": np.float64,
        "tree_output": "raw_value",
        "objective": None,
    }


def _values(machine: DecisionMachine, nodes: Nodes) -> np.ndarray:
    """(N, k) the values of leaves, 0 for the outputs that a tree does not feed."""
    values = np.zeros((len(nodes.test), machine.n_outputs))
    at = np.flatnonzero(nodes.leaf >= 0)
    leaf = nodes.leaf[at]
    if machine.is_narrow:
        values[at, machine.trees.feeds[machine.trees.of_leaf[leaf]]] = machine.V[leaf, 0]
    else:
        values[at] = machine.V[leaf]
    return values


def _weights(machine: DecisionMachine, nodes: Nodes, X: Any) -> np.ndarray:
    """(N,) how many of the rows reach each node."""
    exits = machine.apply(X) + machine.trees.leaf_start[:-1]
    counts = np.bincount(exits.reshape(-1), minlength=machine.n_leaves).astype(np.float64)
    below = np.concatenate([[0.0], np.cumsum(counts)])
    found = machine.structure
    of_tests = below[found.first_leaf + found.n_leaves] - below[found.first_leaf]
    return nodes.spread(of_tests, counts)
