"""The tests of Treelite's trees: comparisons in either direction, and lists of categories.

A test whose side of yes is that of larger values (>, >=) has its children swapped. A category is
the number without its fraction; what is below 0, or too large to be a whole number of the dtype, is
in no list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from ...machine import CategorySets, Columns, Layout, Rule, layout
from ..document import WHOLE
from ..thresholds import strictly_below

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from .checkpoint import Checkpoint

LEAF, NUMBER, CATEGORY = 0, 1, 2
EQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST = range(1, 6)
"""Comparisons; where one holds, a row goes to the left child."""
MOST_CATEGORIES = {np.float32: 1 << 24, np.float64: (1 << 31) - 1}


@dataclass(frozen=True)
class Forest:
    """Trees laid out, and their tests."""

    found: Layout
    columns: Columns
    selection: Int[np.ndarray, "J"]
    t: Float[np.ndarray, "J"]
    missing: Int[np.ndarray, "J"]
    test_ids: Int[np.ndarray, "J"]
    leaf_ids: Int[np.ndarray, "L"]

    def leaves(self, tree: int) -> slice:
        start = self.found.test_start
        return slice(int(start[tree]) + tree, int(start[tree + 1]) + tree + 1)


def read_forest(checkpoint: Checkpoint, doing: str) -> Forest:
    """Every tree of a checkpoint."""
    trees = checkpoint.trees
    sizes = np.array([len(tree["node_type"]) for tree in trees], np.int64)
    for i, tree in enumerate(trees):
        for name in PER_NODE:
            if len(tree[name]) != sizes[i] or tree["num_nodes"] != sizes[i] or not sizes[i]:
                raise ModelFormatError(
                    doing, f"{name} of tree {i} has {len(tree[name])} entries", WHOLE
                )
    joined = {
        name: np.concatenate([tree[name] for tree in trees] or [np.empty(0, np.int64)])
        for name in PER_NODE
    }
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    kind = joined["node_type"]
    _refuse(~np.isin(kind, (LEAF, NUMBER, CATEGORY)), "an unknown node_type", start, doing)
    op = joined["cmp"]
    _refuse(
        (kind == NUMBER) & ~np.isin(op, (BELOW, AT_MOST, ABOVE, AT_LEAST)),
        "a comparison (cmp) that is not one of <, <=, >, >=",
        start,
        doing,
    )
    swaps = (kind == NUMBER) & np.isin(op, (ABOVE, AT_LEAST))
    left = np.where(swaps, joined["cright"], joined["cleft"]).astype(np.int64)
    right = np.where(swaps, joined["cleft"], joined["cright"]).astype(np.int64)
    left, right = (np.where(kind == LEAF, -1, side) for side in (left, right))
    _refuse((kind != LEAF) & ((left < 0) | (right < 0)), "a test without a child", start, doing)
    found = layout(left, right, start, doing)
    n = checkpoint.header["num_feature"]
    feature = joined["split_index"][found.tests]
    if not 0 <= n < 2**31 or np.any((feature < 0) | (feature >= n)):
        raise ModelFormatError(doing, f"a split_index outside its {n} features", WHOLE)
    t = joined["threshold"][found.tests].astype(checkpoint.dtype)
    is_number = kind[found.tests] == NUMBER
    if np.any(is_number & (np.isnan(t) | np.isneginf(t))):
        raise UnsupportedModelError(
            doing, "a threshold that is NaN or -inf", "build the model with finite thresholds"
        )
    is_strict = np.isin(op[found.tests], (BELOW, AT_LEAST))
    t = np.where(is_number, np.where(is_strict, strictly_below(t), t), checkpoint.dtype(0.5))
    goes_left = (joined["default_left"][found.tests] != 0) ^ swaps[found.tests]
    tree_of_test = np.repeat(np.arange(len(trees)), np.diff(found.test_start))
    tree_of_leaf = np.repeat(np.arange(len(trees)), np.diff(found.test_start) + 1)
    test_ids = found.tests - start[tree_of_test]
    tested = np.arange(n) if n <= MANY_FEATURES else np.unique(feature)
    columns, place = _columns(checkpoint, feature, is_number, tree_of_test, test_ids, tested, doing)
    return Forest(
        found=found,
        columns=columns,
        selection=np.where(is_number, np.searchsorted(tested, feature), len(tested) + place),
        t=t.astype(checkpoint.dtype),
        missing=np.where(goes_left, -1, 1).astype(np.int8),
        test_ids=test_ids,
        leaf_ids=found.leaves - start[tree_of_leaf],
    )


MANY_FEATURES = 1 << 16
"""Up to this number every feature is a column; above, those that a test reads."""
PER_NODE = (
    "node_type",
    "cleft",
    "cright",
    "split_index",
    "default_left",
    "leaf_value",
    "threshold",
    "cmp",
    "category_list_right_child",
    "leaf_vector_begin",
    "leaf_vector_end",
    "category_list_begin",
    "category_list_end",
)


def _columns(
    checkpoint: Checkpoint,
    feature: np.ndarray,
    is_number: np.ndarray,
    tree_of_test: np.ndarray,
    test_ids: np.ndarray,
    tested: np.ndarray,
    doing: str,
) -> tuple[Columns, np.ndarray]:
    """The columns, and among those of lists the one that each test of a list reads."""
    place = np.zeros(len(feature), np.int64)
    known: dict[tuple[int, bool, bytes], int] = {}
    features, members, sides = [], [], []
    most = MOST_CATEGORIES[checkpoint.dtype]
    for j in np.flatnonzero(~is_number).tolist():
        tree, node = checkpoint.trees[tree_of_test[j]], test_ids[j]
        begin, end = (int(tree[f"category_list_{w}"][node]) for w in ("begin", "end"))
        if not 0 <= begin <= end <= len(tree["category_list"]):
            raise ModelFormatError(doing, f"node {node} has categories outside its tree", WHOLE)
        chosen = np.unique(tree["category_list"][begin:end].astype(np.int64))
        if checkpoint.dtype is np.float64 and len(chosen) and chosen[-1] > most:
            raise UnsupportedModelError(
                doing, f"the category {chosen[-1]} of node {node}", f"use categories up to {most}"
            )
        chosen = chosen[chosen <= most]
        goes_right = bool(tree["category_list_right_child"][node])
        key = (int(feature[j]), goes_right, chosen.tobytes())
        if key not in known:
            known[key] = len(known)
            features.append(key[0])
            members.append(chosen)
            sides.append(1 if goes_right else -1)
        place[j] = known[key]
    sets = None
    if members:
        lengths = [len(chosen) for chosen in members]
        sets = CategorySets(
            start=np.concatenate([[0], np.cumsum(lengths)]),
            members=np.concatenate(members),
            answer=np.repeat(np.array(sides, np.int8), lengths),
            outside=-np.array(sides, np.int8),
        )
    held: Any = np.array(features, np.int64)
    return (
        Columns(
            checkpoint.header["num_feature"],
            checkpoint.dtype,
            feature=np.concatenate([tested, held]),
            rule=np.repeat([Rule.VALUE, Rule.MEMBER], [len(tested), len(held)]),
            sets=sets,
            absent=float("nan"),
        ),
        place,
    )


def _refuse(wrong: np.ndarray, found: str, start: np.ndarray, doing: str) -> None:
    if np.any(wrong):
        at = int(np.argmax(wrong))
        tree = int(np.searchsorted(start, at, side="right")) - 1
        raise UnsupportedModelError(
            doing, f"node {at - int(start[tree])} of tree {tree} has {found}", "build it otherwise"
        )
