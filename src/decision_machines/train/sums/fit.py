"""`sum_of_machines`: the most accurate model of a table, as one soft and one hard machine.

Small data are cut into folds: what is learned from the other folds answers for each, and the final
machine is the mean over the folds. Of large data some rows are held out. Within the rows to learn
from, others decide when to stop and how to tune; they never judge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import direct_sum
from ...machine.soft import hard_as_soft, soft_sum
from ...progress import Verbosity, Watch
from ..fit import Fit
from ..hold_out import folds, hold_out
from .candidates import AS_TRAINED, Candidates, Member
from .choose import greedy_weights, mean_loss, unseen_margins
from .report import SumReport

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from ...machine import DecisionMachine
    from ..rows import Rows
    from .goal import SumGoal

FEWEST_ROWS = 60
"""With fewer no rows can be spared to stop, to tune and to judge by."""
FEW_TREES = 60
FOLDS = ((5000, 5), (20_000, 3))
"""Up to so many rows, so many folds; beyond, rows are held out once."""
HELD_OUT, MOST_HELD_OUT = 0.15, 20_000
STOP = 0.2
FIRST_FOLD = 0.45
"""Of the time limit, what the first of several folds may take."""
LEAST_SHARE = 0.35
"""Of the time that is left, what a candidate may take: the first ones give most for theirs."""
FOR_FOLDS = 0.008
"""Seconds for each row; with a shorter limit rows are held out once, and all time is for that."""
IN_TIME = 0.94
"""Of the time limit: choosing weights and summing come after."""
HOPELESS = 1.15
"""A candidate whose soft and hard loss exceed the best by this factor is not learned again."""
CONSTANT = "a constant"


@dataclass(frozen=True)
class _Judged:
    """Margins of all candidates on rows that they have not seen."""

    names: list[str]
    soft: Float[np.ndarray, "c m k"]
    hard: Float[np.ndarray, "c m k"]
    rows: Rows
    which: Int[np.ndarray, "m"]
    """Of the rows that were given, which these are."""


def sum_of_machines(
    rows: Rows,
    goal: SumGoal,
    *,
    judge: Rows | None = None,
    finish: Callable[[DecisionMachine], DecisionMachine] = lambda machine: machine,
    labels: tuple[int, ...] = (),
    time_limit: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
) -> Fit:
    """A weighted sum of boosted machines and soft forests, chosen on rows that none has seen.

    Parameters
    ----------
    rows
        To learn from; codes of classes, or one number for each row.
    goal
        What to predict.
    judge
        Rows to choose by; by default folds of the rows, or some of them held out.
    finish
        What makes tests of labels of tests of their ranks.
    labels
        Features that are ranks of labels.
    time_limit
        Seconds; what is not finished then is left out.
    keep_best_on_interrupt
        Whether Ctrl-C gives the sum of what is finished.

    Returns
    -------
    Fit
        `machine`, hard; `soft`, soft trees without torch; `report`, a `SumReport`, whose "margins"
        are those of the soft sum on the rows "judged rows", by weights that they did not choose.
    """
    begin = time.perf_counter()
    if len(rows) < FEWEST_ROWS:
        return _few(rows, goal, finish, seed, n_threads, begin)
    limit = np.inf if time_limit is None else IN_TIME * time_limit
    run = _Run(rows, goal, Candidates(goal, finish, labels, n_threads), judge, seed, begin, limit)
    names = run.candidates.names()
    n_steps = len(names) * run.n_folds
    with Watch("a sum of machines", n_steps, verbose, keep_best=keep_best_on_interrupt) as watch:
        run.learn(names, watch)
    if not run.margins:
        raise KeyboardInterrupt  # nothing is there to be kept
    return run.summed(watch)


def _few(
    rows: Rows, goal: SumGoal, finish: Any, seed: int, n_threads: int | None, begin: float
) -> Fit:
    """Too few rows to choose by: our own boosting, or a constant."""
    base = goal.best_constant(rows)
    machine = goal.constant(rows.X.shape[1], base)
    if goal.kind in ("squared", "logistic", "softmax") and len(rows) >= 2:
        from ..forests import boosted_trees

        options: dict[str, Any] = {"n_classes": goal.n_classes, "sample_weight": rows.w}
        fit = boosted_trees(
            rows.X, rows.y, n_trees=FEW_TREES, max_leaves=8, seed=seed, n_threads=n_threads,
            verbose=False, **options,
        )  # fmt: skip
        machine = finish(goal.alike(fit.machine))
    note = f"fewer than {FEWEST_ROWS} rows: nothing was held out, nothing is judged"
    nan = float("nan")
    report = SumReport(
        {
            **{"objective": goal.objective, "rows": len(rows), "judged": 0, "folds": 0},
            **{"constant": nan, "tried": [], "soft": nan, "hard": nan, "gain": nan},
            **{"notes": [note], "interrupted": False, "seconds": time.perf_counter() - begin},
        }
    )
    return Fit(machine, hard_as_soft(machine), report)


class _Run:
    """Folds learned one after the other, and what became of them."""

    def __init__(
        self,
        rows: Rows,
        goal: SumGoal,
        candidates: Candidates,
        judge: Rows | None,
        seed: int,
        begin: float,
        limit: float,
    ) -> None:
        self.rows, self.goal, self.candidates = rows, goal, candidates
        self.judge, self.seed, self.begin, self.limit = judge, seed, begin, limit
        self.n_folds = next((k for most, k in FOLDS if len(rows) <= most), 1)
        if judge is not None or limit < FOR_FOLDS * len(rows):
            self.n_folds = 1
        self.members: list[dict[str, Member]] = []
        """For every fold that is finished, its members by name."""
        self.margins: list[_Judged] = []
        self.base = candidates.finish(goal.constant(rows.X.shape[1], goal.best_constant(rows)))

    @property
    def left(self) -> float:
        return self.limit - (time.perf_counter() - self.begin)

    def _splits(self) -> Iterator[tuple[Rows, Rows, Int[np.ndarray, "m"]]]:
        """Rows to learn from, rows to judge by, and which rows the latter are."""
        rows, is_classes = self.rows, self.goal.is_classes
        if self.judge is not None:
            yield rows, self.judge, np.arange(len(self.judge))
            return
        classes = rows.y if is_classes else None
        if self.n_folds > 1:
            fold = folds(len(rows), self.n_folds, self.seed, classes)
        else:
            share = min(HELD_OUT, MOST_HELD_OUT / len(rows))
            fold = np.minimum(folds(len(rows), round(1 / share), self.seed, classes), 1)
        if is_classes:
            # Classes that not every fold has are learned from, never judged by.
            rare = np.bincount(rows.y, minlength=self.goal.n_classes or 0) < 3 * self.n_folds
            fold[rare[rows.y]] = -1
        for k in range(self.n_folds):
            which = np.flatnonzero(fold == k)
            yield rows.take(fold != k), rows.take(which), which

    def learn(self, names: list[str], watch: Watch) -> None:
        """Fill `members` and `margins`, a fold at a time."""
        longest = 0.0
        for k, (rows, judge, which) in enumerate(self._splits()):
            if k and (self.left < 1.1 * longest or not names):
                break
            started = time.perf_counter()
            end = self.left if k or self.n_folds == 1 else FIRST_FOLD * self.limit
            found: dict[str, Member] = {}
            try:
                self._fold(names, rows, k, end, watch, found)
            except KeyboardInterrupt:
                if watch.keep_best and k == 0 and found:
                    self._keep(found, rows, judge, which)
                raise
            if not found or (k and any(name not in found for name in names)):
                break  # out of time: not all candidates are in this fold
            self._keep(found, rows, judge, which)
            longest = max(longest, time.perf_counter() - started)
            names = self._promising(found)

    def _fold(
        self,
        names: list[str],
        rows: Rows,
        k: int,
        time_limit: float,
        watch: Watch,
        found: dict[str, Member],
    ) -> None:
        """Learn the candidates into `found`, while there is time."""
        own, stop = hold_out(rows, STOP, self.seed + k, is_classes=self.goal.is_classes)
        if stop is None:
            own, stop = rows, rows
        end = time.perf_counter() + time_limit
        for i, name in enumerate(names):
            left = end - time.perf_counter()
            if found and left <= 0:
                break
            share = left * max(1 / (len(names) - i), LEAST_SHARE)
            member = self.candidates.learn(name, own, stop, self.seed + k, share)
            if member is not None:
                found |= member.forms()
            watch.step(fold=k + 1)

    def _keep(self, found: dict[str, Member], rows: Rows, judge: Rows, which: np.ndarray) -> None:
        constant = np.tile(self.goal.best_constant(rows), (len(judge), 1))
        soft = [constant, *(m.soft.margin(judge.X) for m in found.values())]
        hard = [soft[0], *(m.hard.margin(judge.X) for m in found.values())]
        names = [CONSTANT, *found]
        self.members.append(found)
        self.margins.append(_Judged(names, np.stack(soft), np.stack(hard), judge, which))

    def _promising(self, found: dict[str, Member]) -> list[str]:
        """The candidates worth learning from the other folds too."""
        judged = self.margins[-1]
        w = judged.rows.w / judged.rows.w.sum()
        losses = {
            name: min(
                float(self.goal.losses(margins[i], judged.rows.y) @ w)
                for margins in (judged.soft, judged.hard)
            )
            for i, name in enumerate(judged.names)
        }
        least = min(losses.values())
        gap = (HOPELESS - 1) * abs(least)
        return [
            name
            for name in found
            if not name.endswith(AS_TRAINED)
            and min(losses[name], losses.get(name + AS_TRAINED, np.inf)) <= least + gap
        ]

    # ------------------------------------------------------------------ the sum

    def summed(self, watch: Watch) -> Fit:
        """The sums over candidates and folds, and the report."""
        goal = self.goal
        names = [n for n in self.margins[-1].names if all(n in j.names for j in self.margins)]
        judged = self._joined(names)
        rows, w = judged.rows, judged.rows.w

        def losses(margin: np.ndarray, which: np.ndarray) -> np.ndarray:
            return goal.losses(margin, rows.y[which])

        every = np.arange(len(rows))
        mean = mean_loss(losses, w, every)
        classes = rows.y if goal.is_classes else None
        found: dict[str, Any] = {}
        for form in ("soft", "hard"):
            margins = getattr(judged, form)
            unseen = unseen_margins(margins, losses, w, self.seed, classes)
            weights = greedy_weights(margins, mean)
            found[form] = (weights, unseen, mean(unseen), [mean(margin) for margin in margins])
        seconds = {
            name: sum(fold[name].seconds for fold in self.members if name in fold)
            for name in self.members[0]
        }
        tried = [
            {
                "name": name,
                "soft": found["soft"][3][i],
                "hard": found["hard"][3][i],
                "soft weight": float(found["soft"][0][i]),
                "hard weight": float(found["hard"][0][i]),
                "seconds": seconds.get(name, 0.0),
                "folds": len(self.members),
                "tuning": [fold[name].tuned for fold in self.members if name in fold],
            }
            for i, name in enumerate(names)
        ]
        tried += self._dropped(names, seconds)
        report = SumReport(
            {
                **{"objective": goal.objective, "rows": len(self.rows), "judged": len(rows)},
                **{"folds": len(self.members), "constant": found["soft"][3][0], "tried": tried},
                **{"soft": found["soft"][2], "hard": found["hard"][2]},
                "gain": 1 - found["soft"][2] / found["soft"][3][0] if found["soft"][3][0] else 0.0,
                **{"notes": self.candidates.notes, "interrupted": watch.interrupted},
                **{"seconds": time.perf_counter() - self.begin},
                **{"margins": found["soft"][1], "hard margins": found["hard"][1]},
                **{"judged rows": judged.which, "targets": rows.y},
            }
        )
        soft, hard = self._sums(names, found["soft"][0], found["hard"][0])
        return Fit(hard, soft, report, watch.history)

    def _joined(self, names: list[str]) -> _Judged:
        """The rows of all folds, and what the candidates that all folds have answer for them."""
        at = [[judged.names.index(name) for name in names] for judged in self.margins]
        first = self.margins[0].rows
        rows = replace(
            first,
            X=np.concatenate([j.rows.X for j in self.margins]),
            y=np.concatenate([j.rows.y for j in self.margins]),
            w=np.concatenate([j.rows.w for j in self.margins]),
        )
        parts = list(zip(self.margins, at, strict=True))
        return _Judged(
            names,
            np.concatenate([j.soft[i] for j, i in parts], axis=1),
            np.concatenate([j.hard[i] for j, i in parts], axis=1),
            rows,
            np.concatenate([j.which for j in self.margins]),
        )

    def _dropped(self, names: list[str], seconds: dict[str, float]) -> list[dict[str, Any]]:
        """Candidates that were tried on the first fold alone."""
        judged = self.margins[0]
        w = judged.rows.w / judged.rows.w.sum()
        return [
            {
                "name": name,
                "soft": float(self.goal.losses(judged.soft[i], judged.rows.y) @ w),
                "hard": float(self.goal.losses(judged.hard[i], judged.rows.y) @ w),
                **{"soft weight": 0.0, "hard weight": 0.0, "seconds": seconds.get(name, 0.0)},
                **{"folds": 1, "tuning": [self.members[0][name].tuned]},
            }
            for i, name in enumerate(judged.names)
            if name not in names
        ]

    def _sums(self, names: list[str], soft: np.ndarray, hard: np.ndarray) -> tuple[Any, Any]:
        n = len(self.members)
        softs = [(hard_as_soft(self.base), float(soft[0]))]
        hards = [(self.base, float(hard[0]))]
        for i, name in enumerate(names[1:], start=1):
            softs += [(fold[name].soft, float(soft[i]) / n) for fold in self.members]
            hards += [(fold[name].hard, float(hard[i]) / n) for fold in self.members]
        source = f"a sum of {sum(weight > 0 for _, weight in softs)} machines"
        return (
            soft_sum(*zip(*[s for s in softs if s[1] > 0], strict=True)),
            replace(direct_sum(*zip(*[h for h in hards if h[1] > 0], strict=True)), source=source),
        )
