"""CatBoost's trees, symmetric and of any shape.

x is cast to float32 and goes right where x > border. NaN goes where its *feature* says. Leaf values
are summed in float64, tree after tree, then multiplied by the scale, then the bias is added.
Categories are known by a hash of their label. They are compared one by one (one-hot), or replaced
by statistics (CTR): a statistic of one feature is a set of its labels for each border, one of
several features together a look-up column. Text and embedding features are refused.

.cbm and .json files are read without CatBoost. A file's machine predicts as the class that fits
its loss does: labels for a classification, the response for a regression.
"""

from __future__ import annotations

import functools
import string
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, UnsupportedModelError
from ...machine import (
    CategorySets,
    Columns,
    DecisionMachine,
    Rule,
    Trees,
    layout,
    stored_cover,
)
from ...machine.cover import cover_above
from ...machine.label_hash import label_hash
from .ctr_tests import CtrTests
from .fields import INFO
from .objectives import output_of
from .parts import MOST_FEATURES, Parts, refuse
from .read_cbm import MAGIC, parse_cbm
from .read_json import parse_json
from .releases import RELEASES, release_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

CLASSES = ("CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker", "CatBoost")


def read_catboost(model: Any) -> DecisionMachine:
    """The machine of a fitted CatBoost model."""
    names = [cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("catboost")]
    kind = next((name for name in names if name in CLASSES), None)
    if kind is None:
        raise UnsupportedModelError(
            f"reading a CatBoost {type(model).__name__}",
            "it is not one of CatBoost's models",
            f"convert one of {', '.join(CLASSES)}",
        )
    doing = f"reading a CatBoost {kind}"
    if not model.is_fitted():
        raise InputError(doing, "it is not fitted", "call fit first")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cbm"
        model.save_model(str(path))
        data = path.read_bytes()
    return _machine(parse_cbm(data, doing), kind, f"CatBoost {kind}", doing)


def read_catboost_bytes(data: bytes, source: str) -> DecisionMachine:
    """The machine of the contents of a .cbm or a .json file."""
    doing = f"reading the CatBoost model {source}"
    parse = parse_cbm if data[:4] == MAGIC else parse_json
    return _machine(parse(data, doing), None, f"CatBoost file {source}", doing)


def looks_like_catboost(data: bytes) -> bool:
    """Whether a file's contents are CatBoost's .cbm or .json."""
    if data[:4] == MAGIC:
        return True
    return (
        data[:64].lstrip()[:1] == b"{"
        and b'"features_info"' in data
        and (b'"oblivious_trees"' in data or b'"scale_and_bias"' in data)
    )


def _machine(parts: Parts, kind: str | None, source: str, doing: str) -> DecisionMachine:
    if parts.other_features:
        raise UnsupportedModelError(
            doing,
            f"the feature {parts.other_features[0]!r} is text or an embedding",
            "train without text and embedding features, or turn them into numbers first",
        )
    INFO.check(parts.info, doing, "model_info")
    RELEASES.note(release_of(parts.info), doing)
    _check_numbers(parts, doing)
    names = _feature_names(parts, doing)
    nodes = parts.nodes
    found = layout(nodes.left, nodes.right, nodes.start, doing)
    tests = _Tests(parts, names, doing)
    asked = nodes.bin[found.tests]
    tree = np.repeat(np.arange(len(nodes.start) - 1), np.diff(found.test_start))
    tests.check(asked, tree, found.tests - nodes.start[tree], doing)
    leaf_tree = np.repeat(np.arange(len(nodes.start) - 1), np.diff(found.test_start) + 1)
    rows = nodes.row[found.leaves]
    # Left of a test is x ≤ border; a member column answers 1 where x is the label asked for.
    output, V = output_of(parts, parts.leaf_values[rows], kind, doing)
    trees = Trees(found.test_start, leaf_ids=rows - nodes.first_row[leaf_tree])
    return DecisionMachine(
        columns=tests.columns(),
        selection=tests.column[asked],
        t=tests.t[asked],
        missing=tests.missing[asked],
        children=found.children,
        V=V,
        trees=trees,
        output=output,
        source=source,
        cover=None
        if parts.leaf_weights is None
        else stored_cover(
            *cover_above(parts.leaf_weights[rows], found.children, trees), found.test_start
        ),
    )


