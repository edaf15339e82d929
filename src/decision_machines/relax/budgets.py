"""Constrained sparsemax: the nearest point of the simplex in which no leaf exceeds its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def constrained_sparsemax(
    p: Float[Tensor, "... n"], budget: Float[Tensor, "... n"]
) -> Float[Tensor, "... n"]:
    """argmin of ‖w - p‖² over the simplex with w ≤ budget, along the last dimension.

    Paper: cites `malaviya2018sparse`. The solution is p - θ held between 0 and the budget. As θ
    falls, its sum grows in straight pieces that bend where an entry leaves 0 (at p) and where it
    reaches its budget (at p - budget), so sorting these places finds θ exactly. Budgets sum to at
    least 1.

    Examples
    --------
    >>> constrained_sparsemax(torch.tensor([2.0, 0.5, 0.0]), torch.tensor([0.5, 0.4, 1.0]))
    tensor([0.5000, 0.4000, 0.1000])
    """
    budget = budget.clamp(max=1.0).expand_as(p)
    with torch.no_grad():
        z = _drawn_together(p)
        bends, order = torch.cat([z, z - budget], -1).sort(-1, descending=True)
        turn = torch.cat([torch.ones_like(z), -torch.ones_like(z)], -1).gather(-1, order)
        n_free = turn.cumsum(-1)
        grown = (n_free[..., :-1] * (bends[..., :-1] - bends[..., 1:])).cumsum(-1)
        grown = torch.cat([torch.zeros_like(grown[..., :1]), grown], -1)
        last = ((grown <= 1).to(torch.int64).sum(-1, keepdim=True) - 1).clamp(min=0)
        rest = (1 - grown.gather(-1, last)) / n_free.gather(-1, last).clamp(min=1)
        w = torch.minimum((z - bends.gather(-1, last) + rest).clamp(min=0), budget)
        is_free = ((w > 0) & (w < budget)).to(p.dtype)
    step = p - p.detach()
    mean = (is_free * step).sum(-1, keepdim=True) / is_free.sum(-1, keepdim=True).clamp(min=1)
    return w + is_free * (step - mean)


def _drawn_together(p: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """p with gaps between neighbours in size cut to 2.

    No budget is above 1, so an entry more than 1 below another gets its first weight when the other
    is full: wider gaps change nothing, and their sums would lose the weights' digits.
    """
    ordered, order = p.sort(-1, descending=True)
    gaps = (ordered[..., :-1] - ordered[..., 1:]).clamp(max=2)
    falls = torch.cat([torch.zeros_like(ordered[..., :1]), gaps.cumsum(-1)], -1)
    return torch.zeros_like(p).scatter(-1, order, -falls)
