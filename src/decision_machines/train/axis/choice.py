"""From settings to candidates, and the choice among them by validation.

Settings are searched side by side. After a part of the moves the better half goes on: most of the
time belongs to what validation rows find good. Where rows are many, moves are made on a sample of
them; what they find is judged on all rows, and the best trees go on with a few moves on all rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from ..hold_out import spread_share
from .criteria import Criterion, Judge, class_factors, class_table
from .search import Limits, Searches, Setting, out_of_bag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...progress import Watch
    from .nodes import Nodes
    from .ranks import Ranks
    from .standard_rows import StandardRows

SHRINKS = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0)
"""How many rows of its parent a node may take in."""

TEACHING = (0.0, 0.5)
"""How much of what the forest says goes into the leaves' values."""

PARTS = (0.125, 0.25, 0.5, 1.0)
"""After which parts of its moves the tree of a search stands for choice."""

KEPT = (0.5, 0.35, 0.25)
"""The share of the searches that go on after each part but the last."""

FEWEST_KEPT = 2

N_TEACHERS = 60
"""Trees in the forest that teaches."""

MOST_ROWS = 6000
"""Rows that moves are made on; of more, a sample."""

MOST_ROWS_OF_QUANTILES = 2000
"""The same where a loss is not a function of sums, and splits take longer to find."""

FEWEST_MOVES = 16
"""On all rows, where moves were made on a sample."""

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
    power: float
    loss: float
    """Of the learning rows, in the measure that decides."""
    valid: float
    """Of the validation rows; nan without any."""

    @property
    def rank(self) -> float:
        return self.loss if np.isnan(self.valid) else self.valid


@dataclass(frozen=True)
class Options:
    """The ways to give leaves their values that are tried."""

    shrinks: tuple[float, ...] = (0.0,)
    teachings: tuple[float, ...] = (0.0,)
    powers: tuple[float, ...] = (0.0,)


@dataclass
class _Live:
    """A search that still goes on, and the best that came of it."""

    searches: Searches
    i: int
    setting: Setting
    best: float = float("inf")


