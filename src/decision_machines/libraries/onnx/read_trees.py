"""The trees of ONNX's tree operators, versions 1, 3 and 5, as one graph of nodes, and its tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import CategorySets, Rule
from ..thresholds import at_most, strictly_below
from .values import Attributes, refuse

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
MODES = {
    b"BRANCH_LEQ": LEQ,
    b"BRANCH_LT": LT,
    b"BRANCH_GTE": GTE,
    b"BRANCH_GT": GT,
    b"BRANCH_EQ": EQ,
    b"BRANCH_NEQ": NEQ,
    b"LEAF": LEAF,
}
MOST_CATEGORIES = 1 << 31
EXACT_SETS_UP_TO = 30
"""ONNX Runtime cuts the fraction off x where a set of version 5 has a value beyond this, or
below 0; otherwise x must be equal to a value."""


@dataclass(frozen=True)
class Graph:
    """Nodes of all trees; `yes` and `no` are where a node's answer leads."""

    roots: Int[np.ndarray, "T"]
    mode: Int[np.ndarray, "N"]
    feature: Int[np.ndarray, "N"]
    value: Float[np.ndarray, "N"]
    yes: Int[np.ndarray, "N"]
    no: Int[np.ndarray, "N"]
    nan_is_yes: Bool[np.ndarray, "N"]
    name: Int[np.ndarray, "N"]
    """What the operator calls each node: its number in its tree, or a leaf's number."""
    sets: dict[int, tuple[float, ...]]
    """The values of each MEMBER node."""
    weight_node: Int[np.ndarray, "w"]
    weight_output: Int[np.ndarray, "w"]
    weight: Float[np.ndarray, "w"]


def read_nodes(attributes: Attributes, kind: str) -> Graph:
    """The graph of TreeEnsembleClassifier ("class") or TreeEnsembleRegressor ("target")."""
    doing = attributes.doing
    names = attributes.integers("nodes_nodeids")
    n = len(names)
    tree_ids = attributes.integers("nodes_treeids", n)
    mode = attributes.modes("nodes_modes", n, MODES)
    value = attributes.numbers("nodes_values", n)
    tracks = attributes.integers("nodes_missing_value_tracks_true")
    if len(tracks) not in (0, n):
        refuse(doing, f"{len(tracks)} missing_value_tracks_true for {n} nodes")
    starts = np.flatnonzero(np.diff(tree_ids, prepend=tree_ids[:1] ^ 1))
    if len(np.unique(tree_ids)) != len(starts):
        refuse(doing, "the nodes of one tree do not stand together")
    find = _Finder(tree_ids, names, doing)
    inner = np.flatnonzero(mode != LEAF)
    yes, no = np.full(n, -1), np.full(n, -1)
    for side, key in ((yes, "nodes_truenodeids"), (no, "nodes_falsenodeids")):
        side[inner] = find(tree_ids[inner], attributes.integers(key, n)[inner], key)
    weights = attributes.numbers(f"{kind}_weights")
    node = find(
        attributes.integers(f"{kind}_treeids", len(weights)),
        attributes.integers(f"{kind}_nodeids", len(weights)),
        f"{kind}_nodeids",
    )
    output = attributes.integers(f"{kind}_ids", len(weights))
    # Old converters gave weights to tests, too; ONNX Runtime passes over them.
    at_leaf = mode[node] == LEAF
    return Graph(
        starts,
        mode,
        attributes.integers("nodes_featureids", n),
        value,
        yes,
        no,
        tracks == 1 if len(tracks) else np.zeros(n, bool),
        names,
        {},
        node[at_leaf],
        output[at_leaf],
        weights[at_leaf],
    )