class _Tests:
    """All tests of a model, numbered as CatBoost does: the column, threshold and NaN's way."""

    def __init__(self, parts: Parts, names: dict[int, str], doing: str) -> None:
        self.parts = parts
        self.names = names
        flats = [f.flat for f in parts.features]
        self.n_features = max(flats, default=-1) + 1
        self.categories = {f.flat: f.values for f in parts.cats}
        n_borders = [len(f.borders) for f in parts.floats]
        n_values = [len(f.values) for f in parts.cats]
        n_members = sum(n_values)
        self.ctrs = CtrTests(parts, names, self.n_features + n_members, doing)
        self.categories |= self.ctrs.labels
        self.column: Int[np.ndarray, "b"] = np.concatenate(
            [
                np.repeat([f.flat for f in parts.floats], n_borders),
                self.n_features + np.arange(n_members),
                self.ctrs.column,
            ]
        ).astype(np.int32)
        self.t: Float[np.ndarray, "b"] = np.concatenate(
            [f.borders for f in parts.floats] + [np.full(n_members, 0.5, np.float32), self.ctrs.t]
        ).astype(np.float32)
        self.missing: Int[np.ndarray, "b"] = np.concatenate(
            [
                np.repeat([1 if f.nan_goes_right else -1 for f in parts.floats], n_borders),
                np.full(n_members + len(self.ctrs.t), -1),
            ]
        ).astype(np.int8)

    def check(self, asked: np.ndarray, tree: np.ndarray, node: np.ndarray, doing: str) -> None:
        """Every test asked must be one that the model has."""
        bad = (asked < 0) | (asked >= len(self.t))
        if np.any(bad):
            j = int(np.argmax(bad))
            refuse(
                doing,
                f"node {node[j]} of tree {tree[j]} asks test {asked[j]}, which the model does not "
                "have",
            )

    def columns(self) -> Columns:
        """A column for each feature, each label that a test asks for, and each CTR's tests."""
        values = [(f.flat, i) for f in self.parts.cats for i in range(len(f.values))]
        one_hot = [(flat, Rule.MEMBER, (position,), (1,), -1) for flat, position in values]
        keys = [(f, Rule.VALUE) for f in range(self.n_features)] + one_hot + self.ctrs.keys
        names, categories = self.names, self.categories
        is_named = any(name != str(flat) for flat, name in names.items())
        empty = Columns(
            self.n_features,
            np.float32,
            feature=np.empty(0, np.int32),
            names=tuple(names[f] for f in range(self.n_features)) if is_named else None,
            sets=CategorySets(np.zeros(1), np.empty(0), np.empty(0), np.empty(0)),
            categories={flat: self._labels(labels) for flat, labels in categories.items()},
            encodes_arrays=bool(self.parts.cats),
            label_hash="catboost" if self.parts.cats else "",
            look_ups=self.ctrs.look_ups,
        )
        return empty.with_keys(keys)

    def _labels(self, values: np.ndarray) -> tuple[str | int, ...]:
        """The labels by their text where the file keeps it or it is easily found, else by hash.

        Labels are matched by hash all the same, so that a text serves readers alone.
        """
        texts = {**_short_labels(), **self.parts.texts}
        return tuple(
            texts[value] if value in texts and label_hash(texts[value]) == value else value
            for value in values.tolist()
        )


@functools.cache
def _short_labels() -> dict[int, str]:
    """Hash → text of the labels most often met: small integers and single letters."""
    texts = [*map(str, range(-1, 1000)), *string.ascii_letters]
    return {label_hash(text): text for text in texts}


def _check_numbers(parts: Parts, doing: str) -> None:
    borders = [f.borders for f in parts.floats]
    for what, numbers in (
        ("a border", np.concatenate(borders) if borders else np.empty(0)),
        ("a leaf value", parts.leaf_values),
        ("the scale or the bias", np.append(parts.bias, parts.scale)),
    ):
        if not np.all(np.isfinite(numbers)):
            refuse(doing, f"{what} is not a finite number")
    if len(parts.bias) != parts.leaf_values.shape[1]:
        refuse(doing, f"{len(parts.bias)} biases for {parts.leaf_values.shape[1]} outputs")


def _feature_names(parts: Parts, doing: str) -> dict[int, str]:
    """The name of every column of the data; its number where it has none."""
    features = parts.features
    flats = [f.flat for f in features]
    if len(set(flats)) < len(flats) or any(not 0 <= flat < MOST_FEATURES for flat in flats):
        refuse(doing, "two features that claim one column, or an impossible column")
    names = {flat: str(flat) for flat in range(max(flats, default=-1) + 1)}
    return names | {f.flat: f.name for f in features if f.name}
