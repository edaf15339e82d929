"""What training makes small: a loss for each row from its margin and its target, by name.

An objective follows the machine it trains. Its link says what the margins mean: a sigmoid's are
log-odds, an exponential's the logarithm of a rate, and without a link they are the answer itself.
What a machine cannot tell (absolute error, quantiles and squared error have the same link) is said
by name, with a number after a colon where the loss takes one: "quantile:0.9".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...errors import InputError, UnsupportedModelError
from ...machine import links
from ...relax.links import link_named
from .losses import (
    Loss,
    absolute,
    brier,
    gamma,
    gaussian,
    hinge,
    huber,
    log_of_shares,
    logistic,
    one_against_all,
    poisson,
    quantile,
    softmax,
    squared,
    tweedie,
)
from .targets import class_targets, multilabel_targets, number_targets

if TYPE_CHECKING:
    from torch import Tensor

    from ...machine import DecisionMachine
    from ...machine.links import Family, Link

DOING = "choosing what to train for"


@dataclass(frozen=True)
class Objective:
    """A loss, and how targets are read for it."""

    name: str
    loss: Loss
    """(m, k) margins and targets → (m,) losses, differentiable."""
    encode: Callable[[Any], np.ndarray]
    """Targets as a user passes them → the array that the loss takes; refuses what it cannot."""
    is_ranking: bool = False
    """Whether rows are compared within groups; then the loss lives in `ranking`."""
    on_simplex: bool = False
    """Whether leaves hold probabilities, which training must leave so."""


NUMBERS: dict[str, tuple[Loss | Callable[[float], Loss], float | None, str]] = {
    "squared": (squared, None, "any"),
    "absolute": (absolute, None, "any"),
    "huber": (huber, 1.0, "any"),
    "quantile": (quantile, 0.5, "any"),
    "poisson": (poisson, None, "count"),
    "gamma": (gamma, None, "positive"),
    "tweedie": (tweedie, 1.5, "count"),
    "logistic": (logistic, None, "share"),
    "hinge": (hinge, None, "share"),
    "gaussian": (gaussian, None, "any"),
}
"""Name → loss (or what makes it of a number), that number's default, the targets it takes."""
CLASSES = ("logistic", "softmax", "log_loss", "brier", "hinge")
RANKING = ("lambdarank",)
NAMES = (*NUMBERS, *(name for name in CLASSES if name not in NUMBERS), *RANKING)
SMALLEST_RATE = 1e-9
MEANT_FOR_NUMBERS: dict[Family, str] = {
    links.IDENTITY: "squared",
    links.SIGMOID: "logistic",
    links.SOFTMAX: "squared",
    links.EXPONENTIAL: "poisson",
    links.SOFTPLUS: "squared",
    links.STEP: "hinge",
    links.SIGNED_SQUARE: "squared",
    links.CLAMPED: "squared",
    links.ADABOOST: "squared",
    links.OPPOSED: "squared",
    links.MEAN_AND_VARIANCE: "gaussian",
    links.SORTED: "quantile",
    links.INCREMENTS: "squared",
    links.STEPS: "squared",
}
"""What each family of links is trained for where the machine has no classes. An isolation forest
is refused: its answer is a depth, and not a prediction of a target."""
MEANT_FOR_CLASSES: dict[Family, tuple[str, ...]] = {
    links.IDENTITY: ("brier", "log_loss"),
    links.CLAMPED: ("brier", "log_loss"),
    links.SIGMOID: ("logistic", "log_loss"),
    links.SOFTMAX: ("softmax", "log_loss"),
    links.STEP: ("hinge",),
    **dict.fromkeys(
        (
            links.EXPONENTIAL,
            links.SOFTPLUS,
            links.SIGNED_SQUARE,
            links.ISOLATION,
            links.ANOMALY,
            links.ADABOOST,
            links.OPPOSED,
            links.MEAN_AND_VARIANCE,
            links.SORTED,
            links.INCREMENTS,
            links.STEPS,
        ),
        ("log_loss",),
    ),
}
"""The losses that the classes of each family of links may be trained for."""


