"""Labels in an ONNX graph: an input for each feature, and LabelEncoder for those given as labels.

A feature of texts is an input of strings, one of numbers that are labels an input of floats. Its
labels become their codes; what the machine reads as no label at all is the empty text, or NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine.label_words import labels_of

if TYPE_CHECKING:
    from ...machine import Columns
    from ..limits import Limits

LABELS = ("text", "codes")
TAKEN = ("X", "sums", "scores", "label", "probabilities")
"""Names of other tensors of the graph, besides those that `is_taken` knows by how they start."""
CODES = (
    "write the graph for codes instead (labels='codes', dm convert --labels codes), and give it "
    "what machine.features(table) gives"
)


def has_labels(columns: Columns) -> bool:
    """Whether a feature is given as labels."""
    return bool(columns.categories or columns.table_categories or columns.encodes_arrays)


def input_names(columns: Columns) -> list[str]:
    """What the inputs are called: as the features are, or x0, x1 …; never as another tensor."""
    names = columns.names or tuple(f"x{i}" for i in range(columns.n_features))
    found: list[str] = []
    for name in names:
        while name in TAKEN or name in found or name.startswith(("step", "constant", "code")):
            name += "_"
        found.append(name or "_")
    return found


def label_inputs(columns: Columns, limits: Limits) -> tuple[list[Any], list[Any], list[Any]]:
    """The graph's inputs, the nodes that make X of them, and constants for these nodes."""
    from onnx import TensorProto, helper, numpy_helper

    kind = TensorProto.DOUBLE if columns.dtype == np.float64 else TensorProto.FLOAT
    inputs, nodes, parts = [], [], []
    nan = numpy_helper.from_array(np.array(np.nan, np.float32), "code_nan")
    for feature, name in enumerate(input_names(columns)):
        labels = _labels(columns, feature, limits)
        if labels is None:
            inputs.append(helper.make_tensor_value_info(name, kind, [None, 1]))
            parts.append(name)
            continue
        is_text = isinstance(labels[0][0], str) if labels else True
        element = TensorProto.STRING if is_text else TensorProto.FLOAT
        inputs.append(helper.make_tensor_value_info(name, element, [None, 1]))
        made = f"code{feature}"
        unknown = -1.0 if _tells_unknown_apart(columns) else float("nan")
        keys, values = [key for key, _ in labels], [float(code) for _, code in labels]
        attributes: dict[str, Any] = {"keys_strings" if is_text else "keys_floats": keys}
        encoder = helper.make_node(
            "LabelEncoder",
            [name],
            [made],
            domain="ai.onnx.ml",
            values_floats=values,
            default_float=unknown,
            **attributes,
        )
        nodes.append(encoder)
        if not is_text:
            nodes.append(helper.make_node("IsNaN", [name], [f"{made}_none"]))
            chosen = [f"{made}_none", "code_nan", made]
            nodes.append(helper.make_node("Where", chosen, [f"{made}_or_none"]))
            made = f"{made}_or_none"
        if kind == TensorProto.DOUBLE:
            nodes.append(helper.make_node("Cast", [made], [f"{made}_wide"], to=kind))
            made = f"{made}_wide"
        parts.append(made)
    nodes.append(helper.make_node("Concat", parts, ["X"], axis=1))
    return inputs, nodes, [nan]


def _tells_unknown_apart(columns: Columns) -> bool:
    """Whether a label that the model does not know is other than no label."""
    return not columns.refuses_new_labels and columns.table_categories is None


def _labels(
    columns: Columns, feature: int, limits: Limits
) -> list[tuple[str | float, float]] | None:
    """The labels of a feature as keys of LabelEncoder, with their codes; None for numbers."""
    name = columns.feature_name(feature)
    tables = columns.table_categories
    if tables and len(columns.member_features) != len(tables):
        limits.refuse(
            "columns.table_categories: labels of categorical columns without the names of their "
            "features, and not every one of them is tested",
            CODES,
        )
    labels = labels_of(columns, feature)
    if labels is None:
        return None
    if columns.label_hash:
        limits.refuse(
            f"columns.label_hash: the labels of {name} are matched by CatBoost's hash, which ONNX "
            "does not have",
            CODES,
        )
    texts = [label for label in labels if label is not None]
    if all(isinstance(label, str) for label in texts):
        found: list[tuple[str | float, float]] = [
            ("" if label is None else label, code) for code, label in enumerate(labels)
        ]
        return found if "" in [key for key, _ in found] else [*found, ("", float("nan"))]
    numbers = [
        isinstance(label, (int, float, np.number)) and float(np.float32(label)) == label
        for label in labels
    ]
    if not all(numbers):
        limits.refuse(
            f"the labels of {name}, {listed_labels(labels)}: neither all texts nor all numbers "
            "that float32 holds",
            CODES,
        )
    return [(float(label), code) for code, label in enumerate(labels)]


def listed_labels(labels: tuple[Any, ...]) -> str:
    """The first few labels."""
    return ", ".join(map(repr, labels[:4])) + (" …" if len(labels) > 4 else "")
