"""Trees nearly as good as the best: for each feature the best tree that tests it first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..axis.nodes import Nodes
from .found import FoundTree
from .losses import leaf_values, loss_of_leaves
from .orders import orders_of
from .tree import DOING, TOLERANCE, Limits, SolvedTree, solved_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Int

    from ..rows import Rows


@dataclass(frozen=True)
class Problem:
    """What trees are searched for."""

    rows: Rows
    n_classes: int | None
    criterion: str
    limits: Limits
    label_features: Sequence[int] = ()
    names: Sequence[str] = ()
    n_threads: int | None = None

    def solved(self, which: Int[np.ndarray, "r"], leaves: int, least: int) -> SolvedTree:
        """The best tree one level lower for some of the rows, which cost what they cost in all."""
        own, limits = self.rows.take(which), self.limits
        below = replace(
            limits,
            max_depth=limits.max_depth - 1,
            max_leaves=leaves,
            leaf_penalty=limits.leaf_penalty * self.rows.w.sum() / own.w.sum(),
            min_samples_leaf=least,
            time_limit=None,
        )
        options = (self.label_features, self.names, 0, self.n_threads, False)
        return solved_tree(own, self.n_classes, self.criterion, below, *options)


class FirstFeature:
    """The search for the best tree whose first test reads one feature.

    As in the whole search an interval of cuts between a and b loses at least L(a) + R(b), where L
    is what the best tree of the left side loses and R that of the right one, both without a least
    size of leaves.
    """

    def __init__(self, problem: Problem, limit: float) -> None:
        self.problem = problem
        self.limit = limit
        """Trees beyond it are not wanted."""
        self.best = float("inf")
        self.tree: SolvedTree | None = None

    def look(self, order: int, ranks: Int[np.ndarray, "m"], cut_nodes: CutNodes) -> None:
        """Try all cuts of an order."""
        known = np.unique(ranks)
        n_cuts = len(known) - 1
        pairs = _pairs(self.problem.limits)
        nothing = np.zeros(len(pairs))
        # Cuts first..last, what the left side loses before them, and the right one behind them.
        todo = [(0, n_cuts - 1, nothing, nothing)] if n_cuts and pairs else []
        while todo:
            first, last, left, right = todo.pop()
            if first > last or self._is_out(float((left + right).min())):
                continue
            middle = (first + last) // 2
            is_left = ranks <= known[middle]
            sides = np.flatnonzero(is_left), np.flatnonzero(~is_left)
            here = [
                np.array([self._loss(side, pair[i], 1) for pair in pairs])
                for i, side in enumerate(sides)
            ]
            if not self._is_out(float((here[0] + here[1]).min())):
                cut = (order, int(known[middle]), int(known[middle + 1]))
                self._try(cut_nodes(cut), sides, pairs)
            todo.append((middle + 1, last, here[0], right))
            todo.append((first, middle - 1, left, here[1]))

    def _is_out(self, bound: float) -> bool:
        return bound > self.limit or bound >= self.best

    def _loss(self, side: Int[np.ndarray, "r"], leaves: int, least: int) -> float:
        found = self.problem.solved(side, leaves, least)
        return float(found.report["objective"]) * self._share(side)

    def _share(self, side: Int[np.ndarray, "r"]) -> float:
        w = self.problem.rows.w
        return float(w[side].sum() / w.sum())

    def _try(
        self,
        root: tuple[Nodes, Int[np.ndarray, "m"]],
        sides: tuple[np.ndarray, np.ndarray],
        pairs: list[tuple[int, int]],
    ) -> None:
        """The best tree with this first test, if it is better than those before."""
        least = self.problem.limits.min_samples_leaf
        if min(map(len, sides)) < least:
            return
        swapped = bool(root[1][sides[0][0]] == 1)
        for pair in pairs:
            solved = [
                self.problem.solved(side, n, least) for side, n in zip(sides, pair, strict=True)
            ]
            value = sum(
                float(found.report["objective"]) * self._share(side)
                for found, side in zip(solved, sides, strict=True)
            )
            if not self._is_out(value):
                self.best = value
                self.tree = _grafted(root, *(solved[::-1] if swapped else solved))


class CutNodes:
    """Trees of one test: their nodes, and the leaf of each row."""

    def __init__(self, problem: Problem) -> None:
        rows = problem.rows
        self.orders, self.rank = orders_of(rows.X, problem.label_features, problem.names, DOING)
        self.w = rows.w

    def __call__(self, cut: tuple[int, int, int]) -> tuple[Nodes, Int[np.ndarray, "m"]]:
        flat = np.array([*cut, *[-1] * 6])
        return FoundTree.of(flat).nodes(self.orders, self.rank, self.w)


def near_optimal_trees(problem: Problem, best: float, tolerance: float) -> list[SolvedTree]:
    """For each feature the best tree that tests it first, and the single leaf, by objective.

    Parameters
    ----------
    best
        The least objective of any tree.
    tolerance
        How much more a tree may lose, in parts of what a single leaf loses.

    Returns
    -------
    list of SolvedTree
        Trees that predict the same class, or number, for every row are given once.

    Examples
    --------
    >>> from decision_machines.train.rows import Rows
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 1.0]])
    >>> problem = Problem(Rows(X, np.array([0, 0, 1, 1, 1]), np.ones(5)), 2, "error", Limits(1))
    >>> [tree.report["objective"] for tree in near_optimal_trees(problem, 0.0, 0.5)]
    [0.0, 0.2]
    """
    rows = problem.rows
    one = np.zeros(len(rows), np.int64)
    k = problem.n_classes or rows.y.reshape(len(rows), -1).shape[1]
    constant = leaf_values(problem.criterion, rows.y, rows.w, one, 1, k)
    whole = loss_of_leaves(problem.criterion, rows.y, rows.w, constant, one)
    limit = best * (1 + TOLERANCE) + (tolerance + TOLERANCE) * whole
    cut_nodes = CutNodes(problem)
    leaf = FoundTree.of(np.full(3, -1)).nodes(cut_nodes.orders, cut_nodes.rank, rows.w)[0]
    objective = whole + problem.limits.leaf_penalty
    found = []
    if objective <= limit:
        found.append(SolvedTree(leaf, constant, one, {"objective": objective}, []))
    for feature in range(rows.X.shape[1]):
        search = FirstFeature(problem, limit)
        for i, order in enumerate(cut_nodes.orders):
            if order.feature == feature:
                search.look(i, cut_nodes.rank[i], cut_nodes)
        if search.tree is not None:
            found.append(_judged(search.tree, problem))
    found.sort(key=lambda tree: (tree.report["objective"], tree.nodes.n_leaves))
    return _different(found, problem)


def _pairs(limits: Limits) -> list[tuple[int, int]]:
    """How many leaves the two sides of the root may have."""
    if limits.max_depth == 0:
        return []
    half, most = 2 ** (limits.max_depth - 1), limits.most_leaves
    if most == 2 * half:
        return [(half, half)]
    return [(n, most - n) for n in range(max(1, most - half), min(half, most - 1) + 1)]


def _grafted(
    first: tuple[Nodes, Int[np.ndarray, "m"]],
    left: SolvedTree,
    right: SolvedTree,
) -> SolvedTree:
    """The first test with the two trees in place of its leaves."""
    root, goes_right = first
    sides = [left.nodes, right.nodes]
    start = [1, 1 + len(left.nodes.left)]
    shifted = [
        [np.where(to >= 0, to + by, -1) for to in (side.left, side.right)]
        for side, by in zip(sides, start, strict=True)
    ]
    nodes = Nodes(
        np.concatenate([[start[0]], shifted[0][0], shifted[1][0]]),
        np.concatenate([[start[1]], shifted[0][1], shifted[1][1]]),
        np.concatenate([root.feature[:1], *(side.feature for side in sides)]),
        np.concatenate([root.t[:1], *(side.t for side in sides)]),
        np.concatenate([root.missing_left[:1], *(side.missing_left for side in sides)]),
    )
    leaf = np.empty(len(goes_right), np.int64)
    leaf[goes_right == 0] = left.leaf
    leaf[goes_right == 1] = right.leaf + left.nodes.n_leaves
    values = np.concatenate([left.values, right.values])
    return SolvedTree(nodes, values, leaf, {}, [])


def _judged(tree: SolvedTree, problem: Problem) -> SolvedTree:
    """The tree with its objective as `optimal_tree` computes it, not as a sum of two sides'."""
    rows = problem.rows
    loss = loss_of_leaves(problem.criterion, rows.y, rows.w, tree.values, tree.leaf)
    objective = loss + problem.limits.leaf_penalty * tree.nodes.n_leaves
    return replace(tree, report={"objective": objective})


def _different(found: list[SolvedTree], problem: Problem) -> list[SolvedTree]:
    """Of trees that predict alike the first."""
    kept: dict[bytes, SolvedTree] = {}
    size = np.abs(problem.rows.y).max(initial=0) or 1
    for tree in found:
        said = tree.values[tree.leaf]
        if problem.n_classes is not None:
            answer = said.argmax(axis=1)
        else:  # sums in another order differ in their last digits
            answer = np.round(said / size, 9) + 0.0
        kept.setdefault(answer.tobytes(), tree)
    return list(kept.values())
