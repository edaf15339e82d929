"""Searches with several settings side by side, over the same rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from .nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxtyping import Float, Int

    from .ranks import Ranks
    from .standard_rows import StandardRows

PATIENCE = 0.25
"""Seconds between looks at whether someone wants to interrupt."""

TREES_AT_ONCE = 12
"""Of the forest, before a look at whether someone wants to interrupt."""

DEEPEST = 2048
"""No tree is deeper, asked or not: its nodes are visited by recursion."""

MOST_OUTPUTS = 6
"""A target of more numbers is searched in this many of its principal directions."""


NUMBER_LOSSES = ("squared", "poisson", "quantile")
"""As the native search counts them."""


@dataclass(frozen=True)
class Setting:
    """What one search aims at."""

    gini: float = 1.0
    """Weight of the Gini impurity; numbers always have the squared error."""
    entropy: float = 0.0
    error: float = 0.0
    """Weight of the share of rows that are not of their leaf's largest class."""
    ridge: float = 0.0
    """Squared error only: as if so many rows of the overall mean stood in every leaf."""
    number: str = "squared"
    """What numbers lose: "squared", "poisson" or "quantile"."""
    quantile: float = 0.5
    power: float = 0.0
    """How strongly rare classes are lifted, see `class_factors`."""
    taught: float = 0.0
    """How much of the target is what a forest says of rows that it has not seen."""
    least: int = 1
    """Rows in a leaf, at least."""
    n_moves: int = 0
    """How many moves; none leaves the greedy tree, CART's."""
    n_finish: int = 0
    """Classes only: how many moves then follow that count errors."""
    temperature: float = 0.05
    """How much the loss may rise by a move at first, in parts of the root's loss per leaf."""

    @property
    def objective(self) -> np.ndarray:
        number = NUMBER_LOSSES.index(self.number)
        return np.array(
            [self.gini, self.entropy, self.error, self.ridge, number, self.quantile], np.float64
        )


@dataclass(frozen=True)
class Limits:
    """What holds for every search."""

    max_leaves: int
    max_depth: int | None
    seed: int
    n_threads: int
    leaf_cost: float = 0.0
    """What a leaf must gain, in parts of the loss of a tree of one leaf."""
    feature_costs: Float[np.ndarray, "n"] | None = None
    """What a row pays for each feature on its path, in the same unit."""
    monotone: Int[np.ndarray, "n"] | None = None
    """1 where answers may not fall as a feature grows, -1 where they may not rise."""

    @property
    def constraints(self) -> dict[str, Any]:
        """For the native search."""
        return {
            "leaf_cost": self.leaf_cost,
            "feature_cost": self.feature_costs,
            "monotone": self.monotone,
        }


class Searches:
    """One native search for each setting; settings that are taught alike share their target."""

    def __init__(
        self,
        rows: StandardRows,
        ranks: Ranks,
        settings: Sequence[Setting],
        limits: Limits,
        taught: Float[np.ndarray, "m k"] | None = None,
    ) -> None:
        self.rows, self.ranks, self.limits = rows, ranks, limits
        self.settings = list(settings)
        self.done = np.zeros(len(self.settings), np.int64)
        target = None if taught is None else principal(taught)
        label, y = (rows.label, rows.y) if target is None else (None, target)
        k = rows.k if target is None else target.shape[1]
        self._native = _native.TreeSearches(ranks.rank, ranks.n_ranks, label, y, rows.w, k)
        # A target that is not the rows' own can be bent in no direction.
        constraints = (
            limits.constraints if target is None else limits.constraints | {"monotone": None}
        )
        # Each its own numbers, whatever stands beside it.
        for i, setting in enumerate(self.settings):
            own = np.random.SeedSequence([limits.seed, i]).generate_state(1, np.uint64)[0]
            self._native.add(
                int(own),
                limits.max_leaves,
                DEEPEST if limits.max_depth is None else min(limits.max_depth, DEEPEST),
                setting.least,
                setting.temperature,
                max(1, setting.n_moves),
                setting.objective,
                **constraints,
            )

    def grow(self, *, in_bins: bool = False) -> Iterator[None]:
        """The greedy tree of every setting; a pause after each."""
        for i in range(len(self.settings)):
            self._native.grow(i, in_bins)
            yield

    def adopt(self, i: int, nodes: Nodes) -> None:
        """Search i goes on from this tree over rows with the same ranks."""
        assert nodes.cut is not None
        self._native.adopt(i, nodes.left, nodes.right, nodes.feature, nodes.cut, nodes.missing_left)

    def drop(self, i: int) -> None:
        """Free what search i holds; it has ended."""
        self._native.drop(i)

    def advance(self, part: float, which: Sequence[int] | None = None) -> Iterator[None]:
        """Bring searches, all or `which`, to this part of their moves; pauses to be interrupted.

        What is found does not depend on where the pauses are.
        """
        live = range(len(self.settings)) if which is None else which
        goal = self.done.copy()
        for i in live:
            goal[i] = max(goal[i], round(part * self.settings[i].n_moves))
        step = 4
        while np.any(self.done < goal):
            moves = np.minimum(goal - self.done, step)
            start = time.perf_counter()
            self._native.advance(moves, self.limits.n_threads)
            self.done += moves
            if time.perf_counter() - start < PATIENCE / 2:
                step *= 2
            yield
        for i in live:
            if self.settings[i].n_moves:
                self._native.polish(i)
                yield

    def nodes(self, i: int) -> Nodes:
        return Nodes.of(self._native.tree(i, *self.ranks.places), self.ranks)

    def loss(self, i: int) -> float:
        return self._native.loss(i) / float(self.rows.w.sum())


def out_of_bag(
    rows: StandardRows, ranks: Ranks, limits: Limits, n_trees: int
) -> Iterator[np.ndarray]:
    """(m, k) what a random forest says of each row by the trees that have not seen it.

    Comes after every few trees, better each time.
    """
    searches = _native.TreeSearches(ranks.rank, ranks.n_ranks, rows.label, rows.y, rows.w, rows.k)
    n = rows.X.shape[1]
    tried = max(1, round(np.sqrt(n)) if rows.label is not None else round(0.4 * n))
    overall = np.average(rows.answers(), axis=0, weights=rows.w)
    total, count = np.zeros((len(rows), rows.k)), np.zeros((len(rows), 1))
    for first in range(0, n_trees, TREES_AT_ONCE):
        seed = limits.seed % 2**32 * n_trees + first
        found = searches.out_of_bag(TREES_AT_ONCE, 2, tried, seed, limits.n_threads)
        total += found[0].reshape(total.shape)
        count += found[1][:, None]
        yield np.where(count > 0, total / np.maximum(count, 1), overall)


def principal(target: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m q"]:
    """Targets centred, in their `MOST_OUTPUTS` principal directions where there are more."""
    target = target - target.mean(axis=0)
    if target.shape[1] > MOST_OUTPUTS:
        values, vectors = np.linalg.eigh(target.T @ target)
        target = target @ vectors[:, np.argsort(values)[-MOST_OUTPUTS:]]
    elif target.shape[1] == 2 and np.allclose(target.sum(axis=1), 0):
        target = target[:, :1]  # two classes are one number
    return np.ascontiguousarray(target)
