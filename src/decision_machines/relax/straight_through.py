"""Straight through: the value of one tensor with the gradient of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def straight_through(
    hard: Float[Tensor, "m k"], soft: Float[Tensor, "m k"]
) -> Float[Tensor, "m k"]:
    """`hard` to the last bit, differentiated as `soft`.

    soft - soft is exactly 0, so nothing is lost by adding it; soft + (hard - soft) would round.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([0.3], requires_grad=True)
    >>> y = straight_through((x > 0).float(), x.sigmoid())
    >>> y.backward()
    >>> y.item(), round(x.grad.item(), 4)
    (1.0, 0.2445)
    """
    return hard.detach() + (soft - soft.detach())
