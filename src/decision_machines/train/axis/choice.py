"""From settings to candidates, and the choice among them by validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from .ranks import Ranks
from .search import Limits, Searches, Setting, out_of_bag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...progress import Watch
    from .nodes import Nodes
    from .standard_rows import StandardRows

SHRINKS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)
"""How many rows of its parent a node may take in."""

TEACHING = (0.0, 0.5)
"""How much of what the forest says goes into the leaves' values."""

PARTS = (0.125, 0.25, 0.5, 1.0)
"""After which parts of its moves the tree of a search stands for choice."""

N_TEACHERS = 60
"""Trees in the forest that teaches."""

FINISH: dict[str, Any] = {"gini": 0.1, "entropy": 0.0, "error": 1.0, "ridge": 0.0}


@dataclass(frozen=True)
class Candidate:
    """A tree, how it was found and how well it does."""

    nodes: Nodes
    values: np.ndarray
    """(N, k) what each node says."""
    setting: Setting
    """With the moves that were made."""
    shrink: float
    teaching: float
    loss: float
    """Of the learning rows, in the measure that decides."""
    valid: float
    """Of the validation rows; nan without any."""

    @property
    def rank(self) -> float:
        return self.loss if np.isnan(self.valid) else self.valid


def decisive_loss(rows: StandardRows, said: np.ndarray) -> np.ndarray:
    """(s,) what the choice minimises, for (s, m, k) answers.

    The squared error of numbers. Of classes the errors, with a part of the squared error of the
    probabilities, the larger the fewer rows there are: it tells apart what a few hundred rows
    cannot by counting.
    """
    share = rows.w / rows.w.sum()
    squared: np.ndarray = ((said - rows.answers()) ** 2).sum(axis=2) @ share
    if rows.label is None:
        return squared
    errors: np.ndarray = (said.argmax(axis=2) != rows.label) @ share
    return errors + (0.25 + 200 / len(rows)) * squared


class Choice:
    """All that is found over the same rows; `found` grows while it looks."""

    def __init__(
        self,
        rows: StandardRows,
        valid: StandardRows | None,
        settings: Sequence[Setting],
        limits: Limits,
    ) -> None:
        self.rows, self.valid, self.limits = rows, valid, limits
        self.settings = sorted(settings, key=lambda s: s.taught)
        self.found: list[Candidate] = []
        self.ranks = Ranks.of(rows.X)
        self.teacher: np.ndarray | None = None
        self.active: list[Searches] = []
        self.shrinks: tuple[float, ...] = (0.0,)
        self.teachings: tuple[float, ...] = (0.0,)

    @property
    def best(self) -> Candidate:
        return min(self.found, key=lambda c: c.rank)

    def look(self, watch: Watch, shrinks: Sequence[float], teachings: Sequence[float]) -> None:
        """Search, judging trees on the way; interrupted, keep what there is."""
        self.shrinks, self.teachings = tuple(shrinks), tuple(teachings)
        with watch:
            for step in self._steps():
                if step:
                    best = self.best
                    shown = {} if self.valid is None else {"valid": best.valid}
                    watch.step(loss=best.loss, **shown)
        if watch.interrupted:
            for searches in self.active:
                self._judge(searches)
        if not self.found:
            self._judge(Searches(self.rows, self.ranks, [Setting()], self.limits))

    @property
    def n_steps(self) -> int:
        groups = len({s.taught for s in self.settings})
        finished = len({s.taught for s in self.settings if s.n_finish})
        return groups * (1 + len(PARTS)) + finished

    def _steps(self) -> Iterator[bool]:
        """Work in small pieces; True where something new was judged."""
        if self._needs_teacher():
            for said in out_of_bag(self.rows, self.ranks, self.limits, N_TEACHERS):
                self.teacher = said
                yield False
        for taught, group in groupby(self.settings, key=lambda s: s.taught):
            yield from self._group(taught, list(group))

    def _needs_teacher(self) -> bool:
        return any(s.taught for s in self.settings) or any(self.teachings)

    def _group(self, taught: float, settings: list[Setting]) -> Iterator[bool]:
        target = None
        if taught:
            assert self.teacher is not None
            target = (1 - taught) * self.rows.answers() + taught * self.teacher
        searches = Searches(self.rows, self.ranks, settings, self.limits, target)
        self.active = [searches]
        for _ in searches.grow():
            yield False
        self._judge(searches)
        yield True
        moving = [i for i, s in enumerate(settings) if s.n_moves]
        for part in PARTS:
            for _ in searches.advance(part):
                yield False
            self._judge(searches, moving)
            yield True
        if self.rows.label is None or not any(s.n_finish for s in settings):
            return
        finals = [replace(s, **FINISH, n_moves=s.n_finish) for s in settings]
        finish = Searches(self.rows, self.ranks, finals, self.limits)
        finish.adopt(searches)
        self.active = [finish]
        for _ in finish.advance(1.0):
            yield False
        for i in (i for i, s in enumerate(settings) if s.n_finish):
            self._consider(finish.nodes(i), settings[i])
        yield True

    def _judge(self, searches: Searches, which: Sequence[int] | None = None) -> None:
        for i in range(len(searches.settings)) if which is None else which:
            made = replace(searches.settings[i], n_moves=int(searches.done[i]), n_finish=0)
            self._consider(searches.nodes(i), made)

    def _consider(self, nodes: Nodes, setting: Setting) -> None:
        """Every way to give this tree's leaves their values; the best becomes a candidate."""
        rows, valid = self.rows, self.valid
        exits = nodes.exits(rows.X)
        values, options = [], []
        for teaching in self.teachings:
            answers = rows.answers()
            if teaching:
                if self.teacher is None:  # interrupted before it had learned
                    continue
                answers = (1 - teaching) * answers + teaching * self.teacher
            values += list(nodes.values(answers, rows.w, exits, self.shrinks))
            options += [(shrink, teaching) for shrink in self.shrinks]
        all_values = np.array(values)
        learned = decisive_loss(rows, all_values[:1, exits])
        decides = None
        if valid is not None:
            decides = decisive_loss(valid, all_values[:, nodes.exits(valid.X)])
        at = 0 if decides is None else int(np.argmin(decides))
        self.found.append(
            Candidate(
                nodes,
                values[at],
                setting,
                *options[at],
                float(learned[0]),
                float("nan") if decides is None else float(decides[at]),
            )
        )
