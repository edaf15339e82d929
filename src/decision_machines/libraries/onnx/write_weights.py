"""The weights of the leaves of ONNX's tree operators, and the trees that carry them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...machine import ALL_OUTPUTS
from .write_nodes import LEAF

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from .write_nodes import Graph

Weight = tuple[int, int, float]
"""A node, the output that it adds to, and what it adds."""


def weights_3(
    machine: DecisionMachine, graph: Graph, values: np.ndarray, ends: list[list[float]]
) -> list[Weight]:
    """(node, output, weight): every leaf has one for each output that its tree feeds."""
    feeds = machine.trees.feeds[machine.trees.of_leaf] if machine.n_leaves else []
    found = []
    for node in np.flatnonzero(graph.mode == LEAF).tolist():
        leaf = int(graph.leaf[node])
        if leaf >= machine.n_leaves:
            found += [(node, o, w) for o, w in enumerate(ends[leaf - machine.n_leaves])]
        elif feeds[leaf] == ALL_OUTPUTS:
            found += [(node, o, w) for o, w in enumerate(values[leaf].tolist())]
        else:
            found.append((node, int(feeds[leaf]), float(values[leaf, 0])))
    return found


def weights_5(
    machine: DecisionMachine, graph: Graph, values: np.ndarray, ends: list[list[float]]
) -> tuple[Graph, list[Weight]]:
    """The same where a leaf has one weight: a tree for each output that it feeds."""
    k = machine.n_outputs
    feeds = machine.trees.feeds[machine.trees.of_leaf] if machine.n_leaves else []
    if machine.is_narrow or k == 1:
        found = []
        for node in np.flatnonzero(graph.mode == LEAF).tolist():
            leaf = int(graph.leaf[node])
            if leaf >= machine.n_leaves:
                end = leaf - machine.n_leaves
                found.append((node, end % k, ends[end][0]))
            else:
                found.append((node, max(int(feeds[leaf]), 0), float(values[leaf, 0])))
        return graph, found
    # The trees of base scores stand at the ends and are there once for each output already.
    is_end = graph.leaf >= machine.n_leaves
    n_before = int(np.argmin(is_end)) if not np.all(is_end) else len(is_end)
    return _copied(graph, values, ends, n_before, machine.n_leaves, k)


def end_weights(values: np.ndarray, n_ends: int) -> list[list[float]]:
    """The weights of the trees of base scores: one tree of all outputs, or one for each."""
    return [values.tolist()] if n_ends == 1 else [[v] for v in values.tolist()]


def _copied(
    graph: Graph, values: np.ndarray, ends: list[list[float]], n_before: int, n_leaves: int, k: int
) -> tuple[Graph, list[Weight]]:
    """The graph with every tree but those of base scores once for each output."""
    is_end = graph.leaf >= n_leaves
    parts, weights, at, tree = [], [], 0, 0
    middle = ~is_end

    def add(which: np.ndarray, output_of: Callable[[int], tuple[int, float]]) -> None:
        nonlocal at, tree
        place = np.full(len(graph.tree), -1)
        place[which] = at + np.arange(len(which))
        trees = graph.tree[which]
        part = {
            name: getattr(graph, name)[which]
            for name in ("mode", "feature", "value", "nan_is_yes", "leaf")
        }
        for name in ("yes", "no"):
            side = getattr(graph, name)[which]
            part[name] = np.where(side >= 0, place[np.maximum(side, 0)], -1)
        part["tree"] = tree + trees - trees[0]
        part["members"] = {int(place[n]): m for n, m in graph.members.items() if place[n] >= 0}
        for node in which[graph.mode[which] == LEAF].tolist():
            weights.append((int(place[node]), *output_of(int(graph.leaf[node]))))
        parts.append(part)
        at += len(which)
        tree = int(part["tree"][-1]) + 1

    def of_end(leaf: int) -> tuple[int, float]:
        return (leaf - n_leaves) % k, ends[leaf - n_leaves][0]

    def of_leaf(output: int, leaf: int) -> tuple[int, float]:
        return output, float(values[leaf, output])

    first = np.arange(n_before)
    if len(first):
        add(first, of_end)
    which = np.flatnonzero(middle)
    for o in range(k):
        if len(which):
            add(which, partial(of_leaf, o))
    last = np.flatnonzero(is_end & (np.arange(len(is_end)) >= n_before))
    if len(last):
        add(last, of_end)
    names = ("tree", "mode", "feature", "value", "yes", "no", "nan_is_yes", "leaf")
    members = {n: m for part in parts for n, m in part["members"].items()}
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return type(graph)(**arrays, members=members), weights


def with_unreachable_leaf(graph: Graph) -> tuple[Graph, int]:
    """The graph with one more tree: a test that every x passes, and its two leaves."""
    n = len(graph.tree)
    tree = int(graph.tree[-1]) + 1 if n else 0
    more = {
        "tree": [tree] * 3,
        "mode": [0, LEAF, LEAF],
        "feature": [0, 0, 0],
        "value": [np.inf, 0.0, 0.0],
        "yes": [n + 1, -1, -1],
        "no": [n + 2, -1, -1],
        "nan_is_yes": [True, False, False],
        "leaf": [-1, -1, -1],
    }
    arrays = {name: np.concatenate([getattr(graph, name), more[name]]) for name in more}
    arrays["nan_is_yes"] = arrays["nan_is_yes"].astype(bool)
    return type(graph)(**arrays, members=graph.members), n + 2
