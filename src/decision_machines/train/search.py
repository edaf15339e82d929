"""The search for the best soft and the best hard machine over settings and epochs.

Every setting softens the source anew and trains it. After every epoch the module and its hardened
machine are judged on the validation rows, and the best of each are kept; the source itself is the
first candidate of both. All that the search knows is plain numbers and tensors, so that it can be
written to a checkpoint after any epoch and gone on with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..machine import Rule
from . import distributed
from .descent import Descent, Setting, judge, parts_of, set_parts, soft_margin
from .hard_values import refit_values
from .tuned import Trial
from .units import units_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from ..machine import DecisionMachine
    from ..relax.module import SoftMachine
    from .objectives import Objective
    from .rows import Rows
    from .watch import Watch
    from .widths import Widths

SOURCE = -1
"""In the place of a setting: the source as it came."""
RIDGES = (100.0, 10.0, 1.0, 0.1)
"""Ridges of the hard values' refit that are tried."""


@dataclass
class Choice:
    """A candidate: where it came from, its parameters, its loss on validation."""

    setting: int
    epoch: int
    loss: float
    parts: dict[str, Tensor] | None = None
    ridge: float | None = None
    """Of the refit of hard values that followed; None for none."""

    def words(self, settings: Sequence[Setting]) -> str:
        if self.setting == SOURCE and self.ridge is None:
            return "the source, unchanged"
        first = (
            "the source's tests"
            if self.setting == SOURCE
            else f"{settings[self.setting]}, epoch {self.epoch}"
        )
        return first + ("" if self.ridge is None else f", values refitted (ridge {self.ridge:g})")


