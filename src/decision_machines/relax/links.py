"""The links of `machine.links` in torch, one function for each family.

Within a few units in the last place of the engines', which follow each library to the bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from ..machine import links
from ..machine.steps import ARITHMETIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float
    from torch import Tensor

    from ..machine.links import Family
    from ..machine.steps import Step


def sigmoid(margin: Float[Tensor, "m k"], slope: float = 1.0) -> Float[Tensor, "m k"]:
    return (slope * margin).sigmoid()


def softmax(margin: Float[Tensor, "m k"], by_column: float = 0.0) -> Float[Tensor, "m k"]:
    return margin.softmax(-1)


def samme(margin: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
    """AdaBoost's probabilities; one margin is the difference of two classes."""
    if margin.shape[-1] == 1:
        return (torch.cat([-margin, margin], -1) / 2).softmax(-1)
    return (margin / (margin.shape[-1] - 1)).softmax(-1)


def isolation(margin: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
    return -torch.exp2(-margin)


def step(margin: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
    """1 above 0, with the sigmoid's gradient: the step itself has none."""
    soft = margin.sigmoid()
    return (margin > 0).to(margin.dtype) + (soft - soft.detach())


def opposed(margin: Float[Tensor, "m 2"], slope: float = 1.0) -> Float[Tensor, "m 2"]:
    first = (slope * margin[..., :1]).sigmoid()
    return torch.cat([first, 1 - first], -1)


def mean_and_variance(margin: Float[Tensor, "m 2"]) -> Float[Tensor, "m 2"]:
    return torch.cat([margin[..., :1], (2 * margin[..., 1:]).exp()], -1)


def signed_square(margin: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
    return margin.abs() * margin


def onnx(margin: Float[Tensor, "m k"], *steps: Step) -> Float[Tensor, "m r"]:
    """The steps of an ONNX graph after its trees."""
    x = margin
    for step in steps:
        x = ONNX_STEPS[step.name](x, *step.constants)
    return x


def increments(margin: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
    """The first margin, then the one before plus a softplus and a millionth."""
    added = torch.nn.functional.softplus(margin[..., 1:]) + 1e-6
    return torch.cat([margin[..., :1], added], -1).cumsum(-1)


def probit(x: Tensor) -> Tensor:
    """The inverse of the normal distribution, by Winitzki's approximation."""
    p = 2 * x - 1
    log = ((1 - p) * (1 + p)).log()
    v = 2 / (math.pi * 0.147) + 0.5 * log
    return math.sqrt(2) * p.sign() * (-v + (v * v - log / 0.147).sqrt()).sqrt()


def softmax_zero(x: Tensor) -> Tensor:
    """Softmax over the values that are not (about) 0; the others stay as they are."""
    largest = x.amax(-1, keepdim=True)
    counts = x.abs() > 1e-7
    e = (x - largest).exp()
    kept = torch.where(counts, e, x * (-largest).exp())
    return kept / torch.where(counts, e, torch.zeros_like(e)).sum(-1, keepdim=True)


def normalize(x: Tensor) -> Tensor:
    total = x.abs().sum(-1, keepdim=True)
    return torch.where(total != 0, x / torch.where(total != 0, total, torch.ones_like(total)), x)


def _with_constants(operate: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    return lambda x, *c: operate(x, torch.tensor(c, dtype=x.dtype, device=x.device))


ONNX_STEPS: dict[str, Callable[..., Tensor]] = {
    "single": lambda x: x,
    "double": lambda x: x,
    "logistic": torch.sigmoid,
    "softmax": softmax,
    "softmax_zero": softmax_zero,
    "probit": probit,
    "complement": lambda x: torch.cat([1 - x, x], -1),
    "opposite": lambda x: torch.cat([-x, x], -1),
    "beside_zero": lambda x: torch.cat([torch.zeros_like(x), x], -1),
    "normalize": normalize,
    **{name: _with_constants(operate) for name, operate in ARITHMETIC.items()},
    "negate": torch.neg,
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "libm_exp": torch.exp,
    "libm_log1p": torch.log1p,
}
"""The function of every step of `machine.steps`."""

OF_FAMILY: dict[Family, Callable[..., Tensor]] = {
    links.IDENTITY: lambda margin: margin,
    links.SIGMOID: sigmoid,
    links.SOFTMAX: softmax,
    links.EXPONENTIAL: torch.exp,
    links.SOFTPLUS: torch.nn.functional.softplus,
    links.STEP: step,
    links.SIGNED_SQUARE: signed_square,
    links.ISOLATION: isolation,
    links.ANOMALY: lambda margin, divisor=1.0: torch.exp2(-margin / divisor),
    links.CLAMPED: lambda margin: margin.clamp(0, 1),
    links.ADABOOST: samme,
    links.OPPOSED: opposed,
    links.MEAN_AND_VARIANCE: mean_and_variance,
    links.SORTED: lambda margin: margin.sort(-1).values,
    links.INCREMENTS: increments,
    links.STEPS: onnx,
}
"""The function of every family of links: margins and the link's parameters → responses."""


def link_named(name: str) -> Callable[..., Tensor]:
    """The link's function; one that divides margins first for "averaged …"."""
    link = links.LINKS[name]
    apply = OF_FAMILY[link.family]
    if link.is_averaged:
        return lambda margin, divisor, *params: apply(margin / divisor, *params)
    return apply
