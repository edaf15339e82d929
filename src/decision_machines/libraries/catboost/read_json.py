"""CatBoost's JSON export.

Numbers are read to the bit. CatBoost's own reader of this file is not as careful: a model loaded
back from JSON may answer differently in the last bit than the model that was saved.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from .ctr import EMPTY, MEAN, MEANS, TYPES, Combination, Ctr, CtrBase, CtrTable
from .fields import CTR_TABLE, DOCUMENT, NODE, SPLIT
from .parts import CatFeature, FloatFeature, Nodes, Parts, refuse, symmetric_nodes

NAN_TREATMENTS = ("AsIs", "AsFalse", "AsTrue")
WITHOUT_SCALE = [1.0, [0.0]]
"""Scale and bias where a file does not tell them, as CatBoost itself has it."""


def parse_json(data: bytes, doing: str) -> Parts:
    """The parts of a model from the bytes of a .json file."""
    try:
        model = json.loads(data)
    except (ValueError, RecursionError) as error:
        refuse(doing, f"it is not JSON ({error})")
    reader = _Reader(doing)
    model = reader.mapping(model, "the model")
    DOCUMENT.check(model, doing)
    features = reader.mapping(model.get("features_info"), "features_info")
    floats = [reader.float_feature(f) for f in reader.sequence(features, "float_features")]
    cats = [reader.cat_feature(f) for f in reader.sequence(features, "categorical_features")]
    ctrs = [reader.ctr(f) for f in reader.sequence(features, "ctrs")]
    others = [
        str(reader.mapping(f, kind).get("feature_id") or kind)
        for kind in ("text_features", "embedding_features")
        for f in reader.sequence(features, kind)
    ]
    tables = reader.mapping(model.get("ctr_data") or {}, "ctr_data")
    if len({ctr.base for ctr, _ in ctrs}) > len({identifier for _, identifier in ctrs}):
        raise UnsupportedModelError(
            doing,
            "two CTRs that share one table's name in ctr_data, which keeps one table alone",
            "save the model as .cbm, which keeps both",
        )
    scale, bias = reader.scale_and_bias(model.get("scale_and_bias", WITHOUT_SCALE))
    if "trees" in model:
        nodes, values, tests, weights = reader.free_trees(
            reader.sequence(model, "trees"), len(bias)
        )
    else:
        if "oblivious_trees" not in model:  # null in a model without trees
            refuse(doing, "it has neither oblivious_trees nor trees")
        trees = reader.sequence(model, "oblivious_trees")
        nodes, values, tests, weights = reader.symmetric_trees(trees, len(bias))
    reader.check_tests(tests, floats, cats)
    hashes = [reader.mapping(h, "a hash") for h in reader.sequence(features, "cat_features_hash")]
    return Parts(
        floats=[f for f, _ in floats],
        cats=[f for f, _ in cats],
        ctrs=[ctr for ctr, _ in ctrs],
        ctr_tables={
            ctr.base: reader.ctr_table(tables.get(identifier), ctr.base.kind)
            for ctr, identifier in ctrs
        },
        other_features=others,
        nodes=nodes,
        leaf_values=values,
        leaf_weights=weights if len(weights) == len(values) else None,
        scale=scale,
        bias=bias,
        info=reader.mapping(model.get("model_info", {}), "model_info"),
        texts={reader.hash(h.get("hash")): str(h.get("value")) for h in hashes},
    )


class _Reader:
    """Reads values whose types are checked, and says what was read when one is wrong."""

    def __init__(self, doing: str) -> None:
        self.doing = doing

    # ------------------------------------------------------------------ values

    def mapping(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            refuse(self.doing, f"{what} is {_short(value)} where an object is needed")
        return value

    def sequence(self, holder: dict[str, Any], key: str) -> list[Any]:
        value = holder.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            refuse(self.doing, f"{key} is {_short(value)} where a list is needed")
        return value

    def integer(self, holder: dict[str, Any], key: str) -> int:
        value = holder.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 31:
            refuse(self.doing, f"{key} is {_short(value)} where an integer is needed")
        return value

    def hash(self, value: Any) -> int:
        """A 32-bit hash, written with or without a sign."""
        if not isinstance(value, int) or not -(1 << 31) <= value < 1 << 32:
            refuse(self.doing, f"the hash {_short(value)} where 32 bits are needed")
        return value - (1 << 32) if value >> 31 > 0 else value

    def numbers(self, values: Any, what: str) -> np.ndarray:
        try:
            array = np.array(values if isinstance(values, list) else None)
        except ValueError:
            array = np.empty((0, 0))
        if array.shape == (0,):
            return np.empty(0)
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            refuse(self.doing, f"{what} is {_short(values)} where a list of numbers is needed")
        return array.astype(np.float64)

    # ------------------------------------------------------------------ features

    def float_feature(self, value: Any) -> tuple[FloatFeature, int]:
        feature = self.mapping(value, "a float feature")
        treatment, has_nans = feature.get("nan_value_treatment"), feature.get("has_nans")
        if treatment not in NAN_TREATMENTS or not isinstance(has_nans, bool):
            refuse(
                self.doing,
                f"a float feature whose nan_value_treatment is {_short(treatment)} and has_nans "
                f"{_short(has_nans)}",
            )
        with np.errstate(over="ignore"):
            borders = self.numbers(feature.get("borders"), "borders").astype(np.float32)
        return (
            FloatFeature(
                self.integer(feature, "flat_feature_index"),
                str(feature.get("feature_id", feature.get("feature_name", ""))),
                borders,
                has_nans and treatment == "AsTrue",
                index := self.integer(feature, "feature_index"),
            ),
            index,
        )

    def cat_feature(self, value: Any) -> tuple[CatFeature, int]:
        feature = self.mapping(value, "a categorical feature")
        values = [self.hash(v) for v in self.sequence(feature, "values")]
        return (
            CatFeature(
                self.integer(feature, "flat_feature_index"),
                str(feature.get("feature_id", feature.get("feature_name", ""))),
                np.array(values, np.int32),
                index := self.integer(feature, "feature_index"),
            ),
            index,
        )

    def ctr(self, value: Any) -> tuple[Ctr, str]:
        """A CTR, and the name of its table."""
        ctr = self.mapping(value, "a CTR")
        kind, identifier = ctr.get("ctr_type"), ctr.get("identifier")
        if kind not in TYPES or not isinstance(identifier, str):
            refuse(self.doing, f"a CTR of the type {_short(kind)}, called {_short(identifier)}")
        numbers = self.numbers(
            [ctr.get(key) for key in ("prior_numerator", "prior_denomerator", "shift", "scale")],
            "the numbers of a CTR",
        )
        cats: list[int] = []
        above: list[tuple[int, float]] = []
        equals: list[tuple[int, int]] = []
        for entry in self.sequence(ctr, "elements"):
            element = self.mapping(entry, "an element of a CTR")
            match element.get("combination_element"):
                case "cat_feature_value":
                    cats.append(self.integer(element, "cat_feature_index"))
                case "float_feature":
                    border = self.numbers([element.get("border")], "a border").astype(np.float32)
                    above.append((self.integer(element, "float_feature_index"), float(border[0])))
                case "cat_feature_exact_value":
                    label = self.hash(element.get("value"))
                    equals.append((self.integer(element, "cat_feature_index"), label))
                case other:
                    refuse(self.doing, f"a CTR of an element {_short(other)}")
        with np.errstate(over="ignore"):
            borders = self.numbers(ctr.get("borders"), "a CTR's borders").astype(np.float32)
        combination = Combination(tuple(cats), tuple(above), tuple(equals))
        target_border = self.integer(ctr, "target_border_idx")
        # Names of tables do not say how targets were divided, where CTRs may.
        classifier = ctr.get("target_border_classifier_idx", 0)
        base = CtrBase(combination, TYPES[kind], classifier if type(classifier) is int else 0)
        prior, denominator, shift, scale = numbers.tolist()
        return Ctr(base, target_border, prior, denominator, shift, scale, borders), identifier

    def ctr_table(self, value: Any, kind: int) -> CtrTable:
        table = self.mapping(value, "a table of a CTR")
        CTR_TABLE.check_keys(table, self.doing, "ctr_data")
        stride, flat = self.integer(table, "hash_stride"), self.sequence(table, "hash_map")
        width = 2 if kind in MEANS else stride - 1
        if stride < 2 or stride != width + 1 or len(flat) % stride:
            refuse(self.doing, f"a table of a CTR of {len(flat)} entries in rows of {stride}")
        texts = flat[::stride]
        if not all(isinstance(t, str) and t.isdecimal() and int(t) < 1 << 64 for t in texts):
            refuse(self.doing, "a hash in a table of a CTR that is not a number of 64 bits")
        keys = np.array([int(t) for t in texts], np.uint64)
        columns = [self.numbers(flat[i::stride], "counts of a CTR") for i in range(1, stride)]
        is_used = keys != EMPTY
        if kind in MEANS:
            rows = np.empty(len(keys), MEAN)
            rows["sum"], rows["count"] = columns
        else:
            rows = np.stack(columns, axis=1).astype(np.int32)
        denominator = self.integer(table, "counter_denominator")
        return CtrTable.sorted(keys[is_used], rows[is_used], denominator, self.doing)

    def scale_and_bias(self, value: Any) -> tuple[float, np.ndarray]:
        if not isinstance(value, list) or len(value) != 2:
            refuse(self.doing, f"scale_and_bias is {_short(value)}")
        scale, bias = value
        bias = self.numbers(bias if isinstance(bias, list) else [bias], "the bias")
        return float(self.numbers([scale], "the scale")[0]), bias

    # ------------------------------------------------------------------ trees

    def symmetric_trees(
        self, trees: list[Any], k: int
    ) -> tuple[Nodes, np.ndarray, list[dict[str, Any]], np.ndarray]:
        tests, sizes, values = [], [], []
        weights: list[np.ndarray] = []
        for i, value in enumerate(trees):
            tree = self.mapping(value, f"tree {i}")
            splits = self.sequence(tree, "splits")
            leaves = self.numbers(tree.get("leaf_values"), f"leaf_values of tree {i}")
            if len(splits) > 30 or len(leaves) != k << len(splits):
                refuse(
                    self.doing,
                    f"tree {i} has {len(splits)} splits and {len(leaves)} leaf values for {k} "
                    "outputs",
                )
            tests.extend(splits)
            sizes.append(len(splits))
            values.append(leaves)
            weights.append(self.numbers(tree.get("leaf_weights", []), f"leaf_weights of tree {i}"))
        rows = (np.concatenate(values) if values else np.empty(0)).reshape(-1, k)
        bins = self.bins(tests)
        nodes = symmetric_nodes(np.array(sizes, np.int64), bins, len(rows), self.doing)
        return nodes, rows, tests, np.concatenate([*weights, np.empty(0)])

    def free_trees(
        self, trees: list[Any], k: int
    ) -> tuple[Nodes, np.ndarray, list[dict[str, Any]], np.ndarray]:
        """Nested trees of any shape, unnested with a stack: nodes in preorder, leaves in order."""
        left: list[int] = []
        right: list[int] = []
        values: list[Any] = []
        weights: list[Any] = []
        inner, rows, tests = [], [], []
        start, first_row = [0], []
        for i, tree in enumerate(trees):
            first_row.append(len(values))
            stack: list[tuple[Any, list[int] | None, int]] = [(tree, None, 0)]
            while stack:
                value, side, parent = stack.pop()
                node = self.mapping(value, f"a node of tree {i}")
                NODE.check_keys(node, self.doing, f"trees[{i}]")
                if isinstance(node.get("split"), dict):
                    SPLIT.check_keys(node["split"], self.doing, f"trees[{i}].split")
                at = len(left)
                if side is not None:
                    side[parent] = at - start[-1]
                left.append(-1)
                right.append(-1)
                if "split" in node:
                    inner.append(at)
                    tests.append(node["split"])
                    rows.append(-1)
                    stack.append((node.get("right"), right, at))
                    stack.append((node.get("left"), left, at))
                else:
                    rows.append(len(values))
                    weights += [node["weight"]] if "weight" in node else []
                    value = node.get("value")
                    values.append(value if isinstance(value, list) else [value])
            start.append(len(left))
        if any(len(value) != k for value in values):
            refuse(self.doing, f"a leaf without a value for each of {k} outputs")
        flat = self.numbers([v for value in values for v in value], "leaf values")
        test = np.full(len(left), -1, np.int64)
        test[inner] = self.bins(tests)
        nodes = Nodes(
            np.array(left, np.int64),
            np.array(right, np.int64),
            test,
            np.array(rows, np.int64),
            np.array(start, np.int64),
            np.array(first_row, np.int64),
        )
        return nodes, flat.reshape(-1, k), tests, self.numbers(weights, "leaf weights")

    def bins(self, tests: list[Any]) -> np.ndarray:
        return np.array(
            [self.integer(self.mapping(test, "a split"), "split_index") for test in tests], np.int64
        )

    def check_tests(
        self,
        tests: list[dict[str, Any]],
        floats: list[tuple[FloatFeature, int]],
        cats: list[tuple[CatFeature, int]],
    ) -> None:
        """What each split says of itself must be what its number points to."""
        known = [
            ("FloatFeature", index, float(border))
            for feature, index in floats
            for border in feature.borders
        ] + [
            ("OneHotFeature", index, int(value))
            for feature, index in cats
            for value in feature.values
        ]
        for test in tests:
            at = test["split_index"]
            if not 0 <= at < len(known):
                continue
            if test.get("split_type") == "FloatFeature":
                border = test.get("border")
                if isinstance(border, (int, float)) and abs(border) < 1e300:
                    with np.errstate(over="ignore"):
                        border = float(np.float32(border))
                said: tuple[Any, ...] = ("FloatFeature", test.get("float_feature_index"), border)
            else:
                value = test.get("value")
                value = self.hash(value) if isinstance(value, int) else value
                said = (test.get("split_type"), test.get("cat_feature_index"), value)
            if said != known[at]:
                refuse(self.doing, f"split {at} is {known[at]} but calls itself {said}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
