"""A machine's trees as the arrays that XGBoost keeps for each tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ..limits import flags, memberships, missing_answers
from ..nodes import nodes_of
from .write_objectives import base_scores

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from ..limits import Membership
    from ..nodes import Nodes
    from .write_objectives import Objective

ROOT = 2**31 - 1
"""The parent of a root."""


def right_set(m: Membership) -> np.ndarray:
    """The set as XGBoost keeps it: what does not go where all else goes."""
    return m.right if m.outside < 0 else m.left


@dataclass
class Written:
    written: list[dict[str, Any]]
    feeds: list[int]
    rounds: list[int]


def forest_of(
    machine: DecisionMachine, objective: Objective, version: tuple[int, int]
) -> tuple[Written, np.ndarray]:
    """The trees, and the base score of each output.

    Vector leaves are written as XGBoost 3.2 reads them; for others, a tree becomes one for each
    output. Before 3.1 there is one base score for all outputs.
    """
    output, k = machine.output, machine.n_outputs
    zero, none = base_scores(objective, np.zeros(k, np.float32)), [np.zeros(k, np.float32)]
    first, last = ([output.base], none) if output.base_first else (none, [output.base])
    score = base_scores(objective, output.base) if output.base_first else None
    if score is not None and version < (3, 1) and len(np.unique(score)) > 1:
        score = None
    if score is not None:
        first = none
    assert zero is not None
    values = machine.V.astype(np.float32)
    is_vector = not machine.is_narrow and k > 1 and version >= (3, 2)
    # Everything x goes to the side where a set's members do not go: a test whose other values go
    # right has its sides exchanged.
    sets = memberships(machine)
    swap = flags(machine, (j for j, m in sets.items() if m.outside > 0))
    nodes = nodes_of(machine, swap, siblings_together=True)
    parts = _parts(machine, nodes, sets, swap)
    if is_vector:
        trees = [_tree(machine, parts, nodes, i, values) for i in range(machine.n_trees)]
        feeds = [0] * len(trees)
    elif machine.is_narrow or k == 1:
        trees = [_tree(machine, parts, nodes, i, values) for i in range(machine.n_trees)]
        feeds = np.maximum(machine.trees.feeds, 0).tolist()
    else:
        trees = [
            _tree(machine, parts, nodes, i, values[:, [o]])
            for i in range(machine.n_trees)
            for o in range(k)
        ]
        feeds = list(range(k)) * machine.n_trees

    def constants(bases: list[np.ndarray]) -> list[tuple[dict[str, Any], int]]:
        if not np.any(bases[0]):
            return []
        rows = [bases[0]] if is_vector else [bases[0][[o]] for o in range(k)]
        return [(_constant(row, machine.n_features), o) for o, row in enumerate(rows)]

    before, after = constants(first), constants(last)
    every = [*before, *zip(trees, feeds, strict=True), *after]
    for i, (tree, _) in enumerate(every):
        tree["id"] = i
    fed = [feed for _, feed in every]
    per_round = 1 if is_vector else k
    is_tiled = fed == [i % per_round for i in range(len(fed))] and len(fed) % per_round == 0
    rounds = list(range(0, len(fed) + 1, per_round)) if is_tiled else [0, len(fed)]
    return Written([tree for tree, _ in every], fed, rounds), zero if score is None else score


def _parts(
    machine: DecisionMachine, nodes: Nodes, sets: dict[int, Membership], swap: np.ndarray
) -> dict[str, Any]:
    """The arrays of all nodes, side by side."""
    t = np.nextafter(machine.t, np.float32(np.inf))
    is_member = machine.columns.rule[machine.selection] == Rule.MEMBER
    goes_left = (missing_answers(machine) < 0) != swap
    return {
        "feature": nodes.spread(machine.columns.feature[machine.selection], 0),
        "t": nodes.spread(np.where(is_member, np.float32(0), t), np.float32(0)),
        "default_left": nodes.spread(goes_left.astype(np.int64), 0),
        "split_type": nodes.spread(is_member.astype(np.int64), 0),
        "sets": sets,
    }


def _tree(
    machine: DecisionMachine, parts: dict[str, Any], nodes: Nodes, i: int, values: np.ndarray
) -> dict[str, Any]:
    at = nodes.tree(i)
    left, right = nodes.left[at], nodes.right[at]
    n, k = len(left), values.shape[1]
    is_leaf = left < 0
    leaf = nodes.leaf[at]
    parents = np.full(n, ROOT if k == 1 else -1)
    inner = np.flatnonzero(~is_leaf)
    parents[left[inner]] = parents[right[inner]] = inner
    held = np.zeros((n, k), np.float32)
    held[is_leaf] = values[leaf[is_leaf]]
    conditions = parts["t"][at].copy()
    found: dict[str, Any] = {}
    if k == 1:
        conditions[is_leaf] = held[is_leaf, 0]
    else:
        # A leaf's right child is its row among the vectors.
        right = right.copy()
        right[is_leaf] = np.arange(np.count_nonzero(is_leaf))
        found["leaf_weights"] = _floats(held[is_leaf].reshape(-1))
    members = [
        (int(node), right_set(parts["sets"][int(nodes.test[at][node])]).tolist())
        for node in np.flatnonzero(parts["split_type"][at])
    ]
    sizes = [len(which) for _, which in members]
    return found | {
        # Read for leaves of several values alone, and by XGBoost before 3.2.
        "base_weights": [0.0] * n if k == 1 else _floats(held.reshape(-1)),
        "categories": [c for _, which in members for c in which],
        "categories_nodes": [node for node, _ in members],
        "categories_segments": (np.cumsum(sizes) - sizes).astype(int).tolist() if sizes else [],
        "categories_sizes": sizes,
        "default_left": parts["default_left"][at].tolist(),
        "left_children": left.tolist(),
        "loss_changes": [0.0] * n,
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _floats(conditions),
        "split_indices": parts["feature"][at].tolist(),
        "split_type": parts["split_type"][at].tolist(),
        "sum_hessian": [0.0] * n,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(machine.n_features),
            "num_nodes": str(n),
            "size_leaf_vector": str(k),
        },
    }


def _constant(values: np.ndarray, n_features: int) -> dict[str, Any]:
    """A tree of one leaf."""
    k = len(values)
    none: list[Any] = []
    return ({"leaf_weights": _floats(values)} if k > 1 else {}) | {
        "base_weights": _floats(values),
        **dict.fromkeys(
            ("categories", "categories_nodes", "categories_segments", "categories_sizes"), none
        ),
        "default_left": [0],
        "left_children": [-1],
        "loss_changes": [0.0],
        "parents": [ROOT if k == 1 else -1],
        "right_children": [-1 if k == 1 else 0],
        "split_conditions": _floats(values) if k == 1 else [0.0],
        "split_indices": [0],
        "split_type": [0],
        "sum_hessian": [0.0],
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": "1",
            "size_leaf_vector": str(k),
        },
    }


def _floats(values: np.ndarray) -> list[float]:
    """Floats that JSON writes with the fewest digits that tell float32 numbers apart."""
    return [float(str(v)) for v in np.asarray(values, np.float32)]
