"""The graph around the trees: from its inputs to features, from the trees' answers to outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine.steps import Step
from .fields import check_model, check_node
from .releases import note_versions
from .steps import ARITHMETIC, FUNCTIONS, NORMALIZE, arithmetic_step
from .values import Attributes, array_of, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

TREES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
# Numbers of onnx.TensorProto's types.
DTYPES = {1: np.float32, 11: np.float64, 7: np.int64, 6: np.int32}
TEXT = 8
MOST_FEATURES = 1 << 24
NEWEST_VERSION = 5


@dataclass(frozen=True)
class Features:
    """A matrix of the graph's inputs: which input column each of its columns is."""

    index: np.ndarray
    dtype: Any
    """What its numbers are at this point of the graph."""
    narrowest: Any
    """float32 if they ever passed through float32, else float64."""
    n_inputs: int = 0
    names: tuple[str, ...] | None = None

    @property
    def column_dtype(self) -> Any:
        """What the trees compare: integers are turned into float32 by them."""
        return self.narrowest if self.dtype in (np.float32, np.float64) else np.float32


@dataclass(frozen=True)
class Answer:
    """Scores of the trees, and what was done to them."""

    node: Any
    features: Features
    n_columns: int
    dtype: Any
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Label:
    """Labels: the operator's own, or those of the largest of some scores."""

    node: Any
    features: Features
    of_scores: Answer | None = None
    labels: np.ndarray | None = None


@dataclass(frozen=True)
class Unknown:
    """What an operator that we do not read has made."""

    operator: str


@dataclass(frozen=True)
class Found:
    """The trees and their surroundings."""

    node: Any
    features: Features
    steps: tuple[Step, ...] = ()
    decision: str | None = None
    labels: np.ndarray | None = None


def trace(model: Any, doing: str) -> Found:
    """The one tree operator that the graph's outputs depend on, and how."""
    versions = _check_versions(model, doing)
    check_model(model, doing)
    note_versions(model, versions, doing)
    graph = model.graph
    values: dict[str, Any] = {tensor.name: array_of(tensor, doing) for tensor in graph.initializer}
    values |= _inputs(graph, values, doing)
    for number, node in enumerate(graph.node):
        domain = node.domain or "ai.onnx"
        operate = OPERATORS.get((domain, node.op_type))
        if operate is not None:
            if domain not in versions:
                refuse(doing, f"it names no version of {domain}, to which {node.op_type} belongs")
            check_node(node, domain, number, doing)
        given = [values.get(name) for name in node.input]
        if operate is None:
            made: Any = Unknown(node.op_type)
        else:
            made = next((g for g in given if isinstance(g, Unknown)), None)
            made = made or operate(node, given, doing) or Unknown(node.op_type)
        made = made if isinstance(made, tuple) else (made,) * len(node.output)
        values |= dict(zip(node.output, made, strict=False))
    outputs = [values.get(output.name) for output in graph.output]
    return _found(outputs, [output.name for output in graph.output], doing)


def _check_versions(model: Any, doing: str) -> dict[str, int]:
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        if versions.setdefault(entry.domain or "ai.onnx", entry.version) != entry.version:
            refuse(doing, f"it names two versions of {entry.domain or 'ai.onnx'}")
    version = versions.get("ai.onnx.ml")
    if version is None:
        refuse(doing, "it names no version of ai.onnx.ml, the operators of trees")
    if not 1 <= version <= NEWEST_VERSION:
        raise UnsupportedModelError(
            doing,
            f"version {version} of the operators ai.onnx.ml",
            f"convert the model for a version up to {NEWEST_VERSION}",
        )
    return versions


def _inputs(graph: Any, known: dict[str, Any], doing: str) -> dict[str, Features]:
    """The graph's inputs as features, numbered one input after the other."""
    found, at, names = {}, 0, []
    inputs = [i for i in graph.input if i.name not in known]
    for given in inputs:
        tensor = given.type.tensor_type
        dtype = DTYPES.get(tensor.elem_type)
        dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        if dtype is None or len(dims) != 2:
            raise UnsupportedModelError(
                doing,
                f"the input {given.name!r} of type {tensor.elem_type} and {len(dims)} dimensions",
                "use inputs of two dimensions, of float, double, int32 or int64",
            )
        width = dims[1]
        if width is None:
            width = _highest_feature(graph) + 1 if len(inputs) == 1 else 1
        if not 0 <= width <= MOST_FEATURES:
            refuse(doing, f"the input {given.name!r} has {width} columns")
        narrow = np.float32 if dtype == np.float32 else np.float64
        found[given.name] = Features(np.arange(at, at + width), dtype, narrow)
        names.append((given.name, width))
        at += width
    # Inputs of one column each are the columns of a table, and named like them.
    is_table = len(names) > 1 and all(width == 1 for _, width in names)
    shared = tuple(name for name, _ in names) if is_table else None
    return {name: replace(f, n_inputs=at, names=shared) for name, f in found.items()}


