"""Searches with several settings side by side, and the choice among what they found."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _native
from .axis_nodes import Nodes
from .ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .axis_rows import Rows
    from .watch import Watch

SHRINKS = np.array([0.0, 1.0, 3.0, 10.0, 30.0, 100.0])
"""How many rows of its parent a node may take in; the choice is validation's."""

PATIENCE = 0.25
"""Seconds between looks at whether someone wants to interrupt."""


@dataclass(frozen=True)
class Setting:
    """What one search aims at."""

    gini: float = 1.0
    """Weight of the Gini impurity; of the squared error where the target is numbers."""
    entropy: float = 0.0
    error: float = 0.0
    """Weight of the share of rows that are not of their leaf's largest class."""
    ridge: float = 0.0
    """Numbers only: as if so many rows of the overall mean stood in every leaf."""
    least: int = 1
    """Rows in a leaf, at least."""
    n_moves: int = 0
    """How many moves; none leaves the greedy tree, CART's."""
    temperature: float = 0.05
    """How much the loss may rise by a move at first, in parts of the root's loss per leaf."""

    @property
    def objective(self) -> np.ndarray:
        return np.array([self.gini, self.entropy, self.error, self.ridge])


@dataclass(frozen=True)
class Candidate:
    """A tree, how it was found and how well it does."""

    nodes: Nodes
    setting: Setting
    n_moves: int
    shrink: float
    loss: float
    """What the search minimised, per row, on the rows it learned from."""
    valid: float
    """The loss that decides, on the validation rows; nan without any."""


class Searches:
    """One search for each setting, over the same rows."""

    def __init__(
        self,
        rows: Rows,
        settings: Sequence[Setting],
        *,
        max_leaves: int,
        max_depth: int | None,
        seed: int,
        n_threads: int,
    ) -> None:
        self.rows, self.settings, self.n_threads = rows, list(settings), n_threads
        self.ranks = Ranks.of(rows.X)
        self._native = _native.TreeSearches(
            self.ranks.rank, self.ranks.n_ranks, rows.label, rows.y, rows.w, rows.k
        )
        self.done = np.zeros(len(settings), np.int64)
        seeds = np.random.SeedSequence(seed).generate_state(len(settings), np.uint64)
        for setting, own in zip(settings, seeds, strict=True):
            self._native.add(
                int(own),
                max_leaves,
                2**31 - 1 if max_depth is None else max_depth,
                setting.least,
                setting.temperature,
                max(1, setting.n_moves),
                setting.objective,
            )

    def grow(self) -> Iterator[None]:
        """The greedy tree of every setting; a pause after each."""
        for i in range(len(self.settings)):
            self._native.grow(i)
            yield

    def advance(self, part: float) -> Iterator[None]:
        """Bring every search to this part of its moves; a pause now and then to be interrupted.

        What is found does not depend on where the pauses are.
        """
        goal = np.array([round(part * s.n_moves) for s in self.settings])
        step = 4
        while np.any(self.done < goal):
            moves = np.minimum(goal - self.done, step)
            start = time.perf_counter()
            self._native.advance(moves, self.n_threads)
            self.done += moves
            if time.perf_counter() - start < PATIENCE / 2:
                step *= 2
            yield
        for i, setting in enumerate(self.settings):
            if setting.n_moves:
                self._native.polish(i)
                yield

    def nodes(self, i: int) -> Nodes:
        return Nodes.of(self._native.tree(i), self.ranks)

    def loss(self, i: int) -> float:
        return self._native.loss(i) / float(self.rows.w.sum())


def validation_loss(rows: Rows, said: np.ndarray) -> np.ndarray:
    """(s,) what the choice minimises, for (s, m, k) answers.

    The squared error of numbers. Of classes the errors, with half the squared error of the
    probabilities: it tells apart what a few hundred rows cannot by counting.
    """
    share = rows.w / rows.w.sum()
    squared = ((said - rows.answers()) ** 2).sum(axis=2) @ share
    if rows.label is None:
        return squared
    return (said.argmax(axis=2) != rows.label) @ share + 0.5 * squared


def judge(searches: Searches, i: int, valid: Rows | None) -> Candidate:
    """What search i has found so far, with the shrinkage that validation likes best."""
    nodes, setting = searches.nodes(i), searches.settings[i]
    shrink, found = 0.0, float("nan")
    if valid is not None:
        values = nodes.values(SHRINKS)
        losses = validation_loss(valid, values[:, nodes.exits(valid.X)])
        best = int(np.argmin(losses))
        shrink, found = float(SHRINKS[best]), float(losses[best])
    return Candidate(nodes, setting, int(searches.done[i]), shrink, searches.loss(i), found)


def search(searches: Searches, valid: Rows | None, parts: Sequence[float], watch: Watch) -> list:
    """Candidates: every setting's greedy tree, and its tree after each part of its moves.

    Interrupted, what was found until then.
    """
    found: list[Candidate] = []
    everyone = range(len(searches.settings))
    with watch:
        for _ in searches.grow():
            pass
        found += [judge(searches, i, valid) for i in everyone]
        for part in parts:
            for _ in searches.advance(part):
                pass
            news = [judge(searches, i, valid) for i in everyone if searches.settings[i].n_moves]
            found += news
            best = min(news, key=_rank, default=found[0])
            watch.step(loss=best.loss, **({} if valid is None else {"valid": best.valid}))
    if watch.interrupted:
        found += [judge(searches, i, valid) for i in everyone]
    return found


def _rank(candidate: Candidate) -> float:
    return candidate.loss if np.isnan(candidate.valid) else candidate.valid
