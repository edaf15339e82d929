"""What a sum is made of: learners, each tuned end to end, in a soft and in a hard form."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine.soft import hard_as_soft, hard_of, with_machine
from .boosters import BOOSTERS, boosted_by

if TYPE_CHECKING:
    from ...machine import Assembly, DecisionMachine
    from ..rows import Rows
    from ..tune.descent import Setting
    from .goal import SumGoal

OWN, FOREST = "our boosting", "soft oblique forest"
HISTOGRAMS = "scikit-learn histograms"
AS_TRAINED = ", untuned"
OWN_TREES, OWN_LEAVES = 300, 16
TRIED = (1, 3, 4, 6)
"""Of `tune.fine_tune.SETTINGS`, those that the first rows are tuned with."""
SOURCE_SHARE = 0.5
"""Of the time for a candidate, the most that its source may take; the rest is for tuning."""


@dataclass
class Member:
    """A candidate as it was learned from some rows."""

    name: str
    soft: Assembly
    hard: DecisionMachine
    seconds: float
    tuned: Any = None
    """The report of `tune`, where there was something to tune."""
    source: DecisionMachine | None = None
    """What was tuned, where that changed it."""

    def forms(self) -> dict[str, Member]:
        """The member, and what it was before it was tuned: which is better, other rows say."""
        found = {self.name: self}
        if self.source is not None:
            name = self.name + AS_TRAINED
            found[name] = Member(name, hard_as_soft(self.source), self.source, 0.0)
        return found


@dataclass
class Candidates:
    """What is tried, and what is known from rows before: which settings of tuning are worth it.

    Parameters
    ----------
    finish
        What makes tests of labels of tests of their ranks, before tuning.
    labels
        Features that are ranks of labels.
    """

    goal: SumGoal
    finish: Callable[[DecisionMachine], DecisionMachine]
    labels: tuple[int, ...] = ()
    n_threads: int | None = None
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Sequence[Setting]] = field(default_factory=dict)

    def names(self) -> list[str]:
        """The candidates that can be trained here, those that give most for their time first.

        Libraries that are not installed are left out with a note.
        """
        found = []
        for name, (package, _) in BOOSTERS.items():
            if importlib.util.find_spec(package) is not None:
                found.append(name)
            else:
                self.notes.append(f"{name} is not installed, and left out")
        if len(found) > 2:  # the same kind of trees as LightGBM's
            found.remove(HISTOGRAMS)
        found.insert(min(2, len(found)), FOREST)
        return [*found, OWN] if self.goal.kind in ("squared", "logistic", "softmax") else found

    def learn(
        self, name: str, rows: Rows, stop: Rows, seed: int, time_limit: float
    ) -> Member | None:
        """A candidate learned from rows and stopped by others, which it may be trained on in the
        end; None where it cannot be.
        """
        begin = time.perf_counter()
        if name == FOREST:
            soft = self._forest(rows, stop, seed, time_limit)
            if soft is None:
                return None
            return Member(name, soft, hard_of(soft), time.perf_counter() - begin)
        source = self._source(name, rows, stop, seed, SOURCE_SHARE * time_limit)
        if source is None:
            self._note(f"{name} cannot train for {self.goal.objective}, and is left out")
            return None
        source = self.finish(source)
        left = time_limit - (time.perf_counter() - begin)
        soft, hard, report = self._tuned(name, source, rows, stop, seed, left)
        # The same on all rows: whether it is there follows from the first.
        before = source if self.settings.get(name) else None
        return Member(name, soft, hard, time.perf_counter() - begin, report, before)

    def _note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def _forest(self, rows: Rows, stop: Rows, seed: int, time_limit: float) -> Assembly | None:
        from ..torch_setup import threads
        from .soft_forest import soft_forest

        with threads(self.n_threads, "training a soft forest"):
            found = soft_forest(
                rows,
                stop,
                self.goal,
                without=self.labels,
                seed=seed,
                n_threads=self._threads,
                time_limit=time_limit,
            )
        if found is None:
            self._note(f"{FOREST}: fewer than two columns of numbers without gaps, left out")
            return None
        return with_machine(found, self.finish(hard_of(found)))

    @property
    def _threads(self) -> int:
        from ...run.engines.processor import cpu_count

        return self.n_threads or cpu_count()

    def _source(
        self, name: str, rows: Rows, stop: Rows, seed: int, time_limit: float
    ) -> DecisionMachine | None:
        if name != OWN:
            found: DecisionMachine | None = boosted_by(
                name, rows, stop, self.goal, seed, self._threads, time_limit
            )
            return found
        from ..forests import boosted_trees

        fit = boosted_trees(
            rows.X,
            rows.y,
            n_classes=self.goal.n_classes,
            n_trees=OWN_TREES,
            max_leaves=OWN_LEAVES,
            sample_weight=rows.w,
            validation=(stop.X, stop.y, stop.w),
            time_limit=None if np.isinf(time_limit) else time_limit,
            seed=seed,
            n_threads=self._threads,
            verbose=False,
        )
        return self.goal.alike(fit.machine)

    def _tuned(
        self,
        name: str,
        source: DecisionMachine,
        rows: Rows,
        stop: Rows,
        seed: int,
        time_limit: float,
    ) -> tuple[Assembly, DecisionMachine, Any]:
        """Soft and hard, neither worse than the source on the rows to stop by."""
        from ..tune import tune
        from ..tune.fine_tune import SETTINGS

        if not source.n_tests or time_limit <= 0:
            return hard_as_soft(source), source, None
        known = self.settings.get(name, [SETTINGS[i] for i in TRIED])
        if not known:
            return hard_as_soft(source), source, None
        tuned = tune(
            source,
            rows.X,
            rows.y,
            validation=(stop.X, stop.y, stop.w),
            sample_weight=rows.w,
            objective=None if self.goal.is_classes else self.goal.objective,
            settings=known,
            refit=True,
            leads=(0.0, 0.0),  # whether tuning gained is judged by other rows
            time_limit=None if np.isinf(time_limit) else time_limit,
            seed=seed,
            n_threads=self.n_threads,
            verbose=False,
        )
        report = tuned.report
        if name not in self.settings:
            # The next rows are like these: what was chosen here is tried there.
            chosen = {report.chosen_soft, report.chosen_hard}
            worth = [s for s in known if any(words.startswith(str(s)) for words in chosen)]
            is_changed = tuned.machine is not source
            self.settings[name] = worth or known[: int(is_changed)]
        return tuned.soft.frozen(), tuned.machine, report
