"""A machine measured on the rows it is to learn from: softened, trained, hardened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from ...machine import Rule
from ...machine.coded import coded
from .descent import Descent, Judgement, Setting, judge, set_parts, soft_margin
from .hard_values import RIDGES, TAUGHT_RIDGES, refit_values
from .objectives import Objective
from .units import precision, units_of
from .widths import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from ...machine import DecisionMachine
    from ...relax.module import SoftMachine
    from .tensor_rows import TensorRows

SOURCE = -1
"""In the place of a setting: the machine as it came."""


@dataclass
class Choice:
    """A candidate: where it came from, its parameters, its loss on validation."""

    setting: int
    epoch: int
    loss: float
    lead: float = 0.0
    """How far it is below the source's loss, in standard errors of the difference."""
    parts: dict[str, Tensor] | None = None
    ridge: float | None = None
    """Of the refit of hard values that followed; None for none."""
    is_taught: bool = False
    """Whether values were refitted to the soft machine's margins instead of the targets."""

    def words(self, settings: Sequence[Setting]) -> str:
        if self.setting == SOURCE and self.ridge is None:
            return "the source, unchanged"
        first = (
            "the source's tests"
            if self.setting == SOURCE
            else f"{settings[self.setting]}, epoch {self.epoch}"
        )
        to = " to the soft margins" if self.is_taught else ""
        return first + (
            "" if self.ridge is None else f", values refitted{to} (ridge {self.ridge:g})"
        )


class Subject:
    """A machine, its rows, what was measured of its tests on them, and how it is to be trained."""

    def __init__(
        self,
        machine: DecisionMachine,
        objective: Objective,
        rows: TensorRows,
        settings: Sequence[Setting],
        *,
        learn: tuple[str, ...],
        epochs: int,
        batch_size: int,
        seed: int,
        n_threads: int | None,
    ) -> None:
        self.machine, self.objective, self.rows = machine, objective, rows
        self.settings, self.learn = list(settings), learn
        self.epochs, self.batch_size, self.seed, self.n_threads = (
            epochs,
            batch_size,
            seed,
            n_threads,
        )
        alphas = sorted({setting.alpha for setting in settings})
        self.widths = measure(machine, rows.x.numpy(), alphas, seed=seed, n_threads=n_threads)
        margin = self.margin(machine, rows)
        self.dtype = precision(machine, self.widths, margin)
        self.loss = judge(objective, torch.from_numpy(margin), rows).mean

    def on(self, machine: DecisionMachine, rows: TensorRows) -> Subject:
        """Another machine and other rows, to be trained in the same way."""
        return Subject(
            machine,
            self.objective,
            rows,
            self.settings,
            learn=self.learn,
            epochs=self.epochs,
            batch_size=self.batch_size,
            seed=self.seed,
            n_threads=self.n_threads,
        )

    def margin(self, machine: DecisionMachine, rows: TensorRows) -> np.ndarray:
        """(m, k) of a hard machine."""
        return coded(machine).margin(rows.x.numpy(), n_threads=self.n_threads)

    def judge(self, machine: DecisionMachine, rows: TensorRows) -> Judgement:
        """What the objective says of a hard machine."""
        return judge(self.objective, torch.from_numpy(self.margin(machine, rows)), rows)

    # ------------------------------------------------------------------ soft and hard

    def soften(self, alpha: float, output: str = "margin") -> SoftMachine:
        """The machine with recentred thresholds and measured slopes, before any step."""
        net = self.machine.soften(
            "soft_tree",
            slope=self.widths.slope(alpha),
            learn=self.learn,
            output=output,
            dtype=self.dtype,
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

    def descent(self, i: int, key: int) -> Descent:
        """A run of setting i from the start; `key` sets its order of rows apart from others'."""
        setting = self.settings[i]
        net = self.soften(setting.alpha)
        return Descent(
            net,
            self.objective,
            self.rows,
            setting,
            units_of(self.machine, net, self.widths.width(setting.alpha), self.rows.x.numpy()),
            epochs=self.epochs,
            batch_size=self.batch_size,
            scale=self.loss if np.isfinite(self.loss) and self.loss > 0 else 1.0,
            seed=self.seed,
            key=key,
        )

    # ------------------------------------------------------------------ what a choice stands for

    def soft_machine(self, choice: Choice) -> SoftMachine:
        """The soft machine of a choice; that of the source answers its predictions exactly."""
        alpha = self.settings[max(choice.setting, 0)].alpha
        if choice.setting == SOURCE:
            return self.machine.soften(
                "straight_through",
                slope=self.widths.slope(alpha),
                learn=self.learn,
                output="response",
                dtype=torch.float64,
            )
        assert choice.parts is not None
        net = self.soften(alpha, "response")
        set_parts(net, choice.parts)
        return net

    def hard_machine(self, choice: Choice) -> DecisionMachine:
        """The hard machine of a choice, its values refitted on the rows where it says so."""
        if choice.ridge is not None:
            return self.with_values(choice)[choice.ridge]
        net = self._net(choice)
        return self.machine if net is None else self.harden(net)

    def with_values(self, choice: Choice) -> dict[float, DecisionMachine]:
        """The hard machine of a choice, its values refitted on the rows, for each ridge.

        To the targets, or to the soft machine's margins, which have less noise.
        """
        objective, rows, net = self.objective, self.rows, self._net(choice)
        if choice.is_taught:
            assert net is not None
            objective = Objective("the soft margins", _distance, objective.encode)
            rows = replace(rows, y=soft_margin(net, rows).double(), group=None)
        machine = self.machine if net is None else self.harden(net)
        ridges = TAUGHT_RIDGES if choice.is_taught else RIDGES
        found = refit_values(machine, objective, rows, ridges=ridges, n_threads=self.n_threads)
        return dict(zip(ridges, found, strict=True))

    def _net(self, choice: Choice) -> SoftMachine | None:
        """The module of a choice, without its link; None for the source."""
        if choice.setting == SOURCE:
            return None
        assert choice.parts is not None
        net = self.soften(self.settings[choice.setting].alpha)
        set_parts(net, choice.parts)
        return net


def _distance(margin: Tensor, wanted: Tensor) -> Tensor:
    return (margin - wanted).square().sum(-1)
