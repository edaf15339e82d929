"""Leaf values of a hard machine, refitted all at once while its tests stay.

With the exit leaves fixed a margin is a sum of values, so the loss is as convex in them as it is in
the margin. A ridge draws each value to what it was: the fewer rows a leaf has, the less it moves.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from ...machine.coded import coded
from .descent import row_losses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from ...machine import DecisionMachine
    from .objectives import Objective
    from .tensor_rows import TensorRows

RIDGES = (1000.0, 300.0, 100.0, 30.0)
"""The cost of moving a value by the spread of all values, in rows of the source's loss."""
TAUGHT_RIDGES = (100.0, 30.0, 10.0, 3.0)
"""The same where values follow a soft machine's margins: those have no noise to be learned."""
STEPS = 12
"""Of L-BFGS for each ridge."""


def refit_values(
    machine: DecisionMachine,
    objective: Objective,
    rows: TensorRows,
    *,
    ridges: Sequence[float] = RIDGES,
    n_threads: int | None = None,
) -> list[DecisionMachine]:
    """The machine with values that lower the loss on rows, one machine for each ridge.

    Each ridge goes on, by L-BFGS, from where the one before it ended.
    """
    from scipy.optimize import minimize

    if machine.linear is not None or not machine.n_leaves:
        return [machine] * len(ridges)
    sums = _Sums(machine, rows, n_threads)
    V = np.array(machine.V, np.float64)
    unit = float(np.sqrt(np.mean((V - V.mean(0)) ** 2))) or float(np.abs(V).mean()) or 1.0
    weight = float(rows.w.sum())
    scale = _mean_loss(objective, sums.margin(torch.from_numpy(V)), rows, weight)
    scale = scale if np.isfinite(scale) and scale > 0 else 1.0

    def cost(move: np.ndarray, ridge: float) -> tuple[float, np.ndarray]:
        margin = sums.margin(torch.from_numpy(V + unit * move.reshape(V.shape)))
        margin.requires_grad_(True)
        losses = row_losses(objective, margin, rows, judging=False)
        loss = (losses * rows.w).sum() / (weight * scale)
        (of_margin,) = torch.autograd.grad(loss, margin)
        slope = sums.pulled_back(of_margin).numpy().reshape(-1) * unit
        slope += 2 * ridge / weight * move
        value = float(loss.detach()) + ridge / weight * float(move @ move)
        return (value, slope) if np.isfinite(value) else (np.inf, np.nan_to_num(slope))

    found, move = [], np.zeros(V.size)
    for ridge in ridges:
        options = {"maxiter": STEPS}
        now = minimize(cost, move, (ridge,), jac=True, method="L-BFGS-B", options=options).x
        move = now if np.all(np.isfinite(now)) else move
        moved = V + unit * move.reshape(V.shape)
        moved = _shares(moved, machine) if objective.on_simplex else moved
        found.append(replace(machine, V=moved.astype(machine.V.dtype)))
    return found


class _Sums:
    """Margins from leaf values, and gradients back, along fixed exit leaves."""

    def __init__(self, machine: DecisionMachine, rows: TensorRows, n_threads: int | None) -> None:
        exits = coded(machine).apply(rows.x.numpy(), n_threads=n_threads).astype(np.int64)
        self.exits = torch.from_numpy(exits + machine.trees.leaf_start[:-1])
        self.shape, self.k = machine.V.shape, machine.n_outputs
        feeds = torch.from_numpy(machine.trees.feeds.astype(np.int64))
        self.feeds = feeds if machine.is_narrow else None
        output = machine.output
        self.factor = output.scale / output.divisor
        base = torch.from_numpy(np.array(output.base, np.float64))
        self.base = base * self.factor if output.base_first else base

    def margin(self, V: Tensor) -> Tensor:
        m, n_trees = self.exits.shape
        if self.feeds is None:
            total = torch.zeros((m, self.k), dtype=V.dtype)
            for i in range(n_trees):
                total += V[self.exits[:, i]]
        elif self.k == 1:
            total = V[:, 0][self.exits].sum(1, keepdim=True)
        else:
            total = torch.zeros((m, self.k), dtype=V.dtype)
            total.index_add_(1, self.feeds, V[:, 0][self.exits])
        return total * self.factor + self.base

    def pulled_back(self, slope: Tensor) -> Tensor:
        """d loss / d V from d loss / d margin."""
        slope = slope * self.factor
        found = torch.zeros(self.shape, dtype=slope.dtype)
        n_trees = self.exits.shape[1]
        if self.feeds is None:
            for i in range(n_trees):
                found.index_add_(0, self.exits[:, i], slope)
            return found
        by_tree = slope[:, self.feeds]
        return (
            found.view(-1)
            .index_add_(0, self.exits.reshape(-1), by_tree.reshape(-1))
            .view(self.shape)
        )


def _mean_loss(objective: Objective, margin: Tensor, rows: TensorRows, weight: float) -> float:
    with torch.no_grad():
        return float((row_losses(objective, margin, rows, judging=False) * rows.w).sum()) / weight


def _shares(V: np.ndarray, machine: DecisionMachine) -> np.ndarray:
    """Values as probabilities again: none below 0, and the sums that they had."""
    V = np.maximum(V, 0.0)
    groups = machine.output.groups
    for a, b in itertools.pairwise(groups):
        was = np.asarray(machine.V[:, a:b], np.float64).sum(1, keepdims=True)
        now = V[:, a:b].sum(1, keepdims=True)
        V[:, a:b] = np.where(
            now > 0, V[:, a:b] * was / np.where(now > 0, now, 1), machine.V[:, a:b]
        )
    return V