def _highest_feature(graph: Any) -> int:
    features = [
        attribute.ints
        for node in graph.node
        if node.op_type in TREES
        for attribute in node.attribute
        if attribute.name == "nodes_featureids"
    ]
    return max((max(f) for f in features if len(f)), default=-1)


def _found(outputs: list[Any], names: list[str], doing: str) -> Found:
    for value, name in zip(outputs, names, strict=True):
        if not isinstance(value, (Answer, Label)):
            operator = value.operator if isinstance(value, Unknown) else "an input or a constant"
            raise UnsupportedModelError(
                doing,
                f"the output {name!r} is made by {operator}, which is not read around trees",
                "take that operator out of the graph and do its work before or after the machine",
            )
    nodes = {id(value.node): value for value in outputs}
    if len(nodes) != 1:
        raise UnsupportedModelError(
            doing,
            f"{len(nodes)} tree operators that make the outputs {', '.join(names)}",
            "convert the part of the graph with one of them at a time",
        )
    answers = [value for value in outputs if isinstance(value, Answer)]
    labels = [value for value in outputs if isinstance(value, Label)]
    if len(answers) > 1 or len(labels) > 1:
        raise UnsupportedModelError(
            doing,
            f"the outputs {', '.join(names)}: more than one of labels or of scores",
            "keep one output of labels and one of scores",
        )
    label = labels[0] if labels else None
    scores = answers[0] if answers else (label.of_scores if label else None)
    one: Any = scores or label
    if (
        label is not None
        and label.of_scores is not None
        and (scores is None or label.of_scores.steps != scores.steps)
    ):
        raise UnsupportedModelError(
            doing,
            "labels that are chosen by other scores than those the graph gives",
            "choose the label by the scores that are an output",
        )
    return Found(
        one.node,
        one.features,
        scores.steps if scores else (),
        "argmax" if label is not None and label.of_scores is not None else None,
        label.labels if label is not None else None,
    )


# ---------------------------------------------------------------------- operators


def _same(node: Any, given: list[Any], doing: str) -> Any:
    return given[0] if given and isinstance(given[0], (Features, Answer, Label)) else None


def _cast(node: Any, given: list[Any], doing: str) -> Any:
    to = Attributes(node, doing).integer("to", 0)
    value = given[0] if given else None
    if isinstance(value, Features) and to in (1, 11):
        narrow = np.float32 if to == 1 else value.narrowest
        return replace(value, dtype=DTYPES[to], narrowest=narrow)
    if isinstance(value, Answer) and to in (1, 11):
        return _step(value, "single" if to == 1 else "double", (), DTYPES[to])
    if isinstance(value, Label) and to == _label_type(value):
        return value
    return None


def _label_type(label: Label) -> int:
    """The type that labels have already."""
    if label.labels is not None:
        return TEXT if label.labels.dtype.kind == "U" else 7
    if label.of_scores is not None:
        return 7
    is_text = Attributes(label.node, "reading labels").texts("classlabels_strings")
    return TEXT if is_text else 7


def _step(answer: Answer, name: str, constants: tuple[float, ...], dtype: Any = None) -> Answer:
    steps = (*answer.steps, Step(name, constants))
    return replace(answer, steps=steps, dtype=dtype or answer.dtype)


def _trees(node: Any, given: list[Any], doing: str) -> Any:
    features = given[0] if given else None
    if not isinstance(features, Features):
        return None
    is_classifier = node.op_type == "TreeEnsembleClassifier"
    attributes = Attributes(node, doing)
    if is_classifier:
        n = max(
            len(attributes.texts("classlabels_strings")),
            len(attributes.integers("classlabels_int64s")),
        )
        return Label(node, features), Answer(node, features, n, np.float32)
    dtype: type[np.floating] = np.float32
    if node.op_type == "TreeEnsemble" and features.dtype == np.float64:
        dtype = np.float64
    return Answer(node, features, attributes.integer("n_targets", 1), dtype)


def _concat(node: Any, given: list[Any], doing: str) -> Any:
    parts = [g for g in given if isinstance(g, Features)]
    if len(parts) != len(given) or Attributes(node, doing).integer("axis", 1) not in (1, -1):
        return None
    if len({(p.dtype, p.narrowest) for p in parts}) > 1:
        return None
    return replace(parts[0], index=np.concatenate([p.index for p in parts]))


