"""Our own file: the machine's arrays in a safetensors container, all else as JSON in its header.

`machine.schema` says what the file holds and how to change it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...files.atomic import write_atomically
from ...machine import Assembly, schema
from ...machine.schema import label_to_json, number_to_json, parameter_to_json

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from ...machine import Accepted, Columns, DecisionMachine, Output

DOING = "saving a machine"
ALIGNMENT = 8


def save(machine: DecisionMachine | Assembly, path: str | os.PathLike[str]) -> None:
    """Write the machine to a file, atomically; see `DecisionMachine.save`."""
    write_atomically(path, _parts(machine))


def dm_bytes(machine: DecisionMachine | Assembly) -> bytes:
    """The content of the machine's file."""
    return b"".join(_parts(machine))


def _parts(machine: DecisionMachine | Assembly) -> Iterator[bytes | memoryview]:
    texts, arrays = _content(machine)
    metadata = {
        "format": schema.FORMAT,
        "version": str(schema.VERSION),
        "machine": json.dumps(texts, allow_nan=False, separators=(",", ":")),
    }
    return container(arrays, metadata)


def _content(machine: DecisionMachine | Assembly) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file says of a machine, and its arrays."""
    if isinstance(machine, Assembly):
        return _assembly(machine)
    texts = {
        "columns": _columns(machine.columns),
        "output": _output(machine.output),
        "source": machine.source,
    }
    return texts, _arrays(machine)


def _assembly(assembly: Assembly) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    arrays = {f"{schema.NUMBERS}{name}": array for name, array in assembly.numbers.items()}
    members = []
    for i, member in enumerate(assembly.members):
        texts, held = _content(member)
        members.append(texts)
        arrays |= {f"{schema.MEMBERS}{i}.{name}": array for name, array in held.items()}
    classes = None
    if assembly.classes is not None:
        classes = _classes(assembly.classes, 0)
        if assembly.classes.dtype.kind in "biuf":
            arrays[f"{schema.CLASSES}0"] = assembly.classes
    texts = {
        "assembly": {
            "rule": assembly.rule,
            "words": [[name, list(words)] for name, words in assembly.words.items()],
            "classes": classes,
            "members": members,
        },
        "source": assembly.source,
    }
    return texts, arrays


def container(
    arrays: dict[str, np.ndarray], metadata: dict[str, str]
) -> Iterator[bytes | memoryview]:
    """A safetensors file: its header, then the arrays, the widest first so that all are aligned."""
    little = {
        name: np.asarray(a, a.dtype.newbyteorder("<"), order="C") for name, a in arrays.items()
    }
    order = sorted(little, key=lambda name: (-little[name].itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    at = 0
    for name in order:
        array = little[name]
        header[name] = {
            "dtype": schema.NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % ALIGNMENT)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        if little[name].size:
            yield little[name].reshape(-1).view(np.uint8).data


def _arrays(machine: DecisionMachine) -> dict[str, np.ndarray]:
    """Every array of the machine by its name in the schema."""
    found: dict[str, np.ndarray] = {}
    if machine.is_oblique:
        S = machine.selection
        found |= {f"selection.{name}": getattr(S, name) for name in ("data", "indices", "indptr")}
    else:
        found["selection"] = machine.selection
    for name in schema.ARRAYS:
        if name.startswith("selection"):
            continue
        value: Any = machine
        for attribute in name.split("."):
            value = getattr(value, attribute) if value is not None else None
        if value is not None:
            found[name] = value
    for name, array in found.items():
        if schema.NAMES.get(array.dtype) not in schema.ARRAYS[name].dtypes:
            raise UnsupportedModelError(
                DOING,
                f"{name} of dtype {array.dtype}",
                f"use one of {', '.join(schema.ARRAYS[name].dtypes)}",
            )
    for i, labels in enumerate(machine.output.classes or ()):
        if labels.dtype.kind in "biuf":
            found[f"{schema.CLASSES}{i}"] = labels
    return found


def _columns(columns: Columns) -> dict[str, Any]:
    if columns.integers_as not in (np.float32, np.float64):
        raise UnsupportedModelError(
            DOING,
            f"columns.integers_as = {columns.integers_as}",
            "have integers pass through float32 or float64",
        )
    sets = columns.sets
    return {
        "n_features": columns.n_features,
        "dtype": columns.dtype.name,
        "names": None if columns.names is None else list(columns.names),
        "categories": [
            [int(feature), _labels(labels, f"columns.categories[{feature}]")]
            for feature, labels in columns.categories.items()
        ],
        "absent": number_to_json(columns.absent),
        "missing_value": number_to_json(columns.missing_value),
        "integers_as": columns.integers_as.name,
        "table_categories": None
        if columns.table_categories is None
        else [
            _labels(labels, f"columns.table_categories[{i}]")
            for i, labels in enumerate(columns.table_categories)
        ],
        "encodes_arrays": bool(columns.encodes_arrays),
        "label_hash": columns.label_hash,
        "refuses_new_labels": bool(columns.refuses_new_labels),
        "sets": None
        if sets is None
        else {"negative_fractions": bool(sets.negative_fractions), "whole": bool(sets.whole)},
        "edges": [
            [int(feature), [number_to_json(bound) for bound in bounds]]
            for feature, bounds in columns.edges.items()
        ],
        "accepted": None if columns.accepted is None else _accepted(columns.accepted),
    }


def _accepted(accepted: Accepted) -> dict[str, Any]:
    return {
        "low": [number_to_json(x) for x in accepted.low],
        "high": [number_to_json(x) for x in accepted.high],
        "missing": accepted.missing.tolist(),
        "needed": accepted.needed.tolist(),
        "refused": [[feature, list(codes)] for feature, codes in accepted.refused.items()],
        "ignores_further": bool(accepted.ignores_further),
        "blocks": [[list(features), dtype] for features, dtype in accepted.blocks],
        "plain": list(accepted.plain),
    }


def _output(output: Output) -> dict[str, Any]:
    return {
        "dtype": output.dtype.name,
        "base_first": bool(output.base_first),
        "divisor": number_to_json(output.divisor),
        "scale": number_to_json(output.scale),
        "aggregate": output.aggregate,
        "link": output.link,
        "link_params": [parameter_to_json(p) for p in output.link_params],
        "decision": output.decision,
        "decision_params": [number_to_json(p) for p in output.decision_params],
        "groups": list(output.groups),
        "squeeze": bool(output.squeeze),
        "classes": None
        if output.classes is None
        else [_classes(labels, i) for i, labels in enumerate(output.classes)],
    }


def _classes(labels: np.ndarray, group: int) -> dict[str, Any]:
    """The labels of a group: their dtype, and the labels themselves where they are not numbers."""
    name = f"output.classes[{group}]"
    known = labels.dtype.newbyteorder("<") in schema.NAMES or labels.dtype.kind in "UO"
    if labels.ndim != 1 or not known:
        raise UnsupportedModelError(
            DOING,
            f"{name} of dtype {labels.dtype} and {labels.ndim} dimensions",
            "give the labels of classes as a vector of text, numbers or truth values",
        )
    if labels.dtype.kind in "biuf":
        return {"dtype": labels.dtype.str}
    width = labels.dtype.itemsize // 4
    if labels.dtype.kind == "U" and len(labels) * width > schema.TEXT_LIMIT:
        raise UnsupportedModelError(
            DOING,
            f"{name} of {len(labels)} texts, {width} characters wide",
            "give them as an array of objects, which has no width",
        )
    return {"dtype": labels.dtype.str, "labels": _labels(labels.tolist(), name)}


def _labels(labels: Any, name: str) -> list[Any]:
    found = []
    for label in labels:
        try:
            found.append(label_to_json(label))
        except TypeError as error:
            raise UnsupportedModelError(
                DOING,
                f"{name} has the label {str(label)[:60]!r} of type {error}",
                "use labels that are text, whole numbers of 64 bits, floats, truth values or None",
            ) from None
    return found


def dm_content(machine: DecisionMachine, suffix: str) -> bytes:
    """The bytes of a `.dm` file, whatever its name ends in."""
    return dm_bytes(machine)