class Choice:
    """All that is found over the same rows; `found` grows while it looks."""

    def __init__(
        self,
        rows: StandardRows,
        valid: StandardRows | None,
        ranks: Ranks,
        settings: Sequence[Setting],
        limits: Limits,
        criterion: Criterion,
        options: Options,
    ) -> None:
        self.rows, self.valid, self.limits, self.criterion = rows, valid, limits, criterion
        self.ranks, self.options = ranks, options
        self.settings = sorted(settings, key=_target)
        self.found: list[Candidate] = []
        self.teacher: np.ndarray | None = None
        self.is_late = False
        self.live: list[_Live] = []
        self.judges = [Judge(criterion, part) for part in (rows, valid) if part is not None]
        most = MOST_ROWS_OF_QUANTILES if criterion.is_quantile else MOST_ROWS
        self.sample: np.ndarray | None = None
        if len(rows) > most:
            self.sample = spread_share(len(rows), most / len(rows), limits.seed, rows.label)
        some = self.sample
        self.few = rows if some is None else rows.take(some)
        self.few_ranks = ranks if some is None else ranks.take(some)
        self.unit: np.ndarray | None = None  # losses of a tree of one leaf, in which costs count

    @property
    def best(self) -> Candidate:
        return min(self.found, key=lambda c: c.rank)

    def look(self, watch: Watch, deadline: float | None = None) -> None:
        """Search, judging trees on the way; interrupted or late, keep what there is."""
        with watch:
            for is_new in self._steps():
                if is_new:
                    best = self.best
                    shown = {} if self.valid is None else {"valid": best.valid}
                    watch.step(loss=best.loss, **shown)
                if deadline is not None and time.perf_counter() > deadline:
                    self.is_late = True
                    break
        if watch.interrupted or self.is_late:
            for one in self.live:
                self._judge(one)
        if not self.found:
            plain = Searches(self.few, self.few_ranks, [Setting()], self.limits)
            self._consider(plain.nodes(0), Setting())

    def refine(self, chosen: Candidate, watch: Watch, deadline: float | None) -> Candidate:
        """The chosen tree after a few moves on these rows."""
        setting = replace(chosen.setting, n_moves=self._n_wide(chosen.setting), taught=0.0)
        limits = replace(self.limits, max_leaves=max(1, chosen.nodes.n_leaves))
        wide = Searches(self._weighed(self.rows, setting), self.ranks, [setting], limits)
        wide.adopt(0, chosen.nodes)
        with watch:
            for _ in wide.advance(1.0):
                if deadline is not None and time.perf_counter() > deadline:
                    break
        self._consider(wide.nodes(0), setting)
        return self.found[-1]

    @property
    def is_sampled(self) -> bool:
        """Whether moves are made on a part of the rows."""
        return self.sample is not None

    @property
    def n_steps(self) -> int:
        finished = any(s.n_finish for s in self.settings)
        return 1 + len(PARTS) + finished + self.is_sampled

    # -- the way through the settings -------------------------------------------------------------

    def _steps(self) -> Iterator[bool]:
        """Work in small pieces; True where something new was judged."""
        if any(s.taught for s in self.settings) or any(self.options.teachings):
            for said in out_of_bag(self.few, self.few_ranks, self.limits, N_TEACHERS):
                self.teacher = said
                yield False
        yield from self._greedy()
        for i, part in enumerate(PARTS):
            for _, group in groupby(self.live, key=lambda one: id(one.searches)):
                own = list(group)
                for _ in own[0].searches.advance(part, [one.i for one in own]):
                    yield False
            for one in self.live:
                self._judge(one)
            yield True
            if i < len(KEPT):
                self._drop(max(FEWEST_KEPT, round(KEPT[i] * self._n_moving)))
        if not self.live:
            return
        self._drop(FEWEST_KEPT)
        trees = [(one.searches.nodes(one.i), one.setting) for one in self.live]
        if self.is_sampled:
            yield from self._on_all_rows(trees)
            trees = [(one.searches.nodes(one.i), one.setting) for one in self.live]
        if self.criterion.counts_errors and any(s.n_finish for _, s in trees):
            yield from self._finish(trees)

    def _greedy(self) -> Iterator[bool]:
        """Greedy trees of all settings, and the searches that go on from them."""
        self.live = []
        for (taught, _), group in groupby(self.settings, key=_target):
            settings = list(group)
            target = None
            if taught:
                assert self.teacher is not None
                target = (1 - taught) * self.few.answers() + taught * self.teacher
            moving = [s for s in settings if s.n_moves]
            still = [s for s in settings if not s.n_moves]
            if self.is_sampled and target is None:
                # On all rows, one after the other: each needs room.
                rows = self._weighed(self.rows, settings[0])
                for setting in settings:
                    wide = Searches(rows, self.ranks, [setting], self.limits)
                    for _ in wide.grow(in_bins=True):
                        yield False
                    self._consider(wide.nodes(0), replace(setting, n_moves=0, n_finish=0))
                still = []
            rows = self._weighed(self.few, settings[0])
            searches = Searches(rows, self.few_ranks, moving + still, self.limits, target)
            for _ in searches.grow():
                yield False
            here = [_Live(searches, i, s) for i, s in enumerate(moving + still)]
            if not self.is_sampled or target is not None:
                for one in here:
                    self._judge(one)
            for one in here[len(moving) :]:
                searches.drop(one.i)
            self.live += here[: len(moving)]
        self._n_moving = len(self.live)
        yield True

    def _drop(self, n_kept: int) -> None:
        """The best searches go on, in the order in which they stood."""
        last = sorted(one.best for one in self.live)[:n_kept][-1:]
        kept: list[_Live] = []
        for one in self.live:
            if last and one.best <= last[0] and len(kept) < n_kept:
                kept.append(one)
            else:
                one.searches.drop(one.i)
        self.live = kept

    def _on_all_rows(self, trees: list[tuple[Nodes, Setting]]) -> Iterator[bool]:
        """The trees that were found on a sample, improved on all rows."""
        self.live = []
        for nodes, setting in trees:
            own = replace(setting, n_moves=self._n_wide(setting), taught=0.0, temperature=0.0)
            rows = self._weighed(self.rows, own)
            wide = Searches(rows, self.ranks, [own], self.limits)
            wide.adopt(0, nodes)
            one = _Live(wide, 0, own)
            self.live.append(one)
            for _ in wide.advance(1.0):
                yield False
            self._judge(one)
        yield True

    def _finish(self, trees: list[tuple[Nodes, Setting]]) -> Iterator[bool]:
        """More moves for the last trees, which count errors."""
        rows, ranks = self.rows, self.ranks
        self.live = []
        for nodes, setting in trees:
            n_moves = setting.n_finish
            if self.is_sampled:
                n_moves = max(1, self._n_wide(replace(setting, n_moves=n_moves)))
            own = replace(setting, **FINISH, n_moves=n_moves)
            finish = Searches(self._weighed(rows, own), ranks, [own], self.limits)
            finish.adopt(0, nodes)
            one = _Live(finish, 0, own)
            self.live.append(one)
            for _ in finish.advance(1.0):
                yield False
            self._consider(finish.nodes(0), replace(setting, n_finish=n_moves))
        yield True

    def _n_wide(self, setting: Setting) -> int:
        """Moves on all rows: about as much work as those on the sample."""
        if not setting.n_moves:
            return 0
        share = len(self.few) / len(self.rows)
        return max(FEWEST_MOVES, round(setting.n_moves * share))

    def _weighed(self, rows: StandardRows, setting: Setting) -> StandardRows:
        """Rows whose classes count as the setting asks for."""
        if not setting.power:
            return rows
        factors = class_factors(self.rows, setting.power)
        assert rows.label is not None
        return replace(rows, w=rows.w * factors[rows.label])

    # -- judging ----------------------------------------------------------------------------------

    def _judge(self, one: _Live) -> None:
        made = replace(one.setting, n_moves=int(one.searches.done[one.i]), n_finish=0)
        one.best = min(one.best, self._consider(one.searches.nodes(one.i), made).rank)

    def _consider(self, nodes: Nodes, setting: Setting) -> Candidate:
        """Every way to give this tree's leaves their values; the best becomes a candidate."""
        values, ways = self._values(nodes)
        learned, *judged = self._losses(nodes, values)
        decides = judged[0] if judged else None
        at = 0 if decides is None else int(np.argmin(decides))
        found = Candidate(
            nodes,
            values[at],
            setting,
            *ways[at],
            float(learned[at]),
            float("nan") if decides is None else float(decides[at]),
        )
        self.found.append(found)
        return found

    def _values(self, nodes: Nodes) -> tuple[np.ndarray, list[tuple[float, float, float]]]:
        rows, options = self.rows, self.options
        exits = nodes.exits(rows.X)
        values, ways = [], []
        # The forest may not have learned yet, or know the sample alone.
        has_teacher = self.teacher is not None and not self.is_sampled
        usable = [t for t in options.teachings if not t or has_teacher] or [0.0]
        for teaching in usable:
            for shrunk, power in self._plain_values(nodes, exits, teaching):
                values.append(shrunk)
                ways += [(shrink, teaching, power) for shrink in options.shrinks]
        found = np.concatenate(values)
        if self.limits.monotone is not None:
            is_shares = rows.label is not None
            found = nodes.monotone(found, self.limits.monotone, is_shares=is_shares)
        return found, ways

    def _plain_values(
        self, nodes: Nodes, exits: np.ndarray, teaching: float
    ) -> Iterator[tuple[np.ndarray, float]]:
        """(shrinks, N, k) for each power."""
        rows, shrinks = self.rows, self.options.shrinks
        if rows.label is None or teaching:
            answers = rows.answers()
            if teaching and self.teacher is not None:
                answers = (1 - teaching) * answers + teaching * self.teacher
            quantile = self.criterion.quantile if self.criterion.is_quantile else None
            yield nodes.values(answers, rows.w, exits, shrinks, quantile), 0.0
            return
        table = class_table(rows, exits, len(nodes.left))
        for power in self.options.powers:
            own = table * class_factors(rows, power) if power else table
            yield nodes.shares(own, own.sum(axis=1), shrinks), power

    def _losses(self, nodes: Nodes, values: np.ndarray) -> list[np.ndarray]:
        """Of the learning rows and of the validation rows, costs included."""
        limits, found = self.limits, []
        if self.unit is None:
            root = values[:1, :1]
            self.unit = np.array(
                [j.losses(root, np.zeros(len(j.rows), np.int64))[0] for j in self.judges]
            )
        for judge, unit in zip(self.judges, self.unit, strict=True):
            exits = nodes.exits(judge.rows.X)
            lost = judge.losses(values, exits)
            cost = limits.leaf_cost * nodes.n_leaves
            if limits.feature_costs is not None:
                weight = np.bincount(exits, judge.rows.w, len(nodes.left))
                cost += nodes.paid(limits.feature_costs, weight)
            found.append(lost + cost * unit)
        return found

    def prune(self) -> Candidate:
        """The best candidate without tests that cost validation rows more than they gave others.

        By validation rows alone, too many would go: each decides by chance, too.
        """
        best = self.best
        if self.valid is None:
            return best
        options = self.options
        self.options = Options((best.shrink,), (best.teaching,), (best.power,))
        kept = 0
        while True:
            nodes = best.nodes
            leaf = nodes.left < 0
            twigs = [
                i for i in np.flatnonzero(~leaf) if leaf[nodes.left[i]] and leaf[nodes.right[i]]
            ][kept:]
            if not twigs:
                break
            found = self._consider(nodes.without(int(twigs[0])), best.setting)
            if found.valid + found.loss <= best.valid + best.loss:
                best = found
            else:
                self.found.pop()
                kept += 1
        self.options = options
        return best


def _target(setting: Setting) -> tuple[float, float]:
    """Settings with the same share one native object: the same rows, weights and target."""
    return setting.taught, setting.power
