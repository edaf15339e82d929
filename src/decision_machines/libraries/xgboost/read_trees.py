"""XGBoost's trees: from the arrays that a model stores for each tree to a machine's parts.

x < t goes left, in float32; NaN goes to the default child. A categorical node holds a set: a
category in it goes right; any other, and what is not a category at all (negative, or 2**24 and
more), goes left. A fraction is cut off, so 1.7 is category 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from ...machine import ALL_OUTPUTS, CategorySets, Columns, Rule, Trees, layout, stored_cover
from ..document import WHOLE, join
from ..thresholds import strictly_below

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from ...machine import Cover, Layout
    from ..document import Document

    Get = Callable[[str, Any, np.ndarray | None], tuple[np.ndarray, np.ndarray]]
    """The entries under a key of all trees, one after the other, and how many each tree has."""

NOT_A_CATEGORY = 2**24
"""From here on XGBoost takes no value for a category: float32 would skip integers."""
MANY_FEATURES = 1_000_000
"""Above, only features that are tested get a column: a file may claim any number of features."""


@dataclass(frozen=True)
class Forest:
    """The parts of a machine that come from its trees."""

    columns: Columns
    selection: Int[np.ndarray, "J"]
    t: Float[np.ndarray, "J"]
    missing: Int[np.ndarray, "J"]
    children: Int[np.ndarray, "J 2"]
    V: Float[np.ndarray, "L k"]
    trees: Trees
    cover: Cover | None


def stored_trees(model: Document) -> list[dict[str, Any]]:
    """The trees in the order in which they are summed: that of their ids, whatever the file's."""
    trees = model.objects("trees")
    ids = [tree.get("id", i) for i, tree in enumerate(trees)]
    if {type(i) for i in ids} - {int} or sorted(ids) != list(range(len(trees))):
        raise model.fault(f"the ids of the {len(trees)} trees are not 0..{len(trees) - 1}")
    if "gbtree_model_param" in model:
        param = model.child("gbtree_model_param")
        if "num_trees" in param and param.integer("num_trees") != len(trees):
            raise model.fault(
                f"{len(trees)} trees where {param.name('num_trees')} is {param.raw('num_trees')}"
            )
    return [tree for _, tree in sorted(zip(ids, trees, strict=True), key=lambda pair: pair[0])]


def leaf_width(trees: list[dict[str, Any]], doing: str) -> int:
    """How many values a leaf holds: 1, or more where trees answer for all outputs at once."""
    widths = set()
    for i, tree in enumerate(trees):
        param = tree.get("tree_param")
        width = param.get("size_leaf_vector", "1") if isinstance(param, dict) else "1"
        if not isinstance(width, (str, int)) or not str(width).isdecimal() or len(str(width)) > 9:
            raise ModelFormatError(
                doing, f"trees[{i}].tree_param.size_leaf_vector is not a size", WHOLE
            )
        # Old files say 0 for a leaf of one value.
        widths.add(max(int(width), 1))
        values = tree.get("leaf_weights", tree.get("base_weights"))
        if int(width) > 1 and int(width) > (np.size(values) if values is not None else 0):
            raise ModelFormatError(
                doing, f"trees[{i}].tree_param.size_leaf_vector is {width}: too few values", WHOLE
            )
    if len(widths) > 1:
        raise UnsupportedModelError(
            doing,
            f"trees whose leaves hold {sorted(widths)} values stand side by side "
            "(tree_param.size_leaf_vector)",
            "train the whole model with one multi_strategy",
        )
    return widths.pop() if widths else 1