class _Finder:
    """Positions of nodes by the numbers of their tree and their own."""

    def __init__(self, trees: np.ndarray, names: np.ndarray, doing: str) -> None:
        self.doing = doing
        keys = self._keys(trees, names, "nodes_nodeids")
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]
        if np.any(self.keys[1:] == self.keys[:-1]):
            refuse(doing, "two nodes of one tree have the same number")

    def _keys(self, trees: np.ndarray, names: np.ndarray, what: str) -> np.ndarray:
        both = np.concatenate([trees, names])
        if np.any((both < 0) | (both >= 1 << 31)):
            refuse(self.doing, f"{what} holds a number of no tree or node")
        found: np.ndarray = trees << 31 | names
        return found

    def __call__(self, trees: np.ndarray, names: np.ndarray, what: str) -> np.ndarray:
        wanted = self._keys(trees, names, what)
        if not len(wanted):
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        wrong = self.keys[at] != wanted if len(self.keys) else np.ones(len(wanted), bool)
        if np.any(wrong):
            i = int(np.argmax(wrong))
            refuse(self.doing, f"{what} names node {names[i]} of tree {trees[i]}, which is absent")
        return self.order[at]


def read_nodes_5(attributes: Attributes) -> Graph:
    """The graph of TreeEnsemble, version 5: tests first, then leaves."""
    doing = attributes.doing
    feature = attributes.integers("nodes_featureids")
    n = len(feature)
    mode = attributes.tensor("nodes_modes", n).astype(np.int64)
    value = attributes.tensor("nodes_splits", n).astype(np.float64)
    tracks = attributes.integers("nodes_missing_value_tracks_true")
    weight = attributes.tensor("leaf_weights").astype(np.float64)
    n_leaves = len(weight)
    output = attributes.integers("leaf_targetids", n_leaves)
    roots = attributes.integers("tree_roots")
    if len(tracks) not in (0, n) or np.any((mode < LEQ) | (mode > MEMBER)):
        refuse(doing, "a mode that does not exist, or missing_value_tracks_true of another length")
    children = []
    for word in ("true", "false"):
        child = attributes.integers(f"nodes_{word}nodeids", n)
        leaf = attributes.integers(f"nodes_{word}leafs", n) != 0
        if np.any((child < 0) | (child >= np.where(leaf, n_leaves, n))):
            refuse(doing, f"nodes_{word}nodeids points to what is not there")
        children.append(np.where(leaf, child + n, child))
    if np.any((roots < 0) | (roots >= n)):
        refuse(doing, "tree_roots points to what is not there")
    alone = (
        attributes.integers("nodes_truenodeids")[roots]
        == (attributes.integers("nodes_falsenodeids")[roots])
    )
    if np.any(alone & ~((children[0][roots] == roots + n) & (children[1][roots] == roots + n))):
        raise UnsupportedModelError(
            doing,
            f"the root of tree {np.argmax(alone)} has one number for its true and its false side, "
            "which ONNX Runtime takes for a tree of the leaf that has the number of the root",
            "number the leaves so that the two sides of a root differ",
        )
    leaves = np.full(n_leaves, -1)
    return Graph(
        np.where(alone, children[0][roots], roots),
        np.concatenate([mode, np.full(n_leaves, LEAF)]),
        np.concatenate([feature, leaves]),
        np.concatenate([value, np.zeros(n_leaves)]),
        np.concatenate([children[0], leaves]),
        np.concatenate([children[1], leaves]),
        np.concatenate([tracks == 1 if len(tracks) else np.zeros(n, bool), leaves > 0]),
        np.concatenate([np.arange(n), np.arange(n_leaves)]),
        _sets(mode, attributes.tensor("membership_values", None, optional=True), doing),
        n + np.arange(n_leaves),
        output,
        weight,
    )


def _sets(mode: np.ndarray, values: np.ndarray, doing: str) -> dict[int, tuple[float, ...]]:
    """The values of each MEMBER node: one run after the other, ended by NaN."""
    nodes = np.flatnonzero(mode == MEMBER)
    values = values.astype(np.float64)
    ends = np.flatnonzero(np.isnan(values))
    if len(values) and (not len(ends) or ends[-1] != len(values) - 1):
        ends = np.append(ends, len(values))
    if len(nodes) != len(ends):
        refuse(doing, f"{len(ends)} membership sets for {len(nodes)} nodes of mode MEMBER")
    starts = np.concatenate([[0], ends + 1])[: len(ends)].astype(int)
    found = {
        int(node): tuple(values[a:b].tolist())
        for node, a, b in zip(nodes, starts, ends, strict=True)
    }
    if any(not members for members in found.values()):
        refuse(doing, "a membership set without members")
    return found


