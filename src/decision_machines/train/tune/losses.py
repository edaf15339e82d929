"""Losses of rows: (m, k) margins and (m, c) targets in, (m,) losses out, differentiable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

if TYPE_CHECKING:
    from torch import Tensor

Loss = Callable[["Tensor", "Tensor"], "Tensor"]


# -- losses of one number for each output ---------------------------------------------------------


def squared(margin: Tensor, y: Tensor) -> Tensor:
    return (margin - y).square().mean(-1)


def absolute(margin: Tensor, y: Tensor) -> Tensor:
    return (margin - y).abs().mean(-1)


def huber(delta: float) -> Loss:
    return lambda margin, y: F.huber_loss(margin, y, reduction="none", delta=delta).mean(-1)


def quantile(level: float) -> Loss:
    def pinball(margin: Tensor, y: Tensor) -> Tensor:
        over = y - margin
        return torch.maximum(level * over, (level - 1) * over).mean(-1)

    return pinball


def poisson(margin: Tensor, y: Tensor) -> Tensor:
    """The deviance, halved: 0 where the rate is the count."""
    return (margin.exp() - y * margin + torch.xlogy(y, y) - y).mean(-1)


def gamma(margin: Tensor, y: Tensor) -> Tensor:
    return (y * (-margin).exp() - 1 + margin - y.log()).mean(-1)


def tweedie(power: float) -> Loss:
    def loss(margin: Tensor, y: Tensor) -> Tensor:
        a, b = 1 - power, 2 - power
        best = y**b / (a * b)
        return (best - y * (a * margin).exp() / a + (b * margin).exp() / b).mean(-1)

    return loss


def hinge(margin: Tensor, y: Tensor) -> Tensor:
    return (1 - (2 * y - 1) * margin).relu().mean(-1)


def gaussian(margin: Tensor, y: Tensor) -> Tensor:
    """-log density of y for a mean and the logarithm of a deviation."""
    mean, log_deviation = margin[..., 0], margin[..., 1]
    return 0.5 * ((y[..., 0] - mean) * (-log_deviation).exp()).square() + log_deviation


# -- losses of probabilities ----------------------------------------------------------------------


def logistic(margin: Tensor, y: Tensor) -> Tensor:
    """-log likelihood of shares y, from 0 to 1, under log-odds."""
    return F.binary_cross_entropy_with_logits(margin, y.expand_as(margin), reduction="none").mean(
        -1
    )


def softmax(margin: Tensor, y: Tensor) -> Tensor:
    """-log likelihood of the class y, a column of codes."""
    return F.cross_entropy(margin, y[:, 0].long(), reduction="none")


def one_against_all(margin: Tensor, y: Tensor) -> Tensor:
    """-log likelihood, where each class has log-odds of its own that are scaled to sum to 1."""
    log_p = F.logsigmoid(margin)
    return F.nll_loss(log_p - log_p.logsumexp(-1, keepdim=True), y[:, 0].long(), reduction="none")


def brier(margin: Tensor, y: Tensor) -> Tensor:
    """Squared error of probabilities: what Gini's impurity is, summed over the leaves."""
    k = margin.shape[-1]
    return (margin - F.one_hot(y[:, 0].long(), k).to(margin.dtype)).square().sum(-1)


def log_of_shares(margin: Tensor, y: Tensor) -> Tensor:
    """-log of the probability that leaves give to the class y; no less than 1e-15."""
    p = margin / margin.sum(-1, keepdim=True).clamp(min=1e-15)
    return -p.gather(-1, y.long())[..., 0].clamp(min=1e-15).log()
