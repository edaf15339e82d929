"""The weights axis as a module: what a tree's weights need besides its scores, and their options.

| `weights` | option | what it is | at first |
|---|---|---|---|
| "entmax" | `alpha` | from softmax (1) to sparsemax (2); with "alpha" in `learn` one a tree | 1.5 |
| "positive_part" | `alpha` | the share that follows the scores | 1 |
| "sparsegen" | `strength` | λ < 1, the sparser the larger | 0.5 |
| "sparsehourglass" | `strength` | q > 0, the nearer to sparsemax the larger | 1 |
| "fusedmax", "oscarmax" | `strength` | λ ≥ 0, the more leaves share the larger | 0.1 |
| "constrained_sparsemax" | `budget` | the most a leaf may get, one number or one a leaf | 0.5 |
| "weighted_softmax" | `prior` | "cover", or a positive number a leaf; learned or not | 1 each |
| "top_k" | `k` | how many leaves share the weight | 4 |
| "gumbel", "gumbel_hard" | `sample_tau` | the nearer to one leaf the smaller | 1 |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ..errors import InputError
from .noise import gumbel_noise
from .straight_through import straight_through
from .weights import WEIGHTS, first_largest, softmax

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..machine import DecisionMachine
    from .heads import Heads

DOING = "softening a machine"
LOWEST_ALPHA = 1.01
"""A learned α stays above this: at 1 entmax is softmax, and its formula 0/0."""
TAKES: dict[str, dict[str, Any]] = {
    "entmax": {"alpha": 1.5},
    "positive_part": {"alpha": 1.0},
    "sparsegen": {"strength": 0.5},
    "sparsehourglass": {"strength": 1.0},
    "fusedmax": {"strength": 0.1},
    "oscarmax": {"strength": 0.1},
    "constrained_sparsemax": {"budget": 0.5},
    "weighted_softmax": {"prior": 1.0},
    "top_k": {"k": 4},
    "gumbel": {"sample_tau": 1.0},
    "gumbel_hard": {"sample_tau": 1.0},
}
"""The options that weights take, and what these are where nothing is said."""
RANDOM = ("gumbel", "gumbel_hard", "sampled")


@dataclass(frozen=True)
class Given:
    """The options of one choice on the weights axis, checked; the others are None."""

    alpha: float | None = None
    strength: float | None = None
    budget: Float[np.ndarray, "L"] | None = None
    prior: Float[np.ndarray, "L"] | None = None
    k: int | None = None
    sample_tau: float | None = None


def check_given(
    machine: DecisionMachine, weights: str, learn: tuple[str, ...], **said: Any
) -> Given:
    """What was said for the weights, or what they are at first; refuses what they do not take."""
    takes = TAKES.get(weights, {})
    for name, value in said.items():
        if value is not None and name not in takes:
            owners = [f"'{owner}'" for owner, options in TAKES.items() if name in options]
            raise InputError(
                DOING,
                f"{name}={value!r} for weights={weights!r}, which take no {name}",
                f"leave {name} out, or use weights={' or '.join(owners)}",
            )
    for part, owner in (("alpha", "entmax"), ("prior", "weighted_softmax")):
        if part in learn and weights != owner:
            raise InputError(
                DOING,
                f"learn includes {part!r} with weights={weights!r}",
                f"leave {part!r} out of learn, or use weights={owner!r}",
            )
    chosen = {name: usual if said[name] is None else said[name] for name, usual in takes.items()}
    checked: dict[str, Any] = {
        name: _CHECKS[name](machine, weights, value) for name, value in chosen.items()
    }
    given = Given(**checked)
    if "alpha" in learn and not LOWEST_ALPHA < (given.alpha or 0.0) < 2:
        raise InputError(
            DOING,
            f"a learned alpha that starts at {given.alpha}",
            f"start it between {LOWEST_ALPHA} and 2, at 1.5 for example",
        )
    return given


def _alpha(machine: DecisionMachine, weights: str, value: Any) -> float:
    low, high = {"entmax": (1, 2), "positive_part": (0, 1)}[weights]
    if not _is_number(value) or not low < value <= high:
        raise InputError(
            DOING,
            f"alpha={value!r} for weights={weights!r}",
            f"use a number above {low} and at most {high}",
        )
    return float(value)


def _strength(machine: DecisionMachine, weights: str, value: Any) -> float:
    is_good = _is_number(value) and math.isfinite(value)
    if weights == "sparsegen":
        says, is_good = "a number below 1", is_good and value < 1
    elif weights == "sparsehourglass":
        says, is_good = "a positive number", is_good and value > 0
    else:
        says, is_good = "a number of at least 0", is_good and value >= 0
    if not is_good:
        raise InputError(DOING, f"strength={value!r} for weights={weights!r}", f"use {says}")
    return float(value)


def _sample_tau(machine: DecisionMachine, weights: str, value: Any) -> float:
    if not _is_number(value) or not (value > 0 and math.isfinite(value)):
        raise InputError(
            DOING,
            f"sample_tau={value!r}",
            "use a positive number; the smaller, the nearer one leaf",
        )
    return float(value)


def _k(machine: DecisionMachine, weights: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(DOING, f"k={value!r}", "use a whole number of at least 1")
    return int(value)


def _budget(machine: DecisionMachine, weights: str, value: Any) -> Float[np.ndarray, "L"]:
    sizes = np.diff(machine.trees.leaf_start)
    if np.ndim(value) == 0:
        budget = _positive(value, machine, "budget", at_least=0.0)
        # One number for all: raised where a tree has too few leaves to spend all weight.
        return np.asarray(np.maximum(budget, np.repeat(1.0 / sizes, sizes)))
    budget = _positive(value, machine, "budget", at_least=0.0)
    total = np.add.reduceat(budget, machine.trees.leaf_start[:-1]) if len(sizes) else np.empty(0)
    if np.any(total < 1 - 1e-9):
        tree = int(np.argmax(total < 1 - 1e-9))
        raise InputError(
            DOING,
            f"budgets of the leaves of tree {tree} that sum to {total[tree]:.3g}",
            "give the leaves of each tree budgets that sum to at least 1",
        )
    return budget


def _prior(machine: DecisionMachine, weights: str, value: Any) -> Float[np.ndarray, "L"]:
    if not isinstance(value, str):
        return _positive(value, machine, "prior")
    if value != "cover":
        raise InputError(DOING, f"prior={value!r}", "use 'cover', or a positive number a leaf")
    if machine.cover is None:
        raise InputError(
            DOING,
            "prior='cover' of a machine that stores no cover",
            "count it first: machine.with_cover(rows).soften(...)",
        )
    cover = np.asarray(machine.cover.leaves, np.float64)
    of_leaf = machine.trees.of_leaf
    total = np.bincount(of_leaf, cover, machine.n_trees)
    share = cover / np.where(total > 0, total, 1.0)[of_leaf]
    # A leaf that no row reached counts as the one that fewest reached, so that it can still win.
    least = np.full(machine.n_trees, np.inf)
    np.minimum.at(least, of_leaf, np.where(share > 0, share, np.inf))
    least = np.where(np.isfinite(least), least, 1.0)
    return np.asarray(np.where(share > 0, share, least[of_leaf]))


def _positive(
    value: Any, machine: DecisionMachine, name: str, at_least: float | None = None
) -> Float[np.ndarray, "L"]:
    """One number for each leaf: above 0, or at least `at_least`."""
    try:
        found = np.asarray(
            value.detach().cpu() if isinstance(value, torch.Tensor) else value, np.float64
        )
    except (TypeError, ValueError):
        found = np.asarray(np.nan)
    is_good = np.isfinite(found) & (found > 0 if at_least is None else found >= at_least)
    if found.shape not in ((), (machine.n_leaves,)) or not np.all(is_good):
        raise InputError(
            DOING,
            f"{name}={value!r}"
            if found.shape == ()
            else f"a {name} of shape {found.shape}"
            if np.all(is_good)
            else f"a {name} of {found[~is_good].tolist()[0]}",
            f"give one positive number, or one for each of the {machine.n_leaves} leaves",
        )
    return np.array(np.broadcast_to(found, (machine.n_leaves,)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


_CHECKS = {
    "alpha": _alpha,
    "strength": _strength,
    "budget": _budget,
    "prior": _prior,
    "k": _k,
    "sample_tau": _sample_tau,
}


class Weighing(nn.Module):
    """Weights of every tree from its scores, by one choice on the axis.

    Attributes
    ----------
    log_prior
        "weighted_softmax": ln of every leaf's prior, a parameter.
    alpha_logit
        "entmax" with "alpha" in `learn`: α of every tree, as a parameter of any size. `alpha()`
        is α itself.
    draws
        "gumbel", "gumbel_hard", "sampled": how often noise was drawn. With the seed it makes the
        noise, and it is saved with the state: training that goes on draws what it would have drawn.
    """

    log_prior: Tensor
    budget: Tensor
    draws: Tensor

    def __init__(
        self,
        machine: DecisionMachine,
        weights: str,
        given: Given,
        learn: tuple[str, ...],
        seed: int,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        # Learned keys leave the soft tree's weights without a sum of 1: softmax restores it.
        self.name = "softmax" if weights == "exp" else weights
        self.given, self.seed = given, seed
        self.alpha_logit: nn.Parameter | None = None
        if given.prior is not None:
            start = torch.from_numpy(np.log(given.prior)).to(dtype)
            self.log_prior = nn.Parameter(start, requires_grad="prior" in learn)
        if given.budget is not None:
            budget = torch.from_numpy(given.budget).to(dtype)
            self.register_buffer("budget", budget, persistent=False)
        if "alpha" in learn and given.alpha is not None:
            share = (given.alpha - LOWEST_ALPHA) / (2 - LOWEST_ALPHA)
            logit = math.log(share) - math.log1p(-share)
            self.alpha_logit = nn.Parameter(torch.full((machine.n_trees,), logit, dtype=dtype))
        if self.name in RANDOM:
            self.register_buffer("draws", torch.zeros((), dtype=torch.int64))

    def alpha(self) -> Float[Tensor, "T"] | float | None:
        """α: of every tree where it is learned, else the number given."""
        if self.alpha_logit is None:
            return self.given.alpha
        return LOWEST_ALPHA + (2 - LOWEST_ALPHA) * self.alpha_logit.sigmoid()

    @property
    def is_drawing(self) -> bool:
        """Whether weights are random now: in training mode, where they have noise."""
        return self.training and self.name in RANDOM

    def next_draw(self) -> int:
        """The number of the noise for one call; each call has its own."""
        if not self.is_drawing or self.draws.is_meta:
            return 0
        with torch.no_grad():
            self.draws += 1
        return int(self.draws)

    def forward(
        self, p: Tensor, is_real: Tensor | None, block: int, heads: Heads, draw: int
    ) -> Float[Tensor, "trees width m"]:
        """The weights of a block of trees; `draw` numbers the noise."""
        given, weigh = self.given, WEIGHTS[self.name]
        if self.name in RANDOM:
            return self._random(p, is_real, block, draw)
        if given.prior is not None:
            return weigh(p, is_real, heads.leaves_of_block(self.log_prior, block))
        if given.budget is not None:
            budget = heads.leaves_of_block(self.budget, block).expand_as(p)
            return weigh(p, is_real, budget)
        if given.alpha is not None:
            alpha = self.alpha()
            if isinstance(alpha, torch.Tensor):
                alpha = heads.trees_of_block(alpha, block)
            return weigh(p, is_real, alpha)
        for option in (given.strength, given.k):
            if option is not None:
                return weigh(p, is_real, option)
        return weigh(p, is_real)

    def _random(self, p: Tensor, is_real: Tensor | None, block: int, draw: int) -> Tensor:
        if not self.training:
            return softmax(p, is_real) if self.name == "gumbel" else first_largest(p, is_real)
        noise = gumbel_noise(p, self.seed, draw, block)
        if self.name == "sampled":
            return first_largest((p + noise).detach(), is_real)
        assert self.given.sample_tau is not None
        soft = WEIGHTS["gumbel"](p, is_real, noise, self.given.sample_tau)
        if self.name == "gumbel":
            return soft
        return straight_through(first_largest((p + noise).detach(), is_real), soft)
