"""YDF's trees: from messages, each node before its children, to a machine's parts.

A test that holds goes to the positive child, our right; the negative child is our left. x ≥ t
holds in float32. A set of labels is asked by their places in the dictionary; what is missing goes
where the node says (na_value).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Accepted, CategorySets, Columns, Layout, Rule, layout
from ..thresholds import strictly_below
from .fields import NODE
from .wire import decode

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from .features import Feature
    from .parts import Parts

REFUSED = {
    "na": "whether a value is missing (na_condition)",
    "oblique": "a weighted sum of features (oblique_condition)",
    "sequence": "a sequence of vectors (numerical_vector_sequence)",
}
"""Conditions that no machine of one column for each test has, in words."""


@dataclass
class Nodes:
    """All nodes of all trees, tree after tree, each before its children."""

    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=lambda: [0])
    messages: list[dict[str, Any]] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)


def read_nodes(parts: Parts) -> Nodes:
    """The nodes of as many trees as the header says, and no more."""
    n_trees = parts.forest.get("num_trees", 0)
    found = Nodes()
    messages = iter(parts.nodes)
    for tree in range(n_trees):
        first = len(found.messages)
        waiting: list[tuple[int, bool]] = [(-1, False)]
        while waiting:
            parent, is_right = waiting.pop()
            message = next(messages, None)
            if message is None:
                raise parts.fault(f"tree {tree} of {n_trees} (num_trees) ends before it should")
            number = len(found.messages)
            found.messages.append(decode(message, NODE, parts.doing))
            found.left.append(-1)
            found.right.append(-1)
            found.depth.append(found.depth[first + parent] + 1 if parent >= 0 else 0)
            if parent >= 0:
                (found.right if is_right else found.left)[first + parent] = number - first
            if "condition" in found.messages[-1]:
                waiting += [(number - first, True), (number - first, False)]
        found.start.append(len(found.messages))
    if next(messages, None) is not None:
        raise parts.fault(f"nodes after those of its {n_trees} trees (num_trees)")
    return found


@dataclass(frozen=True)
class Tests:
    """The tests of a forest, and whether YDF's fast engines would take them."""

    found: Layout
    columns: Columns
    selection: Int[np.ndarray, "J"]
    t: Float[np.ndarray, "J"]
    missing: Int[np.ndarray, "J"]
    imputes: Bool[np.ndarray, "J"]
    """Whether what is missing goes where the feature's replacement goes."""


@dataclass
class _Sets:
    """The distinct (feature, set) pairs among tests of labels."""

    places: dict[tuple[int, bytes], int] = field(default_factory=dict)
    features: list[int] = field(default_factory=list)
    members: list[np.ndarray] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)

    def place(self, number: int, feature: Feature, inside: Bool[np.ndarray, "n"]) -> int:
        """The set's own column, among those of sets."""
        key = (number, inside.tobytes())
        if key not in self.places:
            self.places[key] = len(self.features)
            outside = 1 if inside[0] else -1
            answers = np.zeros(len(feature.labels), np.int8)
            answers[: feature.n_labels] = np.where(inside, 1, -1)
            for label, twin in feature.twins.items():
                answers[twin] = answers[label]
            kept = np.flatnonzero(answers != outside)
            self.features.append(number)
            self.members.append(kept)
            self.answers.append(answers[kept])
            self.outside.append(outside)
        return self.places[key]

    def sets(self) -> CategorySets | None:
        if not self.features:
            return None
        return CategorySets(
            start=np.concatenate([[0], np.cumsum([len(m) for m in self.members])]),
            members=np.concatenate(self.members),
            answer=np.concatenate(self.answers),
            outside=np.array(self.outside, np.int8),
        )


