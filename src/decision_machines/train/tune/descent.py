"""Gradient descent on a softened machine, in units that fit each of its parts.

A threshold moves in widths of its own test, a slope by factors, a value in the spread of its tree's
values: so one learning rate fits features and targets of any scale.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import distributed
from .ranking import lambda_loss, one_minus_ndcg
from .units import UnitAdam

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from ...relax.module import SoftMachine
    from .objectives import Objective
    from .tensor_rows import TensorRows

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Setting:
    """One way to train: how soft to start and how far to step."""

    alpha: float
    """Which quantile of |S z - t| is a test's width."""
    lr_t: float = 0.02
    lr_slope: float = 0.02
    lr_V: float = 0.01
    sharpen: float = 1.0
    """By how much all slopes grow over the run, besides what they learn."""

    def __str__(self) -> str:
        sharp = "" if self.sharpen == 1 else f", slopes x {self.sharpen:g}"
        return f"alpha {self.alpha:g}, rates {self.lr_t:g} / {self.lr_V:g}{sharp}"


def row_losses(objective: Objective, margin: Tensor, rows: TensorRows, *, judging: bool) -> Tensor:
    """(m,) losses in float64; rankings are trained by pairs and judged by NDCG."""
    margin = margin.double()
    if objective.is_ranking:
        assert rows.group is not None
        return (one_minus_ndcg if judging else lambda_loss)(margin, rows.y, rows.group)
    return objective.loss(margin, rows.y)


@dataclass(frozen=True)
class Judgement:
    """The losses of rows and their weighted mean; infinite where that is not a number."""

    losses: Tensor
    w: Tensor

    @property
    def mean(self) -> float:
        total = float((self.losses * self.w).sum() / self.w.sum())
        return total if math.isfinite(total) else math.inf

    def lead_over(self, other: Judgement) -> float:
        """How far below the other's mean this one's is, in standard errors of the difference."""
        gain = (other.losses - self.losses).double()
        largest = float(gain.abs().max()) if len(gain) else 0.0
        if not 0 < largest < math.inf:
            return 0.0
        gain = gain / largest
        share = self.w / self.w.sum()
        mean = float((gain * share).sum())
        error = float(((gain - mean).square() * share.square()).sum().sqrt())
        return mean / error if error > 0 else math.copysign(math.inf, mean)


def judge(objective: Objective, margin: Tensor, rows: TensorRows) -> Judgement:
    """What the objective says of margins, row by row (of a ranking, group by group)."""
    with torch.no_grad():
        losses, w = row_losses(objective, margin, rows, judging=True), rows.w
        if objective.is_ranking:
            assert rows.group is not None
            n = int(rows.group.max()) + 1
            by_group = torch.zeros(n, dtype=w.dtype)
            losses = by_group.index_add(0, rows.group, losses * w)
            w = by_group.index_add(0, rows.group, w)
            losses = torch.where(w > 0, losses / w.clamp(min=1e-300), 0.0)
        return Judgement(losses, w)


def soft_margin(net: SoftMachine, rows: TensorRows) -> Tensor:
    """(m, k) margins of the module, a block of rows at a time, shared between processes."""
    with torch.no_grad():
        mine = distributed.own_rows(rows.x)
        parts = [net.margin(block) for block in mine.split(ROWS_AT_ONCE)]
        return distributed.all_rows(torch.cat(parts), len(rows))


