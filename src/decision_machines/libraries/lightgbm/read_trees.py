"""LightGBM's trees, side by side, as tests and leaves of a machine.

LightGBM drops every |x| ≤ 1e-35 (as a float32) from a dense row, so such an x is 0 to all tests:
thresholds within that range are moved to its edge. What is missing is said by each node: NaN
alone, NaN and zeros, or nothing, and then NaN is read as 0. A category is int(x); NaN, negatives
and categories outside the node's set go right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...machine import (
    CategorySets,
    Columns,
    Cover,
    DecisionMachine,
    Layout,
    LinearLeaves,
    Rule,
    Trees,
    layout,
    stored_cover,
)
from ...machine.columns import ZERO
from .read_text import LightgbmText, broken

if TYPE_CHECKING:
    from ...machine import Output

IS_CATEGORICAL, DEFAULT_LEFT = 1, 2
NOTHING, NAN_AND_ZERO = 0, 1
"""What is missing, in bits 2 and 3 of a node's decision_type; 2 is NaN alone."""


class Forest:
    """The nodes of all trees side by side: splits and leaves in LightGBM's order."""

    def __init__(self, text: LightgbmText, n_features: int) -> None:
        self.text, self.doing, self.n_features = text, text.doing, n_features
        self.names = _names(text, n_features)
        self.n_leaves = text.counts(b"num_leaves", 1)
        self.leaf_value = text.real(b"leaf_value", self.n_leaves)
        self.n_splits = self.n_leaves - 1
        self.split_start = np.concatenate([[0], np.cumsum(self.n_splits)])
        self.tree = np.repeat(np.arange(len(self.n_leaves)), self.n_splits)
        self.feature = text.whole(b"split_feature", self.n_splits)
        self.threshold = text.real(b"threshold", self.n_splits)
        self.decision = text.whole(b"decision_type", self.n_splits)
        self.left = text.whole(b"left_child", self.n_splits)
        self.right = text.whole(b"right_child", self.n_splits)
        self._check()
        self.missing_type = self.decision >> 2
        self.is_categorical = (self.decision & IS_CATEGORICAL) != 0

    def _check(self) -> None:
        self._each("split_feature", (self.feature >= 0) & (self.feature < self.n_features))
        self._each("decision_type", (self.decision >= 0) & (self.decision < 12))
        for name in ("left", "right"):
            child, limit = getattr(self, name), self.n_splits[self.tree]
            self._each(f"{name}_child", (child < limit) & (~child <= limit))

    def _each(self, field: str, is_right: np.ndarray) -> None:
        if not np.all(is_right):
            at = int(np.argmin(is_right))
            tree, node = int(self.tree[at]), at - int(self.split_start[self.tree[at]])
            broken(self.doing, f"{field} of node {node} in tree {tree} is out of range")

    def machine(self, output: Output, source: str) -> DecisionMachine:
        found = self._layout()
        n_trees = len(self.n_leaves)
        leaf_start = np.concatenate([[0], np.cumsum(self.n_leaves)])
        node_start = self.split_start + leaf_start
        splits = found.tests - np.repeat(leaf_start[:-1], self.n_splits)
        leaves = found.leaves - np.repeat(self.split_start[1:], self.n_leaves)
        columns, selection = self._columns()
        t, missing = self._tests()
        return DecisionMachine(
            columns=columns,
            selection=selection[splits],
            t=t[splits],
            missing=missing[splits],
            children=found.children,
            V=self.leaf_value[leaves, None] if n_trees else np.empty((0, len(output))),
            trees=Trees(
                found.test_start,
                np.arange(n_trees) % len(output),
                test_ids=found.tests - np.repeat(node_start[:-1], self.n_splits),
                leaf_ids=leaves - np.repeat(leaf_start[:-1], self.n_leaves),
            ),
            output=output,
            linear=self._linear(leaves),
            source=source,
            cover=self._cover(splits, leaves, found.test_start),
        )

    def _cover(
        self, splits: np.ndarray, leaves: np.ndarray, test_start: np.ndarray
    ) -> Cover | None:
        """The counts of rows, which LightGBM's own contributions go by, where the text has them."""
        of_trees = [tree for tree, n in zip(self.text.trees, self.n_splits, strict=True) if n]
        if not all(b"internal_count" in t and b"leaf_count" in t for t in of_trees):
            return None
        internal = self._counts(b"internal_count", self.n_splits)
        # A tree of one leaf may leave its count out; none is needed there.
        counts = np.zeros(int(np.sum(self.n_leaves)))
        counts[np.repeat(self.n_splits > 0, self.n_leaves)] = self._counts(
            b"leaf_count", self.n_leaves
        )
        return stored_cover(internal[splits], counts[leaves], test_start)

    def _counts(self, key: bytes, sizes: np.ndarray) -> np.ndarray:
        """A list of numbers of every tree that has splits; of the others whatever is written."""
        written = [len(tree.get(key, b"").split()) for tree in self.text.trees]
        has_splits = self.n_splits > 0
        sizes = np.where(has_splits, sizes, np.array(written, np.int64))
        return self.text.real(key, sizes)[np.repeat(has_splits, sizes)]

    def _layout(self) -> Layout:
        """The nodes of each tree counted as one: its splits, then its leaves, written ~leaf."""
        node_start = np.concatenate([[0], np.cumsum(self.n_leaves + self.n_splits)])
        is_split = np.arange(node_start[-1]) - np.repeat(
            node_start[:-1], np.diff(node_start)
        ) < np.repeat(self.n_splits, np.diff(node_start))

        def below(child: np.ndarray) -> np.ndarray:
            found = np.full(node_start[-1], -1, np.int64)
            found[is_split] = np.where(child >= 0, child, self.n_splits[self.tree] + ~child)
            return found

        found = layout(below(self.left), below(self.right), node_start, self.doing)
        unreached = np.diff(found.test_start) != self.n_splits
        if np.any(unreached):
            broken(self.doing, f"tree {np.argmax(unreached)} has nodes that no path reaches")
        return found

    def _tests(self) -> tuple[np.ndarray, np.ndarray]:
        """Thresholds and missing answers of every split."""
        t = self.threshold.copy()
        t[(t >= 0) & (t < ZERO)] = ZERO
        t[(t < 0) & (t >= -ZERO)] = np.nextafter(-ZERO, -np.inf)
        default = np.where(self.decision & DEFAULT_LEFT, -1, 1)
        # Where nothing is missing, NaN goes where 0 goes.
        missing = np.where(self.missing_type == NOTHING, np.where(t >= 0, -1, 1), default)
        return (
            np.where(self.is_categorical, 0.5, t),
            np.where(self.is_categorical, 1, missing).astype(np.int8),
        )

    def _columns(self) -> tuple[Columns, np.ndarray]:
        """A column for each feature, then one where zeros are missing, then one for each set."""
        n = self.n_features
        selection = self.feature.copy()
        zeros = (self.missing_type == NAN_AND_ZERO) & ~self.is_categorical
        of_zeros, which = np.unique(self.feature[zeros], return_inverse=True)
        selection[zeros] = n + which
        of_sets: list[int] = []
        sets = None
        if np.any(self.is_categorical):
            which, of_sets, sets = self._sets()
            selection[self.is_categorical] = n + len(of_zeros) + which
        rules = np.repeat(
            [Rule.VALUE, Rule.ZERO_AS_NAN, Rule.MEMBER], [n, len(of_zeros), len(of_sets)]
        )
        columns = Columns(
            n,
            np.float64,
            feature=np.concatenate([np.arange(n), of_zeros, of_sets]).astype(np.int32),
            rule=rules,
            names=self.names,
            sets=sets,
            table_categories=self.text.pandas_categorical,
            integers_as=np.float32,
        )
        return columns, selection.astype(np.int32)

    def _sets(self) -> tuple[np.ndarray, list[int], CategorySets]:
        """For the categorical splits: the set of each, and the sets' features and members.

        A set is bits of 32-bit words; tree i has num_cat[i] sets and cat_boundaries says where
        each one's words start. The threshold of a categorical split is the number of its set.
        """
        text = self.text
        n_sets = text.counts(b"num_cat", 0)
        bounds = text.whole(b"cat_boundaries", np.where(n_sets > 0, n_sets + 1, 0))
        bound_start = np.concatenate([[0], np.cumsum(np.where(n_sets > 0, n_sets + 1, 0))])
        n_words = np.zeros_like(n_sets)
        n_words[n_sets > 0] = bounds[bound_start[1:][n_sets > 0] - 1]
        words = text.whole(b"cat_threshold", n_words)
        word_start = np.concatenate([[0], np.cumsum(n_words)])
        splits = np.flatnonzero(self.is_categorical)
        number, tree = self.threshold[splits], self.tree[splits]
        is_set = np.ones(len(self.feature), bool)
        is_set[splits] = (number >= 0) & (number < n_sets[tree]) & (number == np.trunc(number))
        self._each("threshold (the number of a category set)", is_set)
        at = bound_start[tree] + number.astype(np.int64)
        low, high = bounds[at], bounds[at + 1]
        is_set[splits] = (low >= 0) & (low <= high) & (high <= n_words[tree])
        self._each("cat_boundaries", is_set)
        if np.any((words < 0) | (words >= 2**32)):
            broken(self.doing, "cat_threshold of some tree holds what is not a 32-bit word")
        bits = words.astype("<u4")
        low, high = low + word_start[tree], high + word_start[tree]
        numbers: dict[tuple[int, bytes], int] = {}
        which = [
            numbers.setdefault((feature, bits[a:b].tobytes().rstrip(b"\0")), len(numbers))
            for feature, a, b in zip(
                self.feature[splits].tolist(), low.tolist(), high.tolist(), strict=True
            )
        ]
        members = [
            np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little"))
            for _, mask in numbers
        ]
        # A feature that no test asks has an empty set: with it, labels are matched to features.
        tested = {feature for feature, _ in numbers}
        idle = [feature for feature in _labelled(text) if feature not in tested]
        members += [np.empty(0, np.int64)] * len(idle)
        start = np.cumsum([0, *map(len, members)])
        sets = CategorySets(
            start,
            np.concatenate(members),
            np.full(start[-1], -1),
            np.full(len(members), 1),
            negative_fractions=True,
        )
        return np.array(which), [*(feature for feature, _ in numbers), *idle], sets

    def _linear(self, leaves: np.ndarray) -> LinearLeaves | None:
        """The linear functions of the leaves, where trees have them; a constant where not."""
        text = self.text
        is_linear = text.counts(b"is_linear", 0, default=0) != 0
        if not np.any(is_linear):
            return None
        sizes = np.where(is_linear, self.n_leaves, 0)
        of_linear = np.repeat(is_linear, self.n_leaves)
        intercept = self.leaf_value.copy()
        intercept[of_linear] = text.real(b"leaf_const", sizes)
        n_terms = np.zeros(len(intercept), np.int64)
        n_terms[of_linear] = text.whole(b"num_features", sizes)
        if np.any((n_terms < 0) | (n_terms > 2**31)):
            broken(self.doing, "num_features of some tree holds what is not a count")
        start = np.concatenate([[0], np.cumsum(n_terms)])
        of_tree = np.diff(start[np.concatenate([[0], np.cumsum(self.n_leaves)])])
        feature = text.whole(b"leaf_features", of_tree)
        coefficient = text.real(b"leaf_coeff", of_tree)
        if np.any((feature < 0) | (feature >= self.n_features)):
            broken(self.doing, "leaf_features of some tree names a feature that does not exist")
        linear = LinearLeaves(intercept[:, None], start, feature, coefficient[:, None])
        return linear.keep(leaves)


def _labelled(text: LightgbmText) -> list[int]:
    """The features that the training table had as labels; none where the text does not tell.

    feature_infos has a range, "[0:5]", for numbers, a list, "0:2:1", for categories, and "none"
    for a feature of one value, which may have been either.
    """
    infos = text.header["feature_infos"].split()
    found = [f for f, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    return found if len(found) == len(text.pandas_categorical or ()) else []


def _names(text: LightgbmText, n_features: int) -> tuple[str, ...] | None:
    """Feature names; None where they are LightGBM's own Column_0, Column_1 ..."""
    for key in ("feature_names", "feature_infos"):
        if key not in text.header:
            broken(text.doing, f"the header has no {key}")
        found = len([entry for entry in text.header[key].split(" ") if entry])
        if found != n_features:
            broken(text.doing, f"{found} entries in {key} for {n_features} features")
    names = tuple(name for name in text.header["feature_names"].split(" ") if name)
    if len(set(names)) != len(names):
        broken(text.doing, "two features have the same name")
    is_unnamed = all(name == f"Column_{i}" for i, name in enumerate(names))
    return None if is_unnamed else names