def read_forest(
    trees: list[dict[str, Any]],
    feeds: Int[np.ndarray, "T"],
    n_outputs: int,
    n_features: int,
    value: Callable[[Float[np.ndarray, "L ..."], Int[np.ndarray, "L"]], Float[np.ndarray, "L ..."]],
    doing: str,
    **columns: Any,
) -> Forest:
    """Lay all trees out at once.

    Parameters
    ----------
    feeds
        The output that each tree adds to; not asked where leaves hold vectors.
    value
        What a tree adds to the sum, from its leaves' stored values and their trees.
    columns
        Further arguments of `Columns`.
    """
    width = leaf_width(trees, doing)
    if width not in (1, n_outputs):
        raise ModelFormatError(
            doing, f"leaves of {width} values (size_leaf_vector) for {n_outputs} outputs", WHOLE
        )
    get = partial(join, trees, doing=doing)
    left, sizes = get("left_children", np.int64, None)
    right, _ = get("right_children", np.int64, sizes)
    if not np.all(sizes):
        raise ModelFormatError(doing, f"tree {int(np.argmin(sizes))} has no nodes", WHOLE)
    start = np.concatenate([[0], np.cumsum(sizes)])
    is_leaf = left == -1
    found = layout(left, np.where(is_leaf, -1, right), start, doing)
    tree_of_test = np.repeat(np.arange(len(trees)), np.diff(found.test_start))
    tree_of_leaf = np.repeat(np.arange(len(trees)), np.diff(found.test_start) + 1)
    at = _Places(start, doing)
    at.refuse(
        found.tests[right[found.tests] != left[found.tests] + 1],
        "children that do not follow each other, and XGBoost never looks at right_children then",
    )
    feature, _ = get("split_indices", np.int64, sizes)
    feature = feature[found.tests]
    at.refuse(
        found.tests[(feature < 0) | (feature >= n_features)],
        f"split_indices outside the model's {n_features} features",
    )
    condition, _ = get("split_conditions", np.float32, sizes)
    default_left, _ = get("default_left", np.int64, sizes)
    default_left = default_left[found.tests]
    at.refuse(
        found.tests[(default_left != 0) & (default_left != 1)], "default_left that is not 0 or 1"
    )
    sets = _category_sets(trees, found, feature, start, at, get)
    t = condition[found.tests]
    numeric = sets.column < 0
    at.refuse(found.tests[numeric & np.isnan(t)], "NaN for a threshold (split_conditions)")
    if np.any(numeric & np.isneginf(t)):
        raise UnsupportedModelError(
            doing,
            f"{at.name(found.tests[np.argmax(numeric & np.isneginf(t))])} splits at -inf "
            "(split_conditions), below which there is nothing",
            "train again without infinite values in the data",
        )
    tested = np.arange(n_features) if n_features <= MANY_FEATURES else np.unique(feature)
    selection = np.where(
        numeric, np.searchsorted(tested, feature), len(tested) + np.maximum(sets.column, 0)
    )
    if width == 1:
        V = value(condition[found.leaves], tree_of_leaf)[:, None]
    else:
        V = value(_vectors(trees, found, tree_of_leaf, right, width, get, at), tree_of_leaf)
        feeds = None  # type: ignore[assignment]
    at.refuse(found.leaves[~np.all(np.isfinite(V), axis=1)], "a leaf value that is not finite")
    return Forest(
        columns=Columns(
            n_features,
            np.float32,
            feature=np.concatenate([tested, sets.features]),
            rule=np.repeat([Rule.VALUE, Rule.MEMBER], [len(tested), len(sets.features)]),
            sets=sets.sets,
            **columns,
        ),
        selection=selection,
        t=np.where(numeric, strictly_below(t), np.float32(0.5)),
        missing=np.where(default_left == 1, -1, 1).astype(np.int8),
        children=found.children,
        V=V if len(trees) else np.empty((0, n_outputs), np.float32),
        trees=Trees(
            found.test_start,
            np.full(len(trees), ALL_OUTPUTS) if feeds is None else feeds,
            test_ids=found.tests - start[tree_of_test],
            leaf_ids=found.leaves - start[tree_of_leaf],
        ),
        cover=_cover(trees, found, sizes, get),
    )


def _cover(trees: list[dict[str, Any]], found: Layout, sizes: np.ndarray, get: Any) -> Cover | None:
    """The sums of hessians, where the file has them."""
    if not all("sum_hessian" in tree for tree in trees):
        return None
    hessian, lengths = get("sum_hessian", np.float32, None)
    if not np.array_equal(lengths, sizes):  # by output, where leaves hold vectors
        return None
    return stored_cover(hessian[found.tests], hessian[found.leaves], found.test_start)


class _Places:
    """Nodes by the names that XGBoost has for them."""

    def __init__(self, start: np.ndarray, doing: str) -> None:
        self.start, self.doing = start, doing

    def name(self, node: int) -> str:
        tree = int(np.searchsorted(self.start, node, side="right")) - 1
        return f"node {int(node) - int(self.start[tree])} of tree {tree}"

    def refuse(self, nodes: np.ndarray, why: str) -> None:
        if len(nodes):
            raise ModelFormatError(self.doing, f"{self.name(int(nodes[0]))} has {why}", WHOLE)


