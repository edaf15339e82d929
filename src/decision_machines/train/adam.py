"""Adam for trees trained side by side, and the rows of each of its steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

BETAS = (0.9, 0.99)
"""Adam's memory; the second is shorter than usual, for losses that sharpen as slopes grow."""


class Adam:
    """Adam over tensors whose first dimension is the tree, with a rate for each tree.

    A gradient that is not finite is taken as 0: one bad batch must not end a whole training.
    """

    def __init__(self, parameters: Sequence[Tensor], rates: Sequence[Tensor]) -> None:
        self.parameters, self.rates = parameters, rates
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.count = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], factor: float = 1.0) -> None:
        self.count += 1
        b1, b2 = BETAS
        unbias = factor * math.sqrt(1 - b2**self.count) / (1 - b1**self.count)
        both = zip(self.parameters, gradients, self.first, self.second, self.rates, strict=True)
        for p, gradient, first, second, rate in both:
            gradient = torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)
            first.lerp_(gradient, 1 - b1)
            second.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
            p.sub_((first / second.sqrt().add_(1e-8)).mul_(rate * unbias))


class Batches:
    """Rows of one step after the other: all of them, or parts of a fresh shuffle each epoch."""

    def __init__(self, n_rows: int, size: int | None, made: torch.Generator) -> None:
        self.n_rows, self.size, self.made = n_rows, size, made
        self.order = torch.empty(0, dtype=torch.int64)
        self.at = 0

    def next(self) -> Any:
        if self.size is None or self.size >= self.n_rows:
            return slice(None)
        if self.at + self.size > len(self.order):
            self.order, self.at = torch.randperm(self.n_rows, generator=self.made), 0
        self.at += self.size
        return self.order[self.at - self.size : self.at]


def fitting(rate: Tensor, parameter: Tensor) -> Tensor:
    """A rate for each tree, shaped to multiply the parameter."""
    return rate.reshape(-1, *([1] * (parameter.dim() - 1)))