class Search:
    """Settings tried one after the other, and the best so far.

    Parameters
    ----------
    widths
        Of the source's tests on the training rows.
    save
        Called with the state after every epoch; None keeps no checkpoint.
    """

    def __init__(
        self,
        machine: DecisionMachine,
        objective: Objective,
        train: Rows,
        valid: Rows,
        widths: Widths,
        settings: Sequence[Setting],
        *,
        learn: tuple[str, ...],
        epochs: int,
        patience: int,
        batch_size: int,
        seed: int,
        n_threads: int | None,
        save: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self.machine, self.objective, self.train, self.valid = machine, objective, train, valid
        self.widths, self.settings, self.learn = widths, list(settings), learn
        self.epochs, self.patience, self.batch_size = epochs, patience, batch_size
        self.seed, self.n_threads, self.save = seed, n_threads, save
        self.source_loss = self.judge_hard(machine, valid)
        self.train_loss = self.judge_hard(machine, train)
        self.soft = Choice(SOURCE, 0, self.source_loss)
        self.hard = Choice(SOURCE, 0, self.source_loss)
        self.trials: list[Trial] = []
        self.finished: dict[str, dict[str, Any]] = {}
        """Runs that are over, by name, and what was kept of them."""
        self.current: dict[str, Any] | None = None

    # ------------------------------------------------------------------ soft and hard

    def soften(self, alpha: float, output: str = "margin") -> SoftMachine:
        """The source with recentred thresholds and measured slopes, before any step."""
        net = self.machine.soften(
            "soft_tree",
            slope=self.widths.slope(alpha),
            learn=self.learn,
            output=output,
            dtype=torch.float64,
        )
        with torch.no_grad():
            net.t.copy_(torch.from_numpy(self.widths.t))
        return net

    def harden(self, net: SoftMachine) -> DecisionMachine:
        """The hard machine; a test of category membership keeps its threshold, which means none."""
        hard = net.harden()
        if hard.is_oblique or not hard.n_tests:
            return hard
        is_member = self.machine.columns.rule[hard.selection] == Rule.MEMBER
        return replace(hard, t=np.where(is_member, self.machine.t, hard.t))

    def recentred(self) -> DecisionMachine:
        """The source with its thresholds in the middle of their gaps."""
        return self.harden(self.soften(self.settings[0].alpha))

    def judge_hard(self, machine: DecisionMachine, rows: Rows) -> float:
        margin = machine.margin(rows.x.numpy(), n_threads=self.n_threads)
        return judge(self.objective, torch.from_numpy(margin), rows)

    # ------------------------------------------------------------------ runs

    def run(self, watch: Watch) -> None:
        """Every setting, then the hard machine's values."""
        for i in range(len(self.settings)):
            if f"setting {i}" not in self.finished:
                self._try(i, watch)
        if "values" not in self.finished:
            self._try_values(watch)

    def _try(self, i: int, watch: Watch) -> None:
        name = f"setting {i}"
        descent = self._descent(i, self.train, name)
        best = {"soft": np.inf, "hard": np.inf, "since": 0}
        if self.current is not None and self.current["name"] == name:
            best = dict(self.current["best"])
            descent.load_state_dict(self.current["descent"])
        while descent.done < self.epochs and best["since"] < self.patience:
            loss = descent.epoch()
            soft, hard = self._judge_both(descent, i)
            is_better = soft < best["soft"] or hard < best["hard"]
            best = {
                "soft": min(soft, best["soft"]),
                "hard": min(hard, best["hard"]),
                "since": 0 if is_better else best["since"] + 1,
            }
            watch.step(setting=i, epoch=descent.done, loss=loss, soft=soft, hard=hard)
            self.current = {"name": name, "best": best, "descent": descent.state_dict()}
            self._keep(watch)
            if not np.isfinite(loss):
                break
        self.trials.append(
            Trial(self.settings[i], float(best["soft"]), float(best["hard"]), descent.done)
        )
        self._finish(name, {}, watch)

    def _judge_both(self, descent: Descent, i: int) -> tuple[float, float]:
        net = descent.net
        soft = judge(self.objective, soft_margin(net, self.valid), self.valid)
        if soft < self.soft.loss:
            self.soft = Choice(i, descent.done, soft, parts_of(net))
        hard = np.inf
        if all(bool(torch.isfinite(part).all()) for part in parts_of(net).values()):
            hard = self.judge_hard(self.harden(net), self.valid)
        if hard < self.hard.loss:
            self.hard = Choice(i, descent.done, hard, parts_of(net))
        return soft, hard

    def _try_values(self, watch: Watch) -> None:
        """Leaf values of the best hard machine, and of the recentred source, refitted."""
        if "V" in self.learn:
            starts = {SOURCE: replace(self.hard, setting=SOURCE, epoch=0, parts=None)}
            starts[self.hard.setting] = self.hard
            best = self.hard
            for choice in starts.values():
                machine = self.hard_machine(replace(choice, ridge=None))
                for ridge in RIDGES:
                    refitted = refit_values(
                        machine, self.objective, self.train, ridge, n_threads=self.n_threads
                    )
                    loss = self.judge_hard(refitted, self.valid)
                    if loss < best.loss:
                        best = replace(choice, ridge=ridge, loss=loss)
            self.hard = best
        watch.step(hard=self.hard.loss)
        self._finish("values", {}, watch)

    def _descent(self, i: int, rows: Rows, name: str) -> Descent:
        setting = self.settings[i]
        net = self.soften(setting.alpha)
        width = self.widths.width(setting.alpha)
        return Descent(
            net,
            self.objective,
            rows,
            setting,
            units_of(self.machine, net, width, self.train.x.numpy()),
            epochs=self.epochs,
            batch_size=self.batch_size,
            scale=self.train_loss if np.isfinite(self.train_loss) and self.train_loss > 0 else 1.0,
            seed=self.seed,
            key=i + (1000 if name.startswith("refit") else 0),
        )

    # ------------------------------------------------------------------ what comes out

    def soft_machine(self, choice: Choice) -> SoftMachine:
        """The soft machine of a choice; the source's answers its predictions exactly."""
        alpha = self.settings[max(choice.setting, 0)].alpha
        for output in ("response", "margin"):
            try:
                if choice.setting == SOURCE:
                    return self.machine.soften(
                        "straight_through",
                        slope=self.widths.slope(alpha),
                        learn=self.learn,
                        output=output,
                        dtype=torch.float64,
                    )
                net = self.soften(alpha, output)
                break
            except TypeError:  # a link without a torch form: the margin is what can be given
                if output == "margin":
                    raise
        assert choice.parts is not None
        set_parts(net, choice.parts)
        return net

    def hard_machine(self, choice: Choice, rows: Rows | None = None) -> DecisionMachine:
        """The hard machine of a choice, its values refitted on these rows where it says so."""
        if choice.setting == SOURCE:
            machine = self.machine if choice.ridge is None else self.recentred()
        else:
            assert choice.parts is not None
            net = self.soften(self.settings[choice.setting].alpha)
            set_parts(net, choice.parts)
            machine = self.harden(net)
        if choice.ridge is None:
            return machine
        rows = self.train if rows is None else rows
        return refit_values(machine, self.objective, rows, choice.ridge, n_threads=self.n_threads)

    def refit(self, rows: Rows, watch: Watch) -> tuple[Choice, Choice]:
        """The choices trained again from the source on these rows, as long as they were."""
        wanted = {"soft": self.soft, "hard": self.hard}
        for i in sorted({choice.setting for choice in wanted.values()} - {SOURCE}):
            name = f"refit {i}"
            if name in self.finished:
                continue
            stops = {c.epoch for c in wanted.values() if c.setting == i}
            descent, kept = self._descent(i, rows, name), {}
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
        found = [
            choice
            if choice.setting == SOURCE
            else replace(choice, parts=self.finished[f"refit {choice.setting}"][str(choice.epoch)])
            for choice in wanted.values()
        ]
        return found[0], found[1]

    # ------------------------------------------------------------------ checkpoints

    def _finish(self, name: str, kept: dict[str, Any], watch: Watch) -> None:
        self.finished[name], self.current = kept, None
        self._keep(watch)

    def _keep(self, watch: Watch) -> None:
        if self.save is not None and distributed.rank() == 0:
            self.save(
                {
                    "soft": vars(self.soft),
                    "hard": vars(self.hard),
                    "trials": [[vars(t.setting), t.soft, t.hard, t.epochs] for t in self.trials],
                    "finished": self.finished,
                    "current": self.current,
                    "history": watch.history,
                }
            )

    def load_state_dict(self, state: dict[str, Any]) -> list[dict[str, float]]:
        """Go on from a checkpoint's state; gives the learning curve so far."""
        self.soft, self.hard = Choice(**state["soft"]), Choice(**state["hard"])
        self.trials = [Trial(Setting(**s), *rest) for s, *rest in state["trials"]]
        self.finished, self.current = state["finished"], state["current"]
        return list(state["history"])