class Descent:
    """One run: a module, its units, and the steps it has done.

    Parameters
    ----------
    net
        The softened machine that learns, in place.
    units
        Of each parameter by name, tensors that broadcast; see `units_of`.
    scale
        What every loss is divided by: the source's own loss, so that gradients are about 1.
    key
        Of the random order of rows, besides the seed: other runs see other orders.
    """

    def __init__(
        self,
        net: SoftMachine,
        objective: Objective,
        rows: TensorRows,
        setting: Setting,
        units: dict[str, Tensor],
        *,
        epochs: int,
        batch_size: int,
        scale: float = 1.0,
        seed: int = 0,
        key: int = 0,
    ) -> None:
        self.net, self.objective, self.rows, self.setting = net, objective, rows, setting
        self.epochs, self.batch_size, self.scale = epochs, batch_size, scale
        self.seed, self.key, self.done = seed, key, 0
        rates = {"t": setting.lr_t, "log_slope": setting.lr_slope, "selection.S": setting.lr_t}
        self.parts = {n: p for n, p in net.named_parameters() if p.requires_grad}
        self.adam = UnitAdam(
            [
                {"params": [part], "unit": units[name], "top": rates.get(name, setting.lr_V)}
                for name, part in self.parts.items()
            ]
        )
        self.model = distributed.wrap(_Margin(net))
        self.simplex = _simplex(net) if objective.on_simplex else None

    def epoch(self) -> float:
        """One pass over the rows; the mean training loss, in the objective's own unit."""
        generator = torch.Generator().manual_seed(
            int(np.random.SeedSequence([self.seed, self.key, self.done]).generate_state(1)[0])
        )
        batches = self.rows.batches(self.batch_size, generator)
        total, weight = 0.0, 0.0
        for i, index in enumerate(batches):
            self._set_rates((self.done + i / len(batches)) / self.epochs)
            loss, batch_weight = self._step(index)
            total, weight = total + loss, weight + batch_weight
        self.done += 1
        total, weight = distributed.added(total), weight
        return total / weight if weight else math.nan

    def _set_rates(self, progress: float) -> None:
        cosine = 0.5 * (1 + math.cos(math.pi * progress))
        for group in self.adam.param_groups:
            group["lr"] = group["top"] * cosine
        if self.setting.sharpen != 1.0:
            self.net.tau = self.setting.sharpen ** -min(1.0, progress)

    def _step(self, index: Tensor) -> tuple[float, float]:
        """One batch, this process's share of it; its summed loss here and whole weight."""
        weight = float(self.rows.w[index].sum())
        if weight <= 0:
            return 0.0, 0.0
        groups = None if self.rows.group is None else self.rows.group[index]
        mine = self.rows.take(distributed.share(index, groups))
        margin = self.model(mine.x)
        losses = row_losses(self.objective, margin, mine, judging=False)
        loss = (losses * mine.w).sum()
        self.adam.zero_grad()
        # Processes average their gradients: each one's share is multiplied up before.
        (loss * (distributed.n_processes() / (weight * self.scale))).backward()
        self.adam.step()
        if self.simplex is not None:
            self.simplex()
        return float(loss.detach()), weight

    def state_dict(self) -> dict[str, Any]:
        """All that the next epoch depends on."""
        adam = [dict(self.adam.state[part]) for part in self.parts.values()]
        return {"done": self.done, "parts": parts_of(self.net), "adam": adam}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = state["done"]
        set_parts(self.net, state["parts"])
        for part, found in zip(self.parts.values(), state["adam"], strict=True):
            self.adam.state[part] = {
                name: value.clone() if isinstance(value, torch.Tensor) else value
                for name, value in found.items()
            }


class _Margin(torch.nn.Module):
    """The module's margin as a forward pass, for what wraps modules."""

    def __init__(self, net: SoftMachine) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net.margin(x)


def parts_of(net: SoftMachine) -> dict[str, Tensor]:
    """A copy of every parameter."""
    return {name: part.detach().clone() for name, part in net.named_parameters()}


def set_parts(net: SoftMachine, parts: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, part in net.named_parameters():
            part.copy_(parts[name])


def _simplex(net: SoftMachine) -> Callable[[], None]:
    """What brings leaf values back to probabilities: none below 0, the sums as they were."""
    groups = net.machine.output.groups
    spans = list(itertools.pairwise(groups))
    sums = [net.leaves.V.detach()[:, a:b].sum(1, keepdim=True) for a, b in spans]

    def project() -> None:
        with torch.no_grad():
            net.leaves.V.clamp_(min=0.0)
            for (a, b), was in zip(spans, sums, strict=True):
                now = net.leaves.V[:, a:b].sum(1, keepdim=True)
                net.leaves.V[:, a:b] *= torch.where(now > 0, was / now.clamp(min=1e-300), 0.0)

    return project