def _select(node: Any, given: list[Any], doing: str) -> Any:
    """ArrayFeatureExtractor, Gather: columns of features, or labels by their position."""
    if len(given) != 2:
        return None
    data, which = given
    if isinstance(data, np.ndarray) and isinstance(which, Label) and which.labels is None:
        return replace(which, labels=_labels(data)) if which.of_scores is not None else None
    is_columns = node.op_type != "Gather" or Attributes(node, doing).integer("axis", 0) in (1, -1)
    if isinstance(data, Features) and isinstance(which, np.ndarray) and is_columns:
        which = which.reshape(-1)
        if which.dtype.kind not in "iu" or np.any((which < 0) | (which >= len(data.index))):
            refuse(doing, f"{node.op_type} selects columns that are not there")
        return replace(data, index=data.index[which])
    return None


def _labels(data: np.ndarray) -> np.ndarray:
    data = data.reshape(-1)
    return np.array([s.decode() if isinstance(s, bytes) else s for s in data.tolist()])


def _argmax(node: Any, given: list[Any], doing: str) -> Any:
    attributes = Attributes(node, doing)
    fits = attributes.integer("axis", 0) in (1, -1) and not attributes.integer(
        "select_last_index", 0
    )
    if given and isinstance(given[0], Answer) and fits:
        return Label(given[0].node, given[0].features, given[0])
    return None


def _reshape(node: Any, given: list[Any], doing: str) -> Any:
    """Rows stay rows, and columns columns."""
    value, shape = given if len(given) == 2 else (None, None)
    if not isinstance(shape, np.ndarray):
        return None
    shape = shape.reshape(-1).tolist()
    if isinstance(value, Label):
        return value if shape in ([-1], [-1, 1]) else None
    if isinstance(value, Answer):
        return value if shape == [-1, value.n_columns] else None
    return value if isinstance(value, Features) and shape == [-1, len(value.index)] else None


def _arithmetic(operator: str) -> Callable[..., Any]:
    def operate(node: Any, given: list[Any], doing: str) -> Any:
        if len(given) != 2:
            return None
        first, second = given
        if isinstance(first, Answer) and isinstance(second, np.ndarray):
            answer, constant, is_first = first, second, False
        elif isinstance(second, Answer) and isinstance(first, np.ndarray):
            answer, constant, is_first = second, first, True
        else:
            return None
        flat = constant.reshape(-1)
        is_row = constant.ndim == 0 or constant.shape[-1] == flat.size
        if flat.size not in (1, answer.n_columns) or not is_row or constant.dtype != answer.dtype:
            return None
        step = arithmetic_step(operator, constant_first=is_first)
        return _step(answer, step, tuple(flat.tolist()))

    return operate


def _function(step: str) -> Callable[..., Any]:
    """An operator that changes scores one by one; only a sign is alike to the bit in float64."""
    dtypes = (np.float32, np.float64) if step == "negate" else (np.float32,)

    def operate(node: Any, given: list[Any], doing: str) -> Any:
        fits = bool(given) and isinstance(given[0], Answer) and given[0].dtype in dtypes
        return _step(given[0], step, ()) if fits else None

    return operate


def _normalizer(node: Any, given: list[Any], doing: str) -> Any:
    if Attributes(node, doing).text("norm", "MAX") != "L1":
        return None
    return _step(given[0], NORMALIZE, ()) if given and isinstance(given[0], Answer) else None


def _constant(node: Any, given: list[Any], doing: str) -> Any:
    for attribute in node.attribute:
        if attribute.name == "value":
            return array_of(attribute.t, doing)
    return None


OPERATORS: dict[tuple[str, str], Callable[..., Any]] = {
    ("ai.onnx", "Identity"): _same,
    ("ai.onnx", "Cast"): _cast,
    ("ai.onnx", "Concat"): _concat,
    ("ai.onnx", "Gather"): _select,
    ("ai.onnx", "ArgMax"): _argmax,
    ("ai.onnx", "Reshape"): _reshape,
    ("ai.onnx", "Constant"): _constant,
    **{("ai.onnx", how.name): _arithmetic(how.name) for how in ARITHMETIC.values()},
    # Softmax is not among them: ONNX Runtime's own is off by several units in the last place, in
    # a way that depends on the processor.
    **{("ai.onnx", name): _function(step) for step, name in FUNCTIONS.items()},
    ("ai.onnx.ml", "Normalizer"): _normalizer,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): _select,
    ("ai.onnx.ml", "ZipMap"): _same,
    **{("ai.onnx.ml", name): _trees for name in TREES},
}
"""Domain and name of every operator that we read → what becomes of its inputs."""
