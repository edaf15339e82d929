"""The search for the best soft and the best hard machine over settings and epochs.

Every setting softens the source again and trains it. After every epoch the module and its hardened
machine are judged on the validation rows, and the best of each are kept; the source itself is the
first candidate of both. All that the search knows is plain numbers and tensors, so that it can be
written to a checkpoint after any epoch and gone on with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import distributed
from .descent import Descent, Judgement, Setting, judge, parts_of, soft_margin
from .subject import SOURCE, Choice, Subject
from .tuned import Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...progress import Watch
    from .tensor_rows import TensorRows

SOFT_LEAD, HARD_LEAD = 1.0, 3.0
"""A choice takes the source's place if it leads by so many standard errors: the best of eighty
candidates leads by two or three by chance alone. Hard candidates lie close to the source, so that
chance could decide among them; soft ones do not."""
RACE, BEHIND = 3, 0.03
"""After so many epochs a setting ends whose soft answers are so far, as a share of the source's
loss, behind the best; not one that sharpens, which is there for its hard answers."""
REFIT = 1000
"""Added to the key of a run that trains a choice again."""


class Search:
    """Settings tried one after the other, and the best so far.

    Parameters
    ----------
    subject
        The source on the training rows.
    valid
        The rows to judge by.
    patience
        How many epochs without a better result end a setting.
    leads
        By how many standard errors the soft and the hard choice must lead the source.

    Attributes
    ----------
    save
        Called with the state after every epoch; None keeps no checkpoint.
    """

    def __init__(
        self,
        subject: Subject,
        valid: TensorRows,
        *,
        patience: int,
        leads: tuple[float, float] = (SOFT_LEAD, HARD_LEAD),
    ) -> None:
        self.subject, self.valid, self.patience, self.leads = subject, valid, patience, leads
        self.save: Callable[[dict[str, Any]], None] | None = None
        self.source = subject.judge(subject.machine, valid)
        self.best_soft = self.best_hard = self._source()
        self.trials: list[Trial] = []
        self.finished: dict[str, dict[str, Any]] = {}
        """Runs that are over, by name, and what was kept of them."""
        self.current: dict[str, Any] | None = None

    def _source(self) -> Choice:
        return Choice(SOURCE, 0, self.source.mean)

    @property
    def soft(self) -> Choice:
        """The best soft candidate, or the source where its lead may be chance."""
        return self.best_soft if self.best_soft.lead >= self.leads[0] else self._source()

    @property
    def hard(self) -> Choice:
        """The best hard candidate, or the source where its lead may be chance."""
        return self.best_hard if self.best_hard.lead >= self.leads[1] else self._source()

    # ------------------------------------------------------------------ candidates

    def run(self, watch: Watch) -> None:
        """Every setting, then the hard machine's values."""
        for i in range(len(self.subject.settings)):
            if f"setting {i}" not in self.finished and not watch.is_late:
                self._try(i, watch)
        if "values" not in self.finished and not watch.is_late:
            self._try_values(watch)

    def _try(self, i: int, watch: Watch) -> None:
        name = f"setting {i}"
        descent = self.subject.descent(i, i)
        if self.current is not None and self.current["name"] == name:
            best = dict(self.current["best"])
            descent.load_state_dict(self.current["descent"])
        else:
            soft, hard = self._judge_both(descent, i)
            best = {"soft": soft, "hard": hard, "since": 0}
        while descent.done < descent.epochs and best["since"] < self.patience:
            if watch.is_late:
                break
            loss = descent.epoch()
            soft, hard = self._judge_both(descent, i)
            is_better = soft < best["soft"] or hard < best["hard"]
            best = {
                "soft": min(soft, best["soft"]),
                "hard": min(hard, best["hard"]),
                "since": 0 if is_better else best["since"] + 1,
            }
            if not np.isfinite(loss) or self._is_behind(descent, best["soft"]):
                best["since"] = self.patience
            watch.step(setting=i, epoch=descent.done, loss=loss, soft=soft, hard=hard)
            self.current = {"name": name, "best": best, "descent": descent.state_dict()}
            self._keep(watch)
        self.trials.append(
            Trial(descent.setting, float(best["soft"]), float(best["hard"]), descent.done)
        )
        self._finish(name, {}, watch)

    def _is_behind(self, descent: Descent, soft: float) -> bool:
        gap = BEHIND * abs(self.source.mean)
        is_late = descent.done >= RACE and descent.setting.sharpen == 1.0
        return is_late and soft - self.best_soft.loss > gap

    def _judge_both(self, descent: Descent, i: int) -> tuple[float, float]:
        net, subject = descent.net, self.subject
        found = judge(subject.objective, soft_margin(net, self.valid), self.valid)
        soft, hard = found.mean, np.inf
        if soft < self.best_soft.loss:
            self.best_soft = Choice(i, descent.done, soft, self._lead(found), parts_of(net))
        if all(bool(torch.isfinite(part).all()) for part in net.parameters()):
            found = subject.judge(subject.harden(net), self.valid)
            hard = found.mean
        if hard < self.best_hard.loss:
            self.best_hard = Choice(i, descent.done, hard, self._lead(found), parts_of(net))
        return soft, hard

    def _lead(self, found: Judgement) -> float:
        return found.lead_over(self.source)

    def _try_values(self, watch: Watch) -> None:
        """Leaf values of the best hard machine, refitted; those of the best soft one, taught."""
        starts = [self.best_hard]
        taught = self.best_soft.setting != SOURCE and not self.subject.objective.on_simplex
        if taught:
            starts.append(replace(self.best_soft, loss=np.inf, is_taught=True))
        best = self.best_hard
        for start in starts if "V" in self.subject.learn else ():
            for ridge, refitted in self.subject.with_values(start).items():
                found = self.subject.judge(refitted, self.valid)
                if found.mean < best.loss:
                    best = replace(start, ridge=ridge, loss=found.mean, lead=self._lead(found))
        self.best_hard = best
        watch.step(hard=best.loss)
        self._finish("values", {}, watch)

    # ------------------------------------------------------------------ once more, on all rows

    def refit(self, subject: Subject, watch: Watch) -> tuple[Choice, Choice]:
        """The soft and the hard choice trained again on a subject, as long as they were."""
        wanted = (self.soft, self.hard)
        for i in sorted({choice.setting for choice in wanted} - {SOURCE}):
            name = f"refit {i}"
            if name in self.finished:
                continue
            stops = {choice.epoch for choice in wanted if choice.setting == i}
            descent, kept = subject.descent(i, i + REFIT), {}
            if 0 in stops:
                kept["0"] = parts_of(descent.net)
            if self.current is not None and self.current["name"] == name:
                kept = dict(self.current["kept"])
                descent.load_state_dict(self.current["descent"])
            while descent.done < max(stops):
                loss = descent.epoch()
                if descent.done in stops:
                    kept[str(descent.done)] = parts_of(descent.net)
                watch.step(setting=i, epoch=descent.done, loss=loss)
                self.current = {"name": name, "kept": kept, "descent": descent.state_dict()}
                self._keep(watch)
            self._finish(name, kept, watch)
        soft, hard = (
            choice
            if choice.setting == SOURCE
            else replace(choice, parts=self.finished[f"refit {choice.setting}"][str(choice.epoch)])
            for choice in wanted
        )
        return soft, hard

    # ------------------------------------------------------------------ checkpoints

    def _finish(self, name: str, kept: dict[str, Any], watch: Watch) -> None:
        self.finished[name], self.current = kept, None
        self._keep(watch)

    def _keep(self, watch: Watch) -> None:
        if self.save is not None and distributed.rank() == 0:
            self.save(
                {
                    "soft": vars(self.best_soft),
                    "hard": vars(self.best_hard),
                    "trials": [[vars(t.setting), t.soft, t.hard, t.epochs] for t in self.trials],
                    "finished": self.finished,
                    "current": self.current,
                    "history": watch.history,
                }
            )

    def load_state_dict(self, state: dict[str, Any]) -> list[dict[str, float]]:
        """Go on from a checkpoint's state; gives the learning curve so far."""
        self.best_soft, self.best_hard = Choice(**state["soft"]), Choice(**state["hard"])
        self.trials = [Trial(Setting(**s), *rest) for s, *rest in state["trials"]]
        self.finished, self.current = state["finished"], state["current"]
        return list(state["history"])
