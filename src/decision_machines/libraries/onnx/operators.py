"""ONNX's tree operators as nodes of a graph: version 3 (two operators) and version 5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .write_nodes import EQ, LEAF, LEQ, LT, MEMBER

if TYPE_CHECKING:
    from .write_nodes import Graph

DOMAIN = "ai.onnx.ml"
MODES = {LEQ: "BRANCH_LEQ", LT: "BRANCH_LT", EQ: "BRANCH_EQ", LEAF: "LEAF"}
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS_5 = {"NONE": 0, "SOFTMAX_ZERO": 3, "PROBIT": 4}
"""1 and 2 are left out: ONNX Runtime and the specification understand them differently."""


def operator_3(
    graph: Graph,
    weights: list[tuple[int, int, float]],
    n_outputs: int,
    dtype: Any,
    *,
    aggregate: str = "SUM",
    transform: str = "NONE",
    base: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    given: str = "X",
    made: tuple[str, ...] = ("sums",),
) -> Any:
    """TreeEnsembleRegressor; TreeEnsembleClassifier where there are labels.

    Parameters
    ----------
    weights
        (node, output, weight) for every weight of every leaf.
    """
    from onnx import helper

    starts = graph.start
    number = np.arange(len(graph.tree)) - starts[graph.tree]
    is_leaf = graph.mode == LEAF
    kind = "target" if labels is None else "class"
    node, output, weight = (
        np.array([w[i] for w in weights], t) for i, t in enumerate((np.int64, np.int64, np.float64))
    )
    found: dict[str, Any] = {
        "nodes_treeids": graph.tree,
        "nodes_nodeids": number,
        "nodes_featureids": graph.feature,
        "nodes_truenodeids": np.where(is_leaf, 0, number[graph.yes]),
        "nodes_falsenodeids": np.where(is_leaf, 0, number[graph.no]),
        "nodes_missing_value_tracks_true": graph.nan_is_yes.astype(np.int64),
        f"{kind}_treeids": graph.tree[node],
        f"{kind}_nodeids": number[node],
        f"{kind}_ids": output,
    }
    found = {name: array.tolist() for name, array in found.items()}
    found["nodes_modes"] = [MODES[mode] for mode in graph.mode.tolist()]
    found["post_transform"] = transform
    numbers = {"nodes_values": graph.value, f"{kind}_weights": weight}
    if base is not None:
        numbers["base_values"] = base
    for name, array in numbers.items():
        if dtype == np.float64:
            found[f"{name}_as_tensor"] = _tensor(name, array, np.float64)
        else:
            found[name] = array.astype(np.float32).tolist()
    if labels is None:
        found |= {"n_targets": n_outputs, "aggregate_function": aggregate}
        name = "TreeEnsembleRegressor"
    else:
        name = "TreeEnsembleClassifier"
        if labels.dtype.kind in "US":
            found["classlabels_strings"] = [str(label) for label in labels]
        else:
            found["classlabels_int64s"] = [int(label) for label in labels]
    return helper.make_node(name, [given], list(made), domain=DOMAIN, **found)


def operator_5(
    graph: Graph,
    weights: list[tuple[int, int, float]],
    n_outputs: int,
    dtype: Any,
    *,
    aggregate: str = "SUM",
    transform: str = "NONE",
    given: str = "X",
    made: str = "sums",
) -> Any:
    """TreeEnsemble, whose leaves have one weight each: a tree of one leaf is a test of two."""
    from onnx import helper

    graph, weights = _without_single_leaves(graph, weights)
    is_leaf = graph.mode == LEAF
    tests, leaves = np.flatnonzero(~is_leaf), np.flatnonzero(is_leaf)
    number = np.empty(len(graph.mode), np.int64)
    number[tests], number[leaves] = np.arange(len(tests)), np.arange(len(leaves))
    roots = graph.start[:-1]
    _tell_sides_apart(graph, number, roots)
    target, weight = np.empty(len(leaves), np.int64), np.empty(len(leaves))
    for node, output, value in weights:
        target[number[node]], weight[number[node]] = output, value
    members = [
        np.append(graph.members[node].astype(dtype), np.nan)
        for node in tests.tolist()
        if graph.mode[node] == MEMBER
    ]
    found: dict[str, Any] = {
        "tree_roots": number[roots],
        "nodes_featureids": graph.feature[tests],
        "nodes_truenodeids": number[graph.yes[tests]],
        "nodes_trueleafs": is_leaf[graph.yes[tests]].astype(np.int64),
        "nodes_falsenodeids": number[graph.no[tests]],
        "nodes_falseleafs": is_leaf[graph.no[tests]].astype(np.int64),
        "nodes_missing_value_tracks_true": graph.nan_is_yes[tests].astype(np.int64),
        "leaf_targetids": target,
    }
    found = {name: array.tolist() for name, array in found.items()}
    found["nodes_modes"] = _tensor("nodes_modes", graph.mode[tests], np.uint8)
    found["nodes_splits"] = _tensor("nodes_splits", graph.value[tests], dtype)
    found["leaf_weights"] = _tensor("leaf_weights", weight, dtype)
    if members:
        found["membership_values"] = _tensor("membership_values", np.concatenate(members), dtype)
    found["n_targets"] = n_outputs
    found["aggregate_function"] = AGGREGATES.index(aggregate)
    found["post_transform"] = TRANSFORMS_5[transform]
    return helper.make_node("TreeEnsemble", [given], [made], domain=DOMAIN, **found)


def _without_single_leaves(
    graph: Graph, weights: list[tuple[int, int, float]]
) -> tuple[Graph, list[tuple[int, int, float]]]:
    """Trees of one leaf as a test whose two leaves are alike."""
    sizes = np.diff(graph.start)
    single = sizes == 1
    if not np.any(single):
        return graph, weights
    grown = np.where(single, 3, sizes)
    start = np.concatenate([[0], np.cumsum(grown)])
    place = start[graph.tree] + np.arange(len(graph.tree)) - graph.start[graph.tree]
    is_single = single[graph.tree]
    n = int(start[-1])

    def spread(array: np.ndarray, fill: Any) -> np.ndarray:
        made = np.full(n, fill, array.dtype)
        made[place] = array
        return made

    def side(array: np.ndarray) -> np.ndarray:
        return spread(np.where(array >= 0, place[np.maximum(array, 0)], -1), -1)

    mode, leaf = spread(graph.mode, LEAF), spread(graph.leaf, -1)
    yes, no = side(graph.yes), side(graph.no)
    root = place[is_single]
    mode[root], yes[root], no[root] = LEQ, root + 1, root + 2
    leaf[root + 1] = leaf[root + 2] = leaf[root]
    leaf[root] = -1
    moved = []
    for node, output, value in weights:
        if is_single[node]:
            moved += [(int(place[node]) + 1, output, value), (int(place[node]) + 2, output, value)]
        else:
            moved.append((int(place[node]), output, value))
    made = type(graph)(
        np.repeat(np.arange(len(grown)), grown),
        mode,
        spread(graph.feature, 0),
        spread(graph.value, 0.0),
        yes,
        no,
        spread(graph.nan_is_yes, False),
        leaf,
        {int(place[node]): m for node, m in graph.members.items()},
    )
    return made, moved


def _tell_sides_apart(graph: Graph, number: np.ndarray, roots: np.ndarray) -> None:
    """Number leaves so that no root has a test and a leaf of one number on its two sides.

    ONNX Runtime takes such a root for a tree of one leaf. The leaf changes numbers with another
    leaf of its tree, which is none of the root's own: a tree with a test below its root has three.
    """
    yes, no = graph.yes[roots], graph.no[roots]
    is_leaf = graph.mode == LEAF
    for tree in np.flatnonzero((number[yes] == number[no]) & (is_leaf[yes] != is_leaf[no])):
        clash = int(yes[tree] if is_leaf[yes[tree]] else no[tree])
        span = np.arange(graph.start[tree], graph.start[tree + 1])
        other = int(next(n for n in span if is_leaf[n] and n != clash))
        number[clash], number[other] = number[other], number[clash]


def _tensor(name: str, array: np.ndarray, dtype: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.ascontiguousarray(array, dtype), name)
