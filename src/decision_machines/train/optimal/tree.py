"""The tree of a given depth with the least loss on the rows, and the proof that it is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from ...progress import Verbosity, Watch
from ...run.engines.processor import cpu_count
from ..fit import Fit
from ..rows import Rows
from .found import FoundTree
from .losses import LOSSES, leaf_values, loss_of_leaves
from .orders import orders_of
from .start import start_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int

    from ...machine import DecisionMachine
    from ..axis.nodes import Nodes

DOING = "searching for an optimal tree"
DEEPEST = 5
TOLERANCE = 1e-9
"""Trees whose losses differ by less than this part of the loss of one leaf are as good as each
other; losses of whole weights are compared exactly."""
LONGEST = 1e9
"""Seconds that stand for no limit."""


@dataclass(frozen=True)
class Limits:
    """What a tree may have, and the search."""

    max_depth: int = 3
    max_leaves: int | None = None
    leaf_penalty: float = 0.0
    min_samples_leaf: int = 1
    time_limit: float | None = None

    @property
    def most_leaves(self) -> int:
        most: int = 2**self.max_depth
        return most if self.max_leaves is None else min(most, self.max_leaves)


def optimal_tree(
    rows: Rows,
    *,
    n_classes: int | None = None,
    criterion: str = "error",
    limits: Limits = Limits(),
    label_features: Sequence[int] = (),
    names: Sequence[str] = (),
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
    target: str = "auto",
) -> Fit:
    """Search for the tree with the least mean loss plus `leaf_penalty` for each leaf.

    Parameters
    ----------
    rows
        Distinct rows with weights above 0; y are codes 0..n_classes - 1, or targets.
    n_classes
        None for numbers.
    criterion
        "error" for classes; "squared_error" or "absolute_error" for numbers.
    label_features
        Features that hold codes of labels: all their sets are tried. Thresholds of tests of them
        are sets, as bits.
    names
        Of features, for errors.
    target
        Which kernels: the fastest of this processor by default.

    Returns
    -------
    Fit
        The report has objective, bound, gap and is_optimal; bound is true wherever the search ends.
        `leaf` there is the leaf of each row.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.3)).astype(int)
    >>> fit = optimal_tree(Rows(X, y, np.ones(200)), n_classes=2, limits=Limits(max_depth=2))
    >>> fit.report["objective"], fit.report["is_optimal"]
    (0.0, True)
    """
    found = solved_tree(
        rows, n_classes, criterion, limits, label_features, names,
        seed, n_threads, verbose, keep_best_on_interrupt, target,
    )  # fmt: skip
    machine = tree_machine(found, rows.X.shape[1], n_classes)
    return Fit(machine, report=found.report | {"leaf": found.leaf}, history=found.history)


@dataclass(frozen=True)
class SolvedTree:
    """The best tree that was found: its nodes, what its leaves say, and what is proven."""

    nodes: Nodes
    values: Float[np.ndarray, "L k"]
    leaf: Int[np.ndarray, "m"]
    """Of each row, counted from 0, left to right."""
    report: dict[str, Any]
    history: list[dict[str, float]]


def tree_machine(found: SolvedTree, n_features: int, n_classes: int | None) -> DecisionMachine:
    """The machine of a tree, whose labels are codes."""
    return found.nodes.machine(
        _by_node(found.nodes, found.values),
        n_features,
        None if n_classes is None else np.arange(n_classes),
        "an optimal tree",
    )


def solved_tree(
    rows: Rows,
    n_classes: int | None,
    criterion: str,
    limits: Limits,
    label_features: Sequence[int] = (),
    names: Sequence[str] = (),
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
    target: str = "auto",
) -> SolvedTree:
    """What `optimal_tree` finds, as nodes; the parameters are those."""
    begin = time.perf_counter()
    X, y, w = rows.X, rows.y, rows.w
    k = n_classes or y.reshape(len(y), -1).shape[1]
    total = float(w.sum())
    orders, rank = orders_of(X, label_features, names, DOING)
    is_whole = bool(np.all(w == np.floor(w))) and total < 2**30
    label = targets = None
    scale = 1.0
    if n_classes is not None:
        label = y.astype(np.int32)
    else:
        numbers = y.reshape(len(y), -1)
        numbers = numbers - np.average(numbers, axis=0, weights=w)
        scale = float(np.abs(numbers).max()) or 1.0  # squares of any y stay finite
        targets = np.ascontiguousarray((numbers / scale).T)
    unit = scale**2 if criterion == "squared_error" else scale
    slack = 0.5
    penalty = limits.leaf_penalty * total / unit if unit else 0.0
    if not (is_whole and n_classes is not None and penalty == 0.0):
        one = np.zeros(len(y), np.int64)
        constant = leaf_values(criterion, y, w, one, 1, k)
        lost = loss_of_leaves(criterion, y, w, constant, one)
        slack = TOLERANCE * total * max(lost / unit, 1e-300)

    def judged(nodes: Nodes, leaf: np.ndarray) -> tuple[Nodes, np.ndarray, float, np.ndarray]:
        values = leaf_values(criterion, y, w, leaf, nodes.n_leaves, k)
        objective = loss_of_leaves(criterion, y, w, values, leaf)
        return nodes, values, objective + limits.leaf_penalty * nodes.n_leaves, leaf

    watch = Watch("searching for an optimal tree", None, verbose, keep_best=keep_best_on_interrupt)
    best = judged(*FoundTree.of(np.full(3, -1)).nodes(orders, rank, w))
    is_proven, bound = False, 0.0
    search: Any = None
    with watch:
        started = start_tree(rows, n_classes, limits, label_features, seed, n_threads)
        if started is not None:
            best = min(best, judged(*started), key=lambda found: found[2])
        search = _native.OptimalSearch(
            rank, label, targets, w, k, LOSSES[criterion], limits.max_depth, limits.most_leaves,
            limits.min_samples_leaf, penalty, slack, is_whole,
            best[2] * total / unit, target,
        )  # fmt: skip

        def told(value: float, low: float) -> None:
            objective = min(best[2], value * unit / total)
            low = min(low * unit / total, objective)
            watch.step(objective=objective, bound=low, gap=objective - low)

        seconds = LONGEST
        if limits.time_limit is not None:
            seconds = max(0.0, limits.time_limit - (time.perf_counter() - begin))
        is_proven = search.run(seconds, n_threads or cpu_count(), told)
    if search is not None:
        value, bound, n_cuts = search.state()
        if np.isfinite(value):
            found = judged(*FoundTree.of(search.tree()).nodes(orders, rank, w))
            best = min(best, found, key=lambda each: each[2])
    nodes, values, objective, leaf = best
    bound = objective if is_proven else min(bound * unit / total, objective)
    report = {
        "objective": objective,
        "bound": bound,
        "gap": objective - bound,
        "is_optimal": is_proven,
        "leaves": nodes.n_leaves,
        "root_cuts": 0 if search is None else n_cuts,
        "seconds": time.perf_counter() - begin,
        "interrupted": watch.interrupted,
    }
    return SolvedTree(nodes, values, leaf, report, watch.history)


def _by_node(nodes: Nodes, values: np.ndarray) -> np.ndarray:
    """(N, k) values at the leaves; nodes that are not leaves say nothing."""
    out = np.zeros((len(nodes.left), values.shape[1]))
    out[nodes.left < 0] = values
    return out