def _vectors(
    trees: list[dict[str, Any]],
    found: Layout,
    tree_of_leaf: Int[np.ndarray, "L"],
    right: Int[np.ndarray, "N"],
    width: int,
    get: Get,
    at: _Places,
) -> Float[np.ndarray, "L k"]:
    """(L, k) values of vector leaves.

    Since 3.2 a leaf's right child is its row in `leaf_weights`; before, its row in `base_weights`
    is that of its node.
    """
    has_rows = ["leaf_weights" in tree for tree in trees]
    key = "leaf_weights" if any(has_rows) else "base_weights"
    weights, lengths = get(key, np.float32, None)
    if np.any(lengths % width):
        i = int(np.argmax(lengths % width != 0))
        raise ModelFormatError(
            at.doing, f"trees[{i}].{key} has {lengths[i]} entries, not rows of {width}", WHOLE
        )
    row = right[found.leaves] if any(has_rows) else found.leaves - at.start[tree_of_leaf]
    n_rows = lengths // width
    at.refuse(found.leaves[(row < 0) | (row >= n_rows[tree_of_leaf])], f"no row in {key}")
    first = np.concatenate([[0], np.cumsum(n_rows)])[:-1]
    values: np.ndarray = weights.reshape(-1, width)[first[tree_of_leaf] + row]
    return values


@dataclass(frozen=True)
class _Membership:
    """The distinct (feature, set) pairs among categorical tests."""

    column: Int[np.ndarray, "J"]
    """The pair that each test asks, or -1."""
    features: Int[np.ndarray, "c"]
    sets: CategorySets | None


def _category_sets(
    trees: list[dict[str, Any]],
    found: Layout,
    feature: Int[np.ndarray, "J"],
    start: Int[np.ndarray, "T+1"],
    at: _Places,
    get: Get,
) -> _Membership:
    column = np.full(len(found.tests), -1, np.int64)
    none = _Membership(column, np.empty(0, np.int64), None)
    if not any("split_type" in tree for tree in trees):
        return none
    split_type, _ = get("split_type", np.int64, np.diff(start))
    split_type = split_type[found.tests]
    at.refuse(found.tests[(split_type != 0) & (split_type != 1)], "an unknown split_type")
    if not np.any(split_type):
        return none
    nodes, counts = get("categories_nodes", np.int64, None)
    first, _ = get("categories_segments", np.int64, counts)
    size, _ = get("categories_sizes", np.int64, counts)
    categories, lengths = get("categories", np.int64, None)
    tree = np.repeat(np.arange(len(trees)), counts)
    wrong = (nodes < 0) | (nodes >= np.diff(start)[tree])
    wrong |= (first < 0) | (size < 0) | (first > lengths[tree]) | (size > lengths[tree] - first)
    if np.any(wrong):
        raise ModelFormatError(
            at.doing, f"the category sets of tree {tree[np.argmax(wrong)]} lie outside it", WHOLE
        )
    owner = np.full(start[-1], -1, np.int64)
    owner[start[:-1][tree] + nodes] = np.arange(len(nodes))
    first = first + np.concatenate([[0], np.cumsum(lengths)])[:-1][tree]
    tests = np.flatnonzero(split_type)
    at.refuse(found.tests[tests[owner[found.tests[tests]] < 0]], "no category set of its own")
    known: dict[tuple[int, bytes], int] = {}
    members, features = [], []
    for test in tests.tolist():
        which = owner[found.tests[test]]
        chosen = np.unique(categories[first[which] : first[which] + size[which]])
        if len(chosen) and chosen[0] < 0:
            at.refuse(found.tests[[test]], f"the category {chosen[0]}, below 0")
        chosen = chosen[chosen < NOT_A_CATEGORY]
        key = (int(feature[test]), chosen.tobytes())
        if key not in known:
            known[key] = len(known)
            members.append(chosen)
            features.append(int(feature[test]))
        column[test] = known[key]
    joined = np.concatenate(members)
    sets = CategorySets(
        start=np.concatenate([[0], np.cumsum([len(m) for m in members])]),
        members=joined,
        answer=np.ones(len(joined), np.int8),
        outside=np.full(len(members), -1, np.int8),
    )
    return _Membership(column, np.array(features), sets)