def objective_for(machine: DecisionMachine, wanted: Any = None) -> Objective:
    """The objective asked for by name or as a function, or the one that the machine's link means.

    Examples
    --------
    >>> import decision_machines as dm
    >>> objective_for(dm.figure_one()).name
    'squared'
    >>> objective_for(dm.figure_one(), "quantile:0.9").name
    'quantile:0.9'
    """
    if callable(wanted):
        return _of_the_user(machine, wanted)
    if wanted is not None and not isinstance(wanted, str):
        raise InputError(DOING, f"objective={wanted!r}", f"use a function or {', '.join(NAMES)}")
    name, parameter = _parse(wanted)
    if name in RANKING:
        _needs_one_output(machine, name)
        return Objective(name, squared, number_targets(1, "any"), is_ranking=True)
    if machine.output.classes is not None:
        return _of_classes(machine, name)
    return _of_numbers(machine, name, parameter)


def _parse(wanted: str | None) -> tuple[str | None, float | None]:
    if wanted is None:
        return None, None
    name, _, text = wanted.partition(":")
    if name not in NAMES:
        raise InputError(DOING, f"objective={wanted!r}", f"use one of {', '.join(NAMES)}")
    if not text:
        return name, None
    try:
        parameter = float(text)
    except ValueError:
        parameter = math.nan
    low, high = {"quantile": (0, 1), "huber": (0, math.inf), "tweedie": (1, 2)}.get(name, (0, 0))
    if not low < parameter < high:
        need = f"a number between {low} and {high} after the colon" if high else "no colon"
        raise InputError(DOING, f"objective={wanted!r}", f"use {name} with {need}")
    return name, parameter


def _of_numbers(machine: DecisionMachine, name: str | None, parameter: float | None) -> Objective:
    output = machine.output
    link, _, _ = output.without_average()
    if link.family in (links.ISOLATION, links.ANOMALY):
        raise UnsupportedModelError(
            DOING,
            "an isolation forest, whose answer is a depth, not a prediction of a target",
            "train another model, or pass objective= a function of margins and y",
        )
    if name is None:
        name = MEANT_FOR_NUMBERS[link.family]
    if name not in NUMBERS:
        raise InputError(
            DOING,
            f"objective={name!r} for a machine without classes",
            f"use one of {', '.join((*NUMBERS, *RANKING))}",
        )
    loss, default, kind = NUMBERS[name]
    if default is not None:
        parameter = default if parameter is None else parameter
        loss = loss(parameter)  # type: ignore[call-arg, assignment, arg-type]
        name = f"{name}:{parameter:g}"
    k = 1 if name == "gaussian" else machine.n_outputs
    if name == "gaussian" and machine.n_outputs != 2:
        raise InputError(DOING, "objective='gaussian' without two outputs", "use another objective")
    return Objective(name, _through(machine, loss, kind), number_targets(k, kind))  # type: ignore[arg-type]


def _through(machine: DecisionMachine, loss: Loss, kind: str) -> Loss:
    """The loss of margins that are first averaged, scaled or squared as the machine's link does."""
    output = machine.output
    link, divisor, numbers = output.without_average()
    if link.family is links.SIGMOID:
        divisor /= numbers[0] if numbers else 1.0
    elif kind in ("count", "positive") and link.family is not links.EXPONENTIAL:
        # The margin is the rate itself, as in a tree grown for Poisson deviance.
        return lambda margin, y: loss((margin / divisor).clamp(min=SMALLEST_RATE).log(), y)
    elif kind == "any" and link.family not in (links.IDENTITY, links.MEAN_AND_VARIANCE):
        # Errors are counted in the answer's own unit, as where the answer is a square.
        apply, params = link_named(link.name), (*numbers, *output.link_steps)
        return lambda margin, y: loss(apply(margin / divisor, *params), y)
    return loss if divisor == 1.0 else lambda margin, y: loss(margin / divisor, y)


