"""ONNX's tree operators: TreeEnsembleClassifier and TreeEnsembleRegressor (versions 1 and 3) and
TreeEnsemble (version 5), with the simple operators that converters put around them.

The machine answers as ONNX Runtime does on one thread. Its margins are the sums before the
operator's transform; its prediction is the graph's label, or else its scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import MissingLibraryError, UnsupportedModelError
from ...machine import Columns, DecisionMachine, Output, Trees, layout
from ...machine.steps import Step
from .expand import expand
from .read_graph import Found, trace
from .read_scores import Scores, check_certain, classifier, ensemble_5, gather, regressor
from .read_trees import as_tests, read_nodes, read_nodes_5
from .values import Attributes, refuse

GRAPH_FIELD = 7
KNOWN_FIELDS = frozenset((*range(1, 9), 14, 20, 25, 26))


def read_onnx(model: Any, source: str = "ONNX") -> DecisionMachine:
    """The machine of an `onnx.ModelProto`."""
    if type(model).__name__ != "ModelProto":
        raise UnsupportedModelError(
            "reading an ONNX model",
            f"an object of type {type(model).__name__}",
            "pass an onnx.ModelProto, or the file to dm.load",
        )
    doing = f"reading {source}" if source != "ONNX" else "reading an ONNX model"
    return _machine(trace(model, doing), source, doing)


def read_onnx_bytes(data: bytes, source: str) -> DecisionMachine:
    """The machine of the contents of an .onnx file."""
    try:
        import onnx
    except ImportError:
        raise MissingLibraryError(
            f"reading the ONNX model {source}",
            "the package onnx is not installed",
            "pip install 'decision-machines[onnx]'",
        ) from None
    doing = f"reading the ONNX model {source}"
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except MemoryError:
        raise
    except Exception as error:
        refuse(doing, f"it is not an ONNX protobuf ({str(error)[:80]})")
    return _machine(trace(model, doing), f"ONNX file {source}", doing)


def looks_like_onnx(data: bytes) -> bool:
    """Whether bytes are a protobuf with a graph where ONNX's model has its own.

    Only the outermost fields are looked at; the last may be cut short.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number not in KNOWN_FIELDS or wire not in (0, 2):
            return False
        value, at = _varint(data, at)
        if number == GRAPH_FIELD:
            return wire == 2 and (at < len(data) or value == 0)
        at += value if wire == 2 else 0
    return False


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A protobuf integer and where it ends; a broken one ends the data."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    return 0, len(data)


def _machine(found: Found, source: str, doing: str) -> DecisionMachine:
    features, node = found.features, found.node
    attributes = Attributes(node, doing)
    doing = attributes.doing
    summed = np.float64 if features.dtype == np.float64 else np.float32
    scores = _scores(attributes, node.op_type, summed)
    graph = (
        read_nodes_5(attributes)
        if node.op_type == "TreeEnsemble"
        else read_nodes(attributes, "class" if scores.labels is not None else "target")
    )
    tests = as_tests(graph, len(features.index), features.column_dtype, doing)
    of, left, right, start = expand(tests.left, tests.right, graph.roots, doing)
    laid = layout(left, right, start, doing)
    tested, exits = of[laid.tests], of[laid.leaves]
    leaf_start = laid.test_start + np.arange(len(laid.test_start))
    leaves = gather(graph, exits, leaf_start, scores, doing)
    check_certain(scores, leaves, bool(np.any(scores.base)), doing)
    n_trees = len(graph.roots)
    output = Output(
        scores.base,
        summed,
        base_first=False,
        divisor=float(max(n_trees, 1)) if scores.aggregate == "AVERAGE" else 1.0,
        aggregate={"MIN": "min", "MAX": "max"}.get(scores.aggregate, "sum"),
        link="onnx",
        link_params=(*map(Step, scores.steps), *found.steps),
        decision=found.decision or scores.decision,
        decision_params=() if found.decision else scores.decision_params,
        classes=_classes(found, scores, doing),
        groups=None,
    )
    return DecisionMachine(
        columns=Columns(
            features.n_inputs,
            features.column_dtype,
            features.index[tests.feature].astype(np.int32),
            tests.rule,
            names=features.names,
            sets=tests.sets,
        ),
        selection=tests.column[tested].astype(np.int32),
        t=tests.t[tested],
        missing=tests.missing[tested],
        children=laid.children,
        V=leaves.V if n_trees else np.empty((0, scores.k), summed),
        trees=Trees(
            laid.test_start,
            leaves.feeds,
            test_ids=_names(graph, tested),
            leaf_ids=_names(graph, exits),
        ),
        output=output,
        source=source,
    )


def _names(graph: Any, nodes: np.ndarray) -> np.ndarray:
    """What the operator calls these nodes; tests added on the way have no name."""
    names = np.concatenate([graph.name, np.full(1, -1)])
    found: np.ndarray = names[np.minimum(nodes, len(graph.name))]
    return found


def _scores(attributes: Attributes, operator: str, dtype: Any) -> Scores:
    doing = attributes.doing
    is_double = attributes.is_double(
        "nodes_values_as_tensor", "nodes_splits", "leaf_weights", "base_values_as_tensor",
        "class_weights_as_tensor", "target_weights_as_tensor",
    )  # fmt: skip
    if is_double and dtype != np.float64:
        refuse(doing, "numbers of float64 for trees that read float32")
    if operator == "TreeEnsemble":
        return ensemble_5(attributes, dtype)
    if operator == "TreeEnsembleClassifier":
        return classifier(attributes, dtype)
    return regressor(attributes, attributes.integer("n_targets", 1), dtype)


def _classes(found: Found, scores: Scores, doing: str) -> tuple[np.ndarray, ...] | None:
    labels = found.labels if found.labels is not None else scores.labels
    if labels is None:
        return None
    if len(labels) != scores.n_columns:
        refuse(doing, f"{len(labels)} labels for {scores.n_columns} scores")
    return (labels,)