@dataclass(frozen=True)
class Tests:
    """The graph's nodes as tests z ≤ t on columns; leaves have no sides."""

    left: Int[np.ndarray, "N"]
    right: Int[np.ndarray, "N"]
    column: Int[np.ndarray, "N"]
    t: Float[np.ndarray, "N"]
    missing: Int[np.ndarray, "N"]
    feature: Int[np.ndarray, "c"]
    rule: Int[np.ndarray, "c"]
    sets: CategorySets | None


def as_tests(graph: Graph, n_features: int, dtype: Any, doing: str) -> Tests:
    """Every node as one test of ours; the dtype is that of the columns."""
    graph, merged = _merge_chains(graph, doing)
    graph, member = _split_equalities(graph, merged, doing)
    mode, value = graph.mode, graph.value
    inner = mode != LEAF
    if np.any(inner & ((graph.feature < 0) | (graph.feature >= n_features))):
        bad = graph.feature[inner & ((graph.feature < 0) | (graph.feature >= n_features))][0]
        refuse(doing, f"a test reads feature {bad} of {n_features}")
    if np.any(np.isnan(value[inner])):
        refuse(doing, "a threshold that is NaN")
    strict = (mode == LT) | (mode == GTE)
    t = at_most(np.where(inner, value, 0.0), dtype)
    below = strict & (t.astype(np.float64) == value)
    with np.errstate(over="ignore"):
        t = np.where(below, strictly_below(t), t)
    # On the left stands what small numbers answer.
    small_is_yes = (mode == LEQ) | (mode == LT)
    left = np.where(small_is_yes, graph.yes, graph.no)
    right = np.where(small_is_yes, graph.no, graph.yes)
    nan_is_left = graph.nan_is_yes == small_is_yes
    # No number is below -inf: all of them go where large numbers go.
    none_below = strict & (value == -np.inf)
    t = np.where(none_below, np.inf, t)
    left, right = np.where(none_below, right, left), np.where(none_below, left, right)
    nan_is_left = nan_is_left ^ none_below
    column = np.where(inner, graph.feature, 0)
    feature, sets = [], []
    place: dict[tuple[Any, ...], int] = {}
    for node, (members, _) in member.items():
        key = (int(graph.feature[node]), members)
        if key not in place:
            place[key] = n_features + len(place)
            feature.append(key[0])
            sets.append(members)
        column[node] = place[key]
        t[node] = 0.5
    is_whole = {whole for _, whole in member.values()}
    return Tests(
        left,
        right,
        column,
        t.astype(dtype),
        np.where(nan_is_left, -1, 1).astype(np.int8),
        np.concatenate([np.arange(n_features), feature]).astype(np.int32),
        np.repeat([Rule.VALUE, Rule.MEMBER], [n_features, len(sets)]),
        None if not sets else _category_sets(sets, is_whole.pop()),
    )


def _category_sets(sets: list[tuple[int, ...]], whole: bool) -> CategorySets:
    members = [sorted(s) for s in sets]
    sizes = [len(s) for s in members]
    return CategorySets(
        np.cumsum([0, *sizes]),
        np.concatenate(members).astype(np.int64),
        np.ones(sum(sizes)),
        -np.ones(len(sets)),
        negative_fractions=not whole,
        whole=whole,
    )


def _merge_chains(graph: Graph, doing: str) -> tuple[Graph, dict[int, tuple[float, ...]]]:
    """Chains of equalities of one feature that lead to one node, made into sets.

    Converters write "x is one of these" as x = a, else x = b, and so on, all with the same true
    side.
    """
    equal = np.flatnonzero(graph.mode == EQ)
    after = graph.no[equal]
    chained = (
        (graph.mode[after] == EQ)
        & (graph.feature[after] == graph.feature[equal])
        & (graph.yes[after] == graph.yes[equal])
        & (after != equal)
    )
    equal, after = equal[chained], after[chained]
    if np.any(graph.nan_is_yes[after] != graph.nan_is_yes[equal]):
        raise UnsupportedModelError(
            doing,
            "a chain of equalities, of which some send missing values to their true side and "
            "others do not",
            "give them all the same missing_value_tracks_true",
        )
    follows = dict(zip(equal.tolist(), after.tolist(), strict=True))
    mode, no, merged = graph.mode.copy(), graph.no.copy(), {}
    for head in set(follows) - set(follows.values()):
        node, members = head, [float(graph.value[head])]
        while node in follows and len(members) <= len(follows):
            node = follows[node]
            members.append(float(graph.value[node]))
        mode[head], no[head] = MEMBER, graph.no[node]
        merged[head] = tuple(members)
    return replace(graph, mode=mode, no=no), merged


