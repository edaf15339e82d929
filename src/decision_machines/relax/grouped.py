"""Sparse weights that neighbours share: fusedmax and oscarmax, along the last dimension.

Both are sparsemax after a proximal step that makes groups of scores equal: neighbours on the line
(total variation), or neighbours in size (the OSCAR penalty). Within a group the gradient is the
mean, so each is differentiated as the mean over its groups, then as sparsemax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .leaves import is_traced
from .sparse import sparsemax

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    Groups = Int[Tensor, "... n"]


def fusedmax(
    p: Float[Tensor, "... n"], strength: float, is_real: Bool[Tensor, "... n"] | None = None
) -> Float[Tensor, "... n"]:
    """argmin over the simplex of ½ ‖w - p‖² + λ Σ abs(w_{i+1} - w_i).

    Paper: cites `niculae2017regularized`. Padding, where `is_real` is False, stands at the end and
    is no neighbour.
    """
    best = p.detach().amax(-1, keepdim=True)
    # What lies this far below the best shares no group with it, whatever it is.
    low = -(4 * strength + 2)
    p = torch.maximum(p - best, p.new_full((), low))
    p = p if is_real is None else p.masked_fill(~is_real, low)
    with torch.no_grad():
        y, group = total_variation_step(p, strength, is_real)
    return sparsemax(_with_means(y, p, group))


def oscarmax(
    p: Float[Tensor, "... n"], strength: float, is_real: Bool[Tensor, "... n"] | None = None
) -> Float[Tensor, "... n"]:
    """argmin over the simplex of ½ ‖w - p‖² + λ Σ_{i<j} max(w_i, w_j).

    Paper: cites `niculae2017regularized`. From the largest weight down, the penalty is
    λ (n - i) w_i: it is taken off the sorted scores, and scores that are then out of order are
    pooled.
    """
    n = p.shape[-1] if is_real is None else is_real.sum(-1, keepdim=True).to(p.dtype)
    best = p.detach().amax(-1, keepdim=True)
    low = -(strength * n + 2) * torch.ones_like(best)
    p = torch.maximum(p - best, low)
    p = p if is_real is None else torch.where(is_real, p, low - 1)
    with torch.no_grad():
        order = p.argsort(-1, descending=True)
        rank = torch.arange(1, p.shape[-1] + 1, dtype=p.dtype, device=p.device)
        # Padding comes last, and stays below all leaves, in a pool of its own.
        cost = torch.where(rank <= n, strength * (n - rank), strength * n + 2)
        y, pooled = decreasing(p.gather(-1, order) - cost)
        y = torch.zeros_like(y).scatter(-1, order, y)
        group = torch.zeros_like(pooled).scatter(-1, order, pooled)
    return sparsemax(_with_means(y, p, group))


def total_variation_step(
    p: Float[Tensor, "... n"], strength: float, is_real: Bool[Tensor, "... n"] | None = None
) -> tuple[Float[Tensor, "... n"], Groups]:
    """argmin of ½ ‖y - p‖² + λ Σ abs(y_{i+1} - y_i), and the number of each entry's group.

    As λ grows from 0, groups move towards their neighbours at constant rates and join where they
    meet; joined, they never part. So at most n - 1 joints lead to the solution, each exact.
    """
    n = p.shape[-1]
    zero = torch.zeros_like(p[..., :1])
    is_linked = torch.ones_like(p[..., 1:], dtype=torch.bool)
    if is_real is not None:
        is_linked = is_linked & is_real[..., 1:]
    is_cut = torch.ones_like(is_linked)
    left = zero + strength
    y = p
    for _ in range(n if n > 1 else 0):
        group = _numbered(is_cut)
        gap = y[..., 1:] - y[..., :-1]
        pull = torch.where(is_cut & is_linked, gap.sign(), 0.0)
        rate = _means(torch.cat([pull, zero], -1) - torch.cat([zero, pull], -1), group)
        closing = (rate[..., :-1] - rate[..., 1:]) * gap.sign()
        meets = torch.where(closing > 0, gap.abs() / closing.clamp(min=1e-30), torch.inf)
        meets = torch.where(gap == 0, 0.0, meets).masked_fill(~(is_cut & is_linked), torch.inf)
        step = torch.minimum(meets.amin(-1, keepdim=True), left)
        is_cut = is_cut & ((meets > step) | (left <= 0))
        left = left - step
        group = _numbered(is_cut)
        y = _means(y + rate * step, group)
        if not _is_recorded(p) and not bool((left > 0).any()):
            break
    return y, _numbered(is_cut)


def decreasing(p: Float[Tensor, "... n"]) -> tuple[Float[Tensor, "... n"], Groups]:
    """The nearest sequence that never rises, and the number of each entry's pool.

    Neighbours that rise are pooled until none does; a whole run of them at a time.
    """
    is_cut = torch.ones_like(p[..., 1:], dtype=torch.bool)
    y, group = p, _numbered(is_cut)
    for _ in range(p.shape[-1] - 1):
        rises = y[..., 1:] > y[..., :-1]
        is_cut = is_cut & ~rises
        group = _numbered(is_cut)
        y = _means(p, group)
        if not _is_recorded(p) and not bool(rises.any()):
            break
    return y, group


def _numbered(is_cut: Bool[Tensor, "... n-1"]) -> Groups:
    """The number of each entry's group, where cuts stand between groups."""
    first = torch.zeros_like(is_cut[..., :1], dtype=torch.int64)
    if not is_cut.shape[-1]:
        first = is_cut.new_zeros((*is_cut.shape[:-1], 1), dtype=torch.int64)
    return torch.cat([first, is_cut.to(torch.int64).cumsum(-1)], -1)


def _means(p: Float[Tensor, "... n"], group: Groups) -> Float[Tensor, "... n"]:
    """Every entry's mean over its group."""
    zero = torch.zeros_like(p)
    total = zero.scatter_add(-1, group, p).gather(-1, group)
    size = zero.scatter_add(-1, group, torch.ones_like(p)).gather(-1, group)
    return total / size


def _with_means(y: Tensor, p: Tensor, group: Groups) -> Tensor:
    """y, to the last bit, with the gradient of the means of p over the groups."""
    step = p - p.detach()
    return y + _means(step, group)


def _is_recorded(p: Tensor) -> bool:
    """Whether the number of rounds must not depend on data: in a graph, or where there is none."""
    return p.is_meta or bool(torch.compiler.is_compiling()) or is_traced()
