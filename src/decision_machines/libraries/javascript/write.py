"""A machine as one ES module without dependencies, for browsers and node.

It is the evaluator of the explorer page, the machine as JSON, and functions of a row. Margins and
exit leaves are the machine's, to the bit; responses call the exponential of the JavaScript
engine, which may differ in the last place.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...files.atomic import write_atomically
from ...machine import Rule
from ...machine.label_hash import label_hash
from ...machine.label_words import labels_of
from ...machine.schema import number_to_json
from ..limits import Limits, margins_only
from .machine_json import machine_json, packed
from .modules import evaluator, joined, source

if TYPE_CHECKING:
    import os

    from ...machine import Columns, DecisionMachine

KIND = "JavaScript"


def to_javascript(
    machine: DecisionMachine, path: str | os.PathLike[str], *, margins: bool = False
) -> Path:
    """Write the module; see `DecisionMachine.to_javascript`."""
    content = javascript_text(machine, margins=margins)
    write_atomically(path, [content.encode("ascii")])
    return Path(path)


def javascript_content(machine: DecisionMachine, suffix: str, *, margins: bool = False) -> bytes:
    """The bytes of the module, for `dm convert`."""
    return javascript_text(machine, margins=margins).encode("ascii")


def javascript_text(machine: DecisionMachine, *, margins: bool = False) -> str:
    """The text of the module, in ASCII: whatever a name holds, it is data and not code."""
    if np.any(machine.columns.rule == Rule.LOOK_UP):
        Limits(machine, KIND).refuse(
            "columns.look_ups: statistics of combinations of features",
            "train CatBoost with max_ctr_complexity=1, or keep the machine in our own file",
        )
    machine = margins_only(machine) if margins else machine
    found = machine_json(machine, {})
    found["reading"] = _reading(machine.columns)
    found["classes"] = (
        None
        if machine.output.classes is None
        else [[_plain(v) for v in labels.tolist()] for labels in machine.output.classes]
    )
    found["squeeze"] = bool(machine.output.squeeze)
    data = json.dumps(found, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # As the text of a string a machine of any size is parsed fast, and cannot be read as code.
    literal = json.dumps(data, ensure_ascii=True).replace("</", "<\\/")
    code = joined([*evaluator(), source("city_hash.js"), source("reading.js")])
    text = f"{code}\nconst DATA = JSON.parse({literal});\n{source('model.js')}"
    return "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text)


def _plain(label: Any) -> Any:
    """A label that JSON has, or its text."""
    is_plain = isinstance(label, (str, bool, int)) or (
        isinstance(label, float) and np.isfinite(label)
    )
    return label if is_plain else str(label)


def _reading(columns: Columns) -> dict[str, Any]:
    """How rows that people have become the codes that columns read."""
    accepted = columns.accepted
    labels = {f: labels_of(columns, f) for f in range(columns.n_features) if f not in columns.edges}
    return {
        "labels": {
            str(f): [
                (label_hash(v) if isinstance(v, str) else int(v))
                if columns.label_hash
                else _plain(v)
                for v in found
            ]
            for f, found in labels.items()
            if found is not None
        },
        "hashes": bool(columns.label_hash),
        "encodesArrays": columns.encodes_arrays,
        "refusesNew": columns.refuses_new_labels,
        "unknownIsMissing": columns.table_categories is not None,
        "edges": {str(f): [number_to_json(v) for v in found] for f, found in columns.edges.items()},
        "accepted": None
        if accepted is None
        else {
            "low": packed(accepted.low),
            "high": packed(accepted.high),
            "missing": packed(accepted.missing),
            "refused": {str(f): list(codes) for f, codes in accepted.refused.items()},
        },
    }
