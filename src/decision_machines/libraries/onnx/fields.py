"""Every field of ONNX's messages and every attribute of the operators that we read.

A field or an attribute is read, or idle and why; every other one is refused by its name, also one
that the installed package onnx does not know by name.
"""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedModelError
from ..fields import Fields, fields, unknown_field

NOTE = "a note for people"
COMPUTED = "where and on what the graph runs, not what it computes"
HITS = "how often training reached a node; a hint for faster engines"

# ---------------------------------------------------------------------- attributes

NODES = (
    "nodes_falsenodeids",
    "nodes_featureids",
    "nodes_missing_value_tracks_true",
    "nodes_modes",
    "nodes_truenodeids",
    "post_transform",
)
NODES_3 = (
    *NODES,
    "base_values",
    "base_values_as_tensor",
    "nodes_nodeids",
    "nodes_treeids",
    "nodes_values",
    "nodes_values_as_tensor",
)
HIT_RATES = dict.fromkeys(("nodes_hitrates", "nodes_hitrates_as_tensor"), HITS)


def _weights(kind: str) -> tuple[str, ...]:
    ends = ("ids", "nodeids", "treeids", "weights", "weights_as_tensor")
    return tuple(f"{kind}_{end}" for end in ends)


ATTRIBUTES: dict[tuple[str, str], Fields] = {
    ("ai.onnx", "Identity"): fields(),
    ("ai.onnx", "Cast"): fields(
        "to",
        idle=dict.fromkeys(("saturate", "round_mode"), "for numbers of 8 bits, which we refuse"),
    ),
    ("ai.onnx", "Concat"): fields("axis"),
    ("ai.onnx", "Gather"): fields("axis"),
    ("ai.onnx", "ArgMax"): fields(
        "axis", "select_last_index", idle={"keepdims": "labels stay one to a row"}
    ),
    ("ai.onnx", "Reshape"): fields(idle={"allowzero": "no shape that we read has a 0"}),
    # Constants of other forms are not read: what is made from them is refused.
    ("ai.onnx", "Constant"): fields(
        "value",
        "sparse_value",
        "value_float",
        "value_floats",
        "value_int",
        "value_ints",
        "value_string",
        "value_strings",
    ),
    **{("ai.onnx", name): fields() for name in ("Add", "Sub", "Mul", "Div")},
    **{("ai.onnx", name): fields() for name in ("Neg", "Exp", "Sigmoid")},
    ("ai.onnx.ml", "Normalizer"): fields("norm"),
    ("ai.onnx.ml", "ArrayFeatureExtractor"): fields(),
    ("ai.onnx.ml", "ZipMap"): fields(
        idle=dict.fromkeys(
            ("classlabels_int64s", "classlabels_strings"), "names of columns that we number"
        )
    ),
    ("ai.onnx.ml", "TreeEnsembleClassifier"): fields(
        *NODES_3, *_weights("class"), "classlabels_int64s", "classlabels_strings", idle=HIT_RATES
    ),
    ("ai.onnx.ml", "TreeEnsembleRegressor"): fields(
        *NODES_3, *_weights("target"), "aggregate_function", "n_targets", idle=HIT_RATES
    ),
    ("ai.onnx.ml", "TreeEnsemble"): fields(
        *NODES,
        "aggregate_function",
        "leaf_targetids",
        "leaf_weights",
        "membership_values",
        "n_targets",
        "nodes_falseleafs",
        "nodes_splits",
        "nodes_trueleafs",
        "tree_roots",
        idle=HIT_RATES,
    ),
}
"""Domain and name of every operator that we read → its attributes."""
TWO_INPUTS = ("Add", "Sub", "Mul", "Div", "Gather", "Reshape", "ArrayFeatureExtractor")
"""The operators of two inputs; Concat has any number of them, Constant none, all others one."""

# ---------------------------------------------------------------------- messages

_NOTES = dict.fromkeys(("name", "doc_string", "metadata_props"), NOTE)
TENSOR = Fields(
    dict.fromkeys(
        (
            "dims",
            "data_type",
            "data_location",
            "external_data",
            "raw_data",
            *(f"{kind}_data" for kind in ("float", "int32", "int64", "uint64", "double", "string")),
        )
    ),
    _NOTES,
)
VALUE = fields(
    "name",
    type=fields(
        tensor_type=fields("elem_type", "shape"),
        idle={"denotation": NOTE},
    ),
    idle={"doc_string": NOTE, "metadata_props": NOTE},
)
ATTRIBUTE = Fields(
    {
        **dict.fromkeys(("name", "type", "f", "i", "s", "floats", "ints", "strings")),
        "t": TENSOR,
    },
    {"doc_string": NOTE},
)
NODE = Fields(
    {**dict.fromkeys(("input", "output", "op_type", "domain")), "attribute": ATTRIBUTE},
    {**_NOTES, "device_configurations": COMPUTED},
)
GRAPH = Fields(
    {"node": NODE, "initializer": TENSOR, "input": VALUE, "output": VALUE},
    {**_NOTES, "value_info": "types and shapes that follow from the graph"},
)
MODEL = Fields(
    {
        "graph": Fields(any_key=True),
        "opset_import": fields("domain", "version"),
        "ir_version": None,
    },
    {
        **_NOTES,
        "producer_name": NOTE,
        "producer_version": NOTE,
        "domain": NOTE,
        "model_version": NOTE,
        "training_info": "a graph of training, which predictions do not run",
        "configuration": COMPUTED,
    },
)
"""What a model may hold; nodes of other operators are checked as far as outputs need them."""


def check_model(model: Any, doing: str) -> None:
    """Refuse fields of the model and of its graph that we do not know."""
    _check(MODEL, model, doing, "model")
    for name, known in GRAPH.read.items():
        if known is not None and name != "node":
            for i, item in enumerate(getattr(model.graph, name)):
                # Outputs of ZipMap are sequences of maps; what we make of them has no type.
                if name != "output":
                    _check(known, item, doing, f"graph.{name}[{i}]")
    GRAPH.check_keys(_names(model.graph, doing, "graph"), doing, "graph")


def check_node(node: Any, domain: str, number: int, doing: str) -> None:
    """Refuse attributes and inputs that an operator which we read had not when we learned it."""
    path = f"graph.node[{number}]"
    known = ATTRIBUTES[domain, node.op_type]
    place = f"{path} ({node.op_type})"
    known.check_keys((a.name for a in node.attribute), doing, place)
    _check(NODE, node, doing, path)
    most = 2 if node.op_type in TWO_INPUTS else 1
    if node.op_type != "Concat" and len(node.input) > most:
        raise UnsupportedModelError(
            doing,
            f"{place} has {len(node.input)} inputs where {most} are known",
            "update decision-machines, or convert the model for an older version of the operators",
        )


def _check(known: Fields, message: Any, doing: str, path: str) -> None:
    known.check_keys(_names(message, doing, path), doing, path)
    for name, below in known.read.items():
        if below is None or below.any_key:
            continue
        field = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            continue
        value = getattr(message, name)
        if hasattr(value, "DESCRIPTOR"):
            if message.HasField(name):
                _check(below, value, doing, f"{path}.{name}")
        else:
            for i, item in enumerate(value):
                _check(below, item, doing, f"{path}.{name}[{i}]")


def _names(message: Any, doing: str, path: str) -> list[str]:
    """The fields that a message has; one without a name is refused by its number."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    for unknown in UnknownFieldSet(message):
        raise unknown_field(doing, f"{path}, field number {unknown.field_number},")
    return [field.name for field, _ in message.ListFields()]