def _split_equalities(
    graph: Graph, merged: dict[int, tuple[float, ...]], doing: str
) -> tuple[Graph, dict[int, tuple[tuple[int, ...], bool]]]:
    """Equalities and sets as member columns where they can be, else as chains of ≤.

    Gives the graph, and for each node that reads a member column its set and whether x must be
    whole to be in it.
    """
    sets = {**graph.sets, **merged}
    flipped = np.flatnonzero(graph.mode == NEQ)
    for node in np.flatnonzero((graph.mode == EQ) | (graph.mode == NEQ)).tolist():
        sets[node] = (float(graph.value[node]),)
    if not sets:
        return graph, {}
    yes, no, nan_is_yes = graph.yes.copy(), graph.no.copy(), graph.nan_is_yes.copy()
    yes[flipped], no[flipped] = graph.no[flipped], graph.yes[flipped]
    # NaN is not equal to anything, whatever the node says of missing values.
    nan_is_yes[flipped] = False
    member, chains = {}, {}
    for node, members in sets.items():
        if any(m != m or abs(m) == np.inf for m in members):
            refuse(doing, "a test of equality with a number that is not finite")
        cut = node in graph.sets and (max(members) > EXACT_SETS_UP_TO or min(members) < 0)
        as_columns = tuple(sorted({int(m) for m in members}))
        is_category = all(m == int(m) and 0 <= m < MOST_CATEGORIES for m in members)
        if cut and not is_category:
            raise UnsupportedModelError(
                doing,
                f"a membership set with {min(members)} and {max(members)}, for which ONNX Runtime "
                "cuts off fractions",
                "use sets of integers from 0 on",
            )
        if is_category:
            member[node] = (as_columns, not cut)
        else:
            chains[node] = sorted(set(members))
    if len({whole for _, whole in member.values()}) > 1:
        for node in [n for n, (_, whole) in member.items() if whole]:
            chains[node] = [float(m) for m in member.pop(node)[0]]
    mode = np.where(np.isin(np.arange(len(graph.mode)), list(sets)), MEMBER, graph.mode)
    graph = replace(graph, mode=mode, yes=yes, no=no, nan_is_yes=nan_is_yes)
    return _chains(graph, chains), member


def _chains(graph: Graph, chains: dict[int, list[float]]) -> Graph:
    """x = a or x = b as: x < a: no; x ≤ a: yes; x < b: no; x ≤ b: yes; else no."""
    n = len(graph.mode)
    rows: list[tuple[Any, ...]] = []
    for node, members in chains.items():
        feature, name = graph.feature[node], graph.name[node]
        yes, no, nan_is_yes = graph.yes[node], graph.no[node], bool(graph.nan_is_yes[node])
        n_new = n + sum(row[0] >= n for row in rows)
        ids = [node, *range(n_new, n_new + 2 * len(members) - 1), no]
        for i, m in enumerate(members):
            below, at, after = ids[2 * i : 2 * i + 3]
            # NaN leaves at the first test or, if it belongs to the set, at the second.
            rows.append((below, LT, feature, m, no, at, not nan_is_yes, name))
            rows.append((at, LEQ, feature, m, yes, after, nan_is_yes, name))
    if not rows:
        return graph
    places, *columns = zip(*rows, strict=True)
    arrays: dict[str, Any] = {}
    for key, column in zip(
        ("mode", "feature", "value", "yes", "no", "nan_is_yes", "name"), columns, strict=True
    ):
        old = getattr(graph, key)
        grown = np.concatenate([old, np.zeros(max(0, max(places) + 1 - n), old.dtype)])
        grown[list(places)] = column
        arrays[key] = grown
    return replace(graph, **arrays)
