"""Steps in units that fit each part of a softened machine.

A threshold moves in widths of its own test, a slope by factors, a value in the spread of its tree's
values: so one learning rate fits features and targets of any scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

    from ...machine import DecisionMachine
    from ...relax.module import SoftMachine
    from .widths import Widths


class UnitAdam(torch.optim.Optimizer):
    """Adam whose steps are multiples of a unit for every entry; an entry of unit 0 stays.

    Gradients that are not finite count as none. The floor under the root of the mean square is
    relative to the whole part's, so that no loss is too small or too large to learn from.
    """

    def __init__(self, parts: list[dict[str, Any]], betas: tuple[float, float] = (0.9, 0.99)):
        super().__init__(parts, {"lr": 0.0, "betas": betas, "floor": 1e-8})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            (part,), unit = group["params"], group["unit"]
            if part.grad is None:
                continue
            state = self.state[part]
            if not state:
                state["step"] = 0
                state["mean"] = torch.zeros_like(part)
                state["square"] = torch.zeros_like(part)
            state["step"] += 1
            a, b = group["betas"]
            g = (part.grad * unit).nan_to_num(0.0, 0.0, 0.0)
            mean = state["mean"].lerp_(g, 1 - a)
            square = state["square"].lerp_(g * g, 1 - b)
            root = (square / (1 - b ** state["step"])).sqrt()
            floor = group["floor"] * root.square().mean().sqrt() + torch.finfo(root.dtype).tiny
            part.sub_(unit * (group["lr"] / (1 - a ** state["step"])) * mean / (root + floor))


def import_optimizers() -> None:
    """Have torch import what it imports with the first step of an optimizer.

    That is much, and takes seconds: an interruption within it would leave modules half imported,
    which fail when they are asked again.
    """
    part = torch.zeros(1, requires_grad=True)
    adam = UnitAdam([{"params": [part], "unit": torch.ones(1)}])
    adam.zero_grad()
    adam.step()


def units_of(
    machine: DecisionMachine, net: SoftMachine, width: np.ndarray, x: np.ndarray
) -> dict[str, Tensor]:
    """The unit of every parameter: widths for t, 1 for log-slopes, spreads for values.

    A value's unit is the root mean square of its output's leaf values about their tree's mean; a
    weight's of an oblique test, or of a linear leaf, is that per spread of its column.
    """
    dtype = net.t.dtype
    w = torch.from_numpy(np.where(np.isfinite(machine.t), width, 0.0)).to(dtype)
    V = torch.from_numpy(np.array(machine.V, np.float64))
    of_leaf = net.leaves.of_leaf
    n_trees = max(machine.n_trees, 1)
    count = torch.zeros(n_trees).double().index_add(0, of_leaf, torch.ones(len(V)).double())
    mean = torch.zeros((n_trees, V.shape[1])).double().index_add(0, of_leaf, V) / count[:, None]
    spread = (V - mean[of_leaf]).square().mean(0).sqrt() if len(V) else V.new_ones(V.shape[1])
    spread = torch.where(spread > 0, spread, V.abs().mean(0) if len(V) else 1.0)
    spread = torch.where(spread > 0, spread, 1.0)
    found = {"t": w, "log_slope": torch.ones_like(w), "leaves.V": spread.to(dtype)}
    if net.selection.kind != "fixed":
        z = np.asarray(machine.columns.read(x), np.float64)
        per_column = torch.from_numpy(1 / _spreads(z)).to(dtype)
        # A test that took up a column with missing values would be missing wherever that is.
        is_whole = torch.from_numpy(~np.isnan(z).any(0)) | (net.selection.S.detach() != 0)
        found["selection.S"] = w[:, None] * per_column[None, :] * is_whole
    if machine.linear is not None:
        per_feature = torch.from_numpy(1 / _spreads(np.asarray(x, np.float64))).to(dtype)
        found["leaves.intercept"] = found["leaves.V"]
        found["leaves.coefficient"] = (
            found["leaves.V"][None, :] * per_feature[net.leaves.term_feature][:, None]
        )
    return found


def _spreads(z: np.ndarray) -> np.ndarray:
    """The deviation of each column; 1 where it has none."""
    with np.errstate(all="ignore"):
        z = np.where(np.isfinite(z), z, np.nan)
        n = np.maximum((~np.isnan(z)).sum(0), 1)
        mean = np.nansum(z / n, 0)
        found = np.sqrt(np.nansum(((z - mean) / np.sqrt(n)) ** 2, 0))
    return np.where(np.isfinite(found) & (found > 0), found, 1.0)


def precision(machine: DecisionMachine, widths: Widths, margin: np.ndarray) -> torch.dtype:
    """float32, which is faster, where it tells apart all that counts; else float64.

    Rounding must be below a hundredth of a width for every threshold, and below a ten-thousandth
    of their spread for margins; and nothing may be near the ends of the range.
    """
    step = float(np.finfo(np.float32).eps)
    t = widths.t[np.isfinite(widths.t)]
    finest = np.minimum.reduce([widths.width(alpha) for alpha in widths.quantiles])
    finest = finest[np.isfinite(widths.t)]
    spread = margin.astype(np.float64).std(0)
    sizes = np.concatenate([finest, np.abs(t), spread, np.abs(machine.V).ravel(), [1.0]])
    sizes = sizes[sizes > 0]
    is_safe = (
        not machine.is_oblique
        and machine.linear is None
        and bool(np.all(step * np.abs(t) < 1e-2 * finest))
        and bool(np.all(step * np.abs(margin).max(0, initial=0) < 1e-4 * spread))
        and sizes.min() > 1e-30
        and sizes.max() < 1e30
    )
    return torch.float32 if is_safe else torch.float64
