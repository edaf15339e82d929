"""The columns of a data spec that a model reads: numbers, truth values and labels.

Labels are texts; YDF matches an integer by its digits, so that each label of digits stands twice
among the categories, as text and as integer. No text at all and the empty text are missing; a text
that was not in the training data, or rarely, is the label `<OOD>`, the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .parts import Parts

TYPES = {
    0: "UNKNOWN",
    1: "NUMERICAL",
    2: "NUMERICAL_SET",
    3: "NUMERICAL_LIST",
    4: "CATEGORICAL",
    5: "CATEGORICAL_SET",
    6: "CATEGORICAL_LIST",
    7: "BOOLEAN",
    8: "STRING",
    9: "DISCRETIZED_NUMERICAL",
    10: "HASH",
    11: "NUMERICAL_VECTOR_SEQUENCE",
}
DTYPE_BOOL = 12
MOST_LABELS = 1 << 24
"""The positions of labels are float32."""


@dataclass(frozen=True)
class Feature:
    """A feature of the model."""

    name: str
    type: str
    replacement: float
    """What the fast engines put in for a missing value: a number, or the place of a label."""
    boundaries: list[float] = field(default_factory=list)
    """Where the bins of a discretised number begin, but for the first."""
    labels: tuple[Any, ...] = ()
    """The labels, those of YDF's dictionary first; the last one is the empty text."""
    twins: dict[int, int] = field(default_factory=dict)
    """Place of a label in YDF's dictionary → where it stands again, as an integer."""
    n_labels: int = 0
    """How many labels YDF's dictionary has."""


def feature_of(column: dict[str, Any], parts: Parts) -> Feature:
    """One column, or an error where the model reads what a machine cannot."""
    name = column.get("name", "")
    kind = TYPES.get(column.get("type", 0), str(column.get("type")))
    if kind in ("NUMERICAL", "DISCRETIZED_NUMERICAL"):
        with np.errstate(over="ignore"):
            mean = float(np.float32(column.get("numerical", {}).get("mean", 0.0)))
        found = column.get("discretized_numerical", {}).get("boundaries", [])
        return Feature(name, kind, mean, found)
    if kind == "BOOLEAN":
        counts = column.get("boolean", {})
        return Feature(
            name, kind, float(counts.get("count_true", 0) >= counts.get("count_false", 0))
        )
    if kind == "CATEGORICAL":
        return _categorical(name, column, parts)
    raise parts.refuse(
        f"the feature {name!r:.60} is of type {kind}",
        "train without it, or on numbers, truth values and labels that you make of it",
    )


def labels_of(column: dict[str, Any], parts: Parts) -> list[str]:
    """The labels of a categorical column in the order of YDF's dictionary, `<OOD>` first."""
    spec = column.get("categorical", {})
    name = column.get("name", "")
    n, items = spec.get("number_of_unique_values", 0), spec.get("items", [])
    if not 0 < n < MOST_LABELS or len(items) != n:
        raise parts.fault(f"the dictionary of {name!r:.60} has {len(items)} labels, not {n}")
    found: list[str | None] = [None] * n
    for item in items:
        place = item.get("value", {}).get("index", 0)
        if not 0 <= place < n or found[place] is not None:
            raise parts.fault(f"two labels of {name!r:.60}, or none, have the place {place}")
        try:
            found[place] = item.get("key", b"").decode()
        except UnicodeDecodeError:
            raise parts.refuse(
                f"a label of {name!r:.60} is not text: {item['key']!r:.40}",
                "train on labels that are UTF-8",
            ) from None
    if len(set(found)) != n:
        raise parts.fault(f"the dictionary of {name!r:.60} has a label twice")
    return [label or "" for label in found]


def _categorical(name: str, column: dict[str, Any], parts: Parts) -> Feature:
    spec = column.get("categorical", {})
    for setting in ("is_already_integerized", "offset_value_by_one_during_training"):
        if spec.get(setting):
            raise parts.refuse(
                f"the feature {name!r:.60} is categorical with {setting}",
                "train on the labels themselves, as text or as integers",
            )
    labels: list[Any] = list(labels_of(column, parts))
    n = len(labels)
    if "" in labels:
        raise parts.refuse(f"the empty text is a label of {name!r:.60}", "give it another name")
    twins = {}
    for place in range(n):
        twin = _twin(labels[place], column.get("dtype", 0) == DTYPE_BOOL)
        if twin is not None:
            twins[place] = len(labels)
            labels.append(twin)
    return Feature(
        name,
        "CATEGORICAL",
        float(spec.get("most_frequent_value", 0)),
        labels=(*labels, ""),
        twins=twins,
        n_labels=n,
    )


def _twin(label: str, is_truth: bool) -> int | None:
    """The integer, or truth value, that YDF would match with this label."""
    if is_truth:
        return {"true": True, "false": False}.get(label)
    if len(label) > 19 or not label.lstrip("-").isascii() or not label.lstrip("-").isdigit():
        return None
    number = int(label) if label.count("-") <= 1 else 0
    return number if str(number) == label and abs(number) < 2**63 else None
