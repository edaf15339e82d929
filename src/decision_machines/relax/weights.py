"""The weights axis: from the scores of a tree's leaves to weights that sum to 1.

Each function takes (trees, width, m) scores of trees padded to one width, and `is_real`, which
tells leaves from padding (None: all are leaves). Padding gets 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from . import budgets, grouped, sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float
    from torch import Tensor

    Scores = Float[Tensor, "trees width m"]
    Real = Bool[Tensor, "trees width 1"] | None


def delta(p: Scores, is_real: Real) -> Scores:
    """1 where the similarity is 1, else 0.

    Paper: Eq. `delta`.
    """
    found = (p >= 1).to(p.dtype)
    if p.shape[1] == 1:
        found = torch.ones_like(p)  # a tree of one leaf asks no test: its leaf wins
    return found if is_real is None else found * is_real


def softmax(p: Scores, is_real: Real) -> Scores:
    """exp of the scores over their sum.

    Paper: Eq. `GT2`.
    """
    if is_real is not None:
        p = p.masked_fill(~is_real, -torch.inf)
    return p.softmax(1)


def sparsemax(p: Scores, is_real: Real) -> Scores:
    """The point of the simplex nearest to the scores: leaves 1 below the best get exactly 0.

    Paper: sparse attention, "for the sake of more interpretability"; cites `martins2016softmax`.
    """
    return _last(sparse.sparsemax(_last(_near_the_best(p, is_real, 1.0))))


def sigsoftmax(p: Scores, is_real: Real) -> Scores:
    """exp(p) σ(p) over its sum: what softmax gives to low scores, nearly squared.

    Paper: cites `Sigsoftmax1`.
    """
    return softmax(p + torch.nn.functional.logsigmoid(p), is_real)


def weighted_softmax(p: Scores, is_real: Real, log_prior: Scores) -> Scores:
    """π exp(p) over its sum: a leaf of twice the prior π gets twice the weight at equal scores.

    Paper: cites `zhang2018weighted`.
    """
    return softmax(p + log_prior, is_real)


def gumbel(p: Scores, is_real: Real, noise: Scores, tau: float) -> Scores:
    """softmax((p + noise) / τ): nearly a draw from softmax(p), with a gradient.

    Paper: cites `jang2016categorical`.
    """
    return softmax((p + noise) / tau, is_real)


def first_largest(p: Scores, is_real: Real) -> Scores:
    """1 for the largest score, the leftmost where several are, and 0 for the others."""
    if is_real is not None:
        p = p.masked_fill(~is_real, -torch.inf)
    return torch.zeros_like(p).scatter(1, p.argmax(1, keepdim=True), 1.0)


def top_k(p: Scores, is_real: Real, k: int) -> Scores:
    """softmax over the k largest scores, 0 for the others; see `best_first` for large trees.

    Paper: cites `gupta2021memoryefficient`.
    """
    if is_real is not None:
        p = p.masked_fill(~is_real, -torch.inf)
    best = p.detach().topk(min(k, p.shape[1]), dim=1).indices
    is_kept = torch.zeros_like(p).scatter(1, best, 1.0) > 0
    return p.masked_fill(~is_kept, -torch.inf).softmax(1)


def sparsegen(p: Scores, is_real: Real, strength: float) -> Scores:
    """sparsemax(p / (1 - λ)): sparser as λ rises to 1, denser as it falls below 0.

    Paper: cites `laha2018controllable`. It is argmin ‖w - p‖² - λ ‖w‖² over the simplex.
    """
    return sparsemax(p / (1 - strength), is_real)


def sparsehourglass(p: Scores, is_real: Real, strength: float) -> Scores:
    """sparsemax(p (1 + L q) / (abs(Σ p) + L q)): between scale and shift invariance.

    Paper: cites `laha2018controllable`. As q grows this is sparsemax; as it falls to 0, scores that
    are all twice as large get the same weights.
    """
    count = p.shape[1] if is_real is None else is_real.to(p.dtype).sum(1, keepdim=True)
    total = (p if is_real is None else p * is_real).sum(1, keepdim=True).abs()
    return sparsemax(p * ((1 + count * strength) / (total + count * strength)), is_real)


def fusedmax(p: Scores, is_real: Real, strength: float) -> Scores:
    """Sparse weights that jump seldom from left to right: neighbouring leaves share weight.

    Paper: cites `niculae2017regularized`. A soft pruning, because neighbours in this order are
    neighbours in the tree.
    """
    return _last(grouped.fusedmax(_last(p), strength, _real_last(p, is_real)))


def oscarmax(p: Scores, is_real: Real, strength: float) -> Scores:
    """Sparse weights in which leaves of nearly equal score share one weight, wherever they stand.

    Paper: cites `niculae2017regularized`.
    """
    return _last(grouped.oscarmax(_last(p), strength, _real_last(p, is_real)))


def constrained_sparsemax(p: Scores, is_real: Real, budget: Scores) -> Scores:
    """sparsemax in which no leaf gets more than its budget.

    Paper: cites `malaviya2018sparse`.
    """
    if is_real is not None:
        # Without budget, padding gets no weight; its score must only be a number.
        p, budget = torch.where(is_real, p, p.detach().amin(1, keepdim=True)), budget * is_real
    return _last(budgets.constrained_sparsemax(_last(p), _last(budget)))


def entmax15(p: Scores, is_real: Real) -> Scores:
    """1.5-entmax: between softmax and sparsemax; leaves 2 below the best get exactly 0."""
    return _last(sparse.entmax15(_last(_near_the_best(p, is_real, 2.0))))


def entmax(p: Scores, is_real: Real, alpha: float | Tensor) -> Scores:
    """α-entmax: leaves 1 / (α - 1) below the best get exactly 0.

    Paper: cites `correia2019adaptively`, whose α is learned for each head: a (trees, 1, 1) tensor.
    """
    near = _near_the_best(p, is_real, 1 / (alpha - 1))
    return _last(sparse.entmax(_last(near), alpha))


def _last(p: Tensor) -> Tensor:
    """Leaves and rows changed over, side by side in memory."""
    return p.transpose(1, 2).contiguous()


def _real_last(p: Scores, is_real: Real) -> Bool[Tensor, "trees m width"] | None:
    return None if is_real is None else is_real.transpose(1, 2).expand(-1, p.shape[2], -1)


def _near_the_best(p: Scores, is_real: Real, width: float | Tensor) -> Scores:
    """Scores held at twice the width of the support below the best.

    What lies lower has no weight and no gradient, and its square would overflow.
    """
    best = p.detach().amax(1, keepdim=True)
    low = -2 * torch.as_tensor(width, dtype=p.dtype, device=p.device).detach()
    p = torch.maximum(p - best, low)
    return p if is_real is None else torch.where(is_real, p, low)


def positive_part(p: Scores, is_real: Real, alpha: float) -> Scores:
    """(α p₊ + 1 - α) over its sum; equal weights where all of that is 0.

    Paper: the alternative to softmax after Eq. `GT2`. NOTE[PAPER]: at α = 1 and no positive score
    it is 0/0; a tree of one leaf is always so.
    """
    share = alpha * p.relu() + (1 - alpha)
    if is_real is not None:
        share = share * is_real
    is_empty = share.sum(1, keepdim=True) == 0
    even = torch.ones_like(share) if is_real is None else is_real.to(p.dtype).expand_as(share)
    share = torch.where(is_empty, even, share)
    return share / share.sum(1, keepdim=True)


WEIGHTS: dict[str, Callable[..., Tensor]] = {
    "delta": delta,
    "softmax": softmax,
    "sigsoftmax": sigsoftmax,
    "weighted_softmax": weighted_softmax,
    "gumbel": gumbel,
    "gumbel_hard": gumbel,
    "sampled": first_largest,
    "top_k": top_k,
    "sparsemax": sparsemax,
    "sparsegen": sparsegen,
    "sparsehourglass": sparsehourglass,
    "fusedmax": fusedmax,
    "oscarmax": oscarmax,
    "constrained_sparsemax": constrained_sparsemax,
    "entmax15": entmax15,
    "entmax": entmax,
    "positive_part": positive_part,
}
"""Weights made from a tree's scores. "argmax", "exp" and "kernel" never form them: see `module`."""