def read_tests(nodes: Nodes, features: dict[int, Feature], parts: Parts) -> Tests:
    """Every test of the forest.

    Parameters
    ----------
    features
        The features by their columns in the data spec, in the order in which rows have them.
    """
    found = layout(
        np.array(nodes.left, np.int64),
        np.array(nodes.right, np.int64),
        np.array(nodes.start, np.int64),
        parts.doing,
    )
    place = {column: number for number, column in enumerate(features)}
    n, n_tests = len(features), len(found.tests)
    selection = np.zeros(n_tests, np.int64)
    t = np.full(n_tests, 0.5, np.float32)
    missing = np.zeros(n_tests, np.int8)
    imputes = np.zeros(n_tests, bool)
    sets = _Sets()
    for j, node in enumerate(found.tests.tolist()):
        held = nodes.messages[node]["condition"]
        at = held.get("attribute", 0)
        if at not in features:
            raise parts.fault(f"a condition reads column {at}, which is not an input feature")
        feature, condition = features[at], held.get("condition", {})
        if len(condition) != 1:
            raise parts.fault(f"a condition on {feature.name!r:.60} is of {len(condition)} types")
        kind, content = next(iter(condition.items()))
        if kind in REFUSED:
            raise parts.refuse(
                f"a condition asks for {REFUSED[kind]}",
                "train with split_axis='AXIS_ALIGNED' and without allow_na_conditions",
            )
        goes_right = bool(held.get("na_value", False))
        missing[j] = 1 if goes_right else -1
        if kind in ("contains", "bitmap"):
            inside = _inside(kind, content, feature, parts)
            selection[j] = n + sets.place(place[at], feature, inside)
            imputed = 0 <= feature.replacement < len(inside) and inside[int(feature.replacement)]
        else:
            bound = _bound(kind, content, feature, parts)
            selection[j], t[j] = place[at], strictly_below(np.array([bound], np.float32))[0]
            # The fast engines follow the node where a number is missing, but not a truth value.
            imputed = goes_right if kind == "higher" else feature.replacement >= bound
        imputes[j] = bool(imputed) == goes_right
    columns = Columns(
        n,
        np.float32,
        feature=np.concatenate([np.arange(n), np.array(sets.features, np.int64)]),
        rule=np.repeat([Rule.VALUE, Rule.MEMBER], [n, len(sets.features)]),
        names=tuple(feature.name for feature in features.values()),
        sets=sets.sets(),
        categories={
            number: feature.labels
            for number, feature in enumerate(features.values())
            if feature.labels
        },
        encodes_arrays=any(feature.labels for feature in features.values()),
        # YDF passes over columns that it does not read, as the label of a table of training rows.
        accepted=Accepted(
            np.full(n, -np.inf),
            np.full(n, np.inf),
            np.ones(n, bool),
            np.ones(n, bool),
            ignores_further=True,
        ),
    )
    return Tests(found, columns, selection, t, missing, imputes)


def _bound(kind: str, content: dict[str, Any], feature: Feature, parts: Parts) -> np.float32:
    """The number from which on a test of a number holds."""
    known = {"higher": "NUMERICAL", "true_value": "BOOLEAN", "discretized": "DISCRETIZED_NUMERICAL"}
    if known[kind] != feature.type:
        raise parts.fault(f"a condition {kind} on {feature.name!r:.60}, which is {feature.type}")
    if kind == "true_value":
        return np.float32(0.5)
    bound = content.get("threshold", 0)
    if kind == "discretized":
        if not 0 < bound <= len(feature.boundaries):
            raise parts.fault(f"a bin {bound} of {feature.name!r:.60}, which it does not have")
        bound = feature.boundaries[bound - 1]
    if np.isnan(bound) or bound == -np.inf:
        raise parts.fault(f"a threshold of {feature.name!r:.60} is {bound}")
    return np.float32(bound)


def _inside(
    kind: str, content: dict[str, Any], feature: Feature, parts: Parts
) -> Bool[np.ndarray, "n"]:
    """Which labels of the dictionary a set holds."""
    if feature.type != "CATEGORICAL":
        raise parts.fault(f"a set of labels for {feature.name!r:.60}, which is {feature.type}")
    inside = np.zeros(feature.n_labels, bool)
    if kind == "contains":
        places = np.array(content.get("elements", []), np.int64)
    else:
        bits = np.frombuffer(content.get("elements_bitmap", b""), np.uint8)
        places = np.flatnonzero(np.unpackbits(bits, bitorder="little")[: feature.n_labels])
    if len(places) and not (places.min() >= 0 and places.max() < feature.n_labels):
        raise parts.fault(f"a set of labels of {feature.name!r:.60} that it does not have")
    inside[places] = True
    return inside
