"""The weights axis: from the scores of a tree's leaves to weights that sum to 1.

Each function takes (trees, width, m) scores of trees padded to one width, and `is_real`, which
tells leaves from padding (None: all are leaves). Padding gets 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from . import sparse

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

    Paper: sparse attention, "for the sake of more interpretability".
    """
    return _last(sparse.sparsemax(_last(_near_the_best(p, is_real, 1.0))))


def entmax15(p: Scores, is_real: Real) -> Scores:
    """1.5-entmax: between softmax and sparsemax; leaves 2 below the best get exactly 0."""
    return _last(sparse.entmax15(_last(_near_the_best(p, is_real, 2.0))))


def entmax(p: Scores, is_real: Real, alpha: float) -> Scores:
    """α-entmax: leaves 1 / (α - 1) below the best get exactly 0."""
    near = _near_the_best(p, is_real, 1 / (alpha - 1))
    return _last(sparse.entmax(_last(near), alpha))


def _last(p: Tensor) -> Tensor:
    """Leaves and rows changed over, side by side in memory."""
    return p.transpose(1, 2).contiguous()


def _near_the_best(p: Scores, is_real: Real, width: float) -> Scores:
    """Scores held at twice the width of the support below the best.

    What lies lower has no weight and no gradient, and its square would overflow.
    """
    best = p.detach().amax(1, keepdim=True)
    p = torch.maximum(p - best, p.new_full((), -2 * width))
    return p if is_real is None else p.masked_fill(~is_real, -2 * width)


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
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "entmax": entmax,
    "positive_part": positive_part,
}
"""Weights made from a tree's scores. "argmax", "exp" and "kernel" never form them: see `module`."""
