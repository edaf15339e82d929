"""Columns to mean 0 and deviation 1, whatever their scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Standardise(nn.Module):
    """(x - mean) / spread for each column: of the batch in training, of what was seen in `eval`.

    As batch normalisation without weights, but for inputs of any scale: the variance is that of
    x over its largest magnitude, which neither overflows nor vanishes, and the spread is kept, not
    its square. A column that does not vary beyond rounding is centred alone. One row has no
    spread: it is measured by what was seen before it. NaN stands at the mean and does not count.

    Parameters
    ----------
    n
        Columns.
    momentum
        The share of each batch in what is remembered; the first batch is remembered whole.
    """

    mean: Tensor
    spread: Tensor
    n_batches: Tensor

    def __init__(self, n: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("spread", torch.ones(n))
        self.register_buffer("n_batches", torch.zeros((), dtype=torch.long))

    def forward(self, x: Float[Tensor, "m n"]) -> Float[Tensor, "m n"]:
        if not self.training or len(x) < 2:
            return self.measured(x)
        mean, spread, varies = self._measure(x)
        self._remember(mean.detach(), spread.detach(), varies)
        return _divided(x, mean, spread)

    def measured(self, x: Float[Tensor, "m n"]) -> Float[Tensor, "m n"]:
        """By what was seen, in training too."""
        return _divided(x, self.mean.to(x.dtype), self.spread.to(x.dtype))

    @torch.no_grad()
    def measure(self, x: Float[Tensor, "m n"]) -> None:
        """Forget what was seen; these rows are it."""
        self.n_batches.zero_()
        self._remember(*self._measure(x))

    def _measure(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        info, is_nan = torch.finfo(x.dtype), x.isnan()
        counts = (~is_nan).to(x.dtype)
        n = counts.sum(0).clamp(min=1.0)
        known = torch.where(is_nan, 0.0, x)
        scale = known.detach().abs().amax(0).clamp(info.tiny * 2**24, info.max)
        unit = known / scale
        mean = unit.sum(0) / n
        variance = (counts * (unit - mean) ** 2).sum(0) / n
        varies = variance > (8 * info.eps) ** 2
        spread = torch.where(varies, torch.where(varies, variance, 1.0).sqrt(), 1.0)
        return mean * scale, spread * scale, varies

    @torch.no_grad()
    def _remember(self, mean: Tensor, spread: Tensor, varies: Tensor) -> None:
        share = torch.where(self.n_batches == 0, 1.0, self.momentum)
        # A batch in which a column does not vary, as a pixel at the border, says nothing of it.
        never = torch.where(
            self.n_batches == 0, spread.clamp(min=1.0), self.spread.to(spread.dtype)
        )
        spread = torch.where(varies, spread, never)
        # Products first, for a difference may overflow.
        self.mean.copy_((1 - share) * self.mean + share * mean)
        self.spread.copy_((1 - share) * self.spread + share * spread)
        self.n_batches += 1


def _divided(x: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    # Halves first: the difference of two large numbers of both signs may overflow.
    found = (0.5 * x - 0.5 * mean) / (0.5 * spread)
    return torch.where(x.isnan(), 0.0, found)