def _of_classes(machine: DecisionMachine, name: str | None) -> Objective:
    output = machine.output
    link, _, _ = output.without_average()
    if name is not None and name not in CLASSES:
        raise InputError(
            DOING, f"objective={name!r} for a machine of classes", f"use {', '.join(CLASSES)}"
        )
    assert output.classes is not None
    encode = class_targets(output.classes)
    _check_meant(link, name)
    if link.family is links.STEP:
        return Objective("hinge", hinge, encode)
    if link.family is links.SIGMOID:
        inner, found = logistic, "logistic"
        if output.decision in ("above_each", "each_margin_above") and machine.n_outputs > 1:
            encode = multilabel_targets(machine.n_outputs)
        elif machine.n_outputs > 1:
            inner, found = one_against_all, "log_loss"
        return Objective(found, _through(machine, inner, "share"), encode)
    if link.family is links.SOFTMAX:
        return Objective("softmax", _by_group(machine, _through(machine, softmax, "share")), encode)
    if link.family is links.IDENTITY and name != "log_loss":
        return Objective("brier", _by_group(machine, brier), encode, on_simplex=True)
    apply, params = link_named(output.link), output.link_params

    def of_shares(margin: Tensor, y: Tensor) -> Tensor:
        p = apply(margin, *params)
        return log_of_shares(torch.cat([1 - p, p], -1) if p.shape[-1] == 1 else p, y)

    loss = _by_group(machine, of_shares)
    return Objective("log_loss", loss, encode, on_simplex=link.family is links.IDENTITY)


def _check_meant(link: Link, name: str | None) -> None:
    """Refuse the name of a loss that this link's classes are not trained for."""
    meant = MEANT_FOR_CLASSES[link.family]
    if name is not None and name not in meant:
        raise InputError(
            DOING,
            f"objective={name!r} for classes with the link {link.name!r}",
            f"use {' or '.join(meant)}, or a function of (margin, y)",
        )


def _by_group(machine: DecisionMachine, loss: Loss) -> Loss:
    """The mean of the losses of several targets, each with classes of its own."""
    groups = machine.output.groups
    if len(groups) == 2:
        return loss
    spans = list(itertools.pairwise(groups))

    def summed(margin: Tensor, y: Tensor) -> Tensor:
        parts = [loss(margin[:, a:b], y[:, i : i + 1]) for i, (a, b) in enumerate(spans)]
        return torch.stack(parts).mean(0)

    return summed


def _of_the_user(machine: DecisionMachine, function: Callable[..., Any]) -> Objective:
    classes = machine.output.classes
    encode = number_targets(None, "any") if classes is None else class_targets(classes)

    def loss(margin: Tensor, y: Tensor) -> Tensor:
        m = len(margin)
        found = function(
            margin[:, 0] if margin.shape[1] == 1 else margin, y[:, 0] if y.shape[1] == 1 else y
        )
        if not isinstance(found, torch.Tensor) or found.shape not in ((), (m,)):
            shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise InputError(
                "training for a loss of yours",
                f"it gives {shape} for {m} rows",
                "give a tensor with one loss for each row, or their mean",
            )
        if margin.requires_grad and not found.requires_grad:
            raise InputError(
                "training for a loss of yours",
                "it gives a tensor without a gradient",
                "compute it from the margins by torch operations alone, without detach or item",
            )
        return found if found.dim() else found.expand(m)

    return Objective(getattr(function, "__name__", "a function"), loss, encode)


def _needs_one_output(machine: DecisionMachine, name: str) -> None:
    if machine.n_outputs != 1 or machine.output.classes is not None:
        raise InputError(
            DOING,
            f"objective={name!r} for {machine!r}",
            "rank with a machine of one output and no classes",
        )
