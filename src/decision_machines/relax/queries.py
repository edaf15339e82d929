"""The query axis: what a test contributes to the leaves on its left and on its right.

Each query is one idea of what Eq. `result`'s h becomes when sgn is relaxed. It takes
q = slope · (S z - t) / τ and gives two terms, `left` for leaves where B = -1 and `right` for leaves
where B = +1; `paths` adds them up. A missing column contributes the machine's missing answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float
    from torch import Tensor

LARGEST = 1e30
"""Queries are held here, so that sums along a path stay finite in float32."""


def affine(q: Float[Tensor, "J m"]) -> tuple[Tensor, Tensor]:
    """q itself: B q is Eq. `GT2`'s score.

    Paper: Eq. `GT2`.
    """
    q = q.clamp(-LARGEST, LARGEST)
    return -q, q


def sign(q: Float[Tensor, "J m"]) -> tuple[Tensor, Tensor]:
    """h = sgn(q), -1 at 0: B h is the machine's own score, in whole numbers.

    Paper: Eq. `result`.
    """
    h = torch.where(q > 0, torch.ones_like(q), -torch.ones_like(q))
    return -h, h


def tanh(q: Float[Tensor, "J m"]) -> tuple[Tensor, Tensor]:
    """sgn made smooth."""
    h = q.tanh()
    return -h, h


def relu_pair(q: Float[Tensor, "J m"]) -> tuple[Tensor, Tensor]:
    """F · ReLU([q; -q]): a leaf loses relu(q) left of a test and relu(-q) right of it.

    Paper: Eq. `defK`, with W = [S; -S], b = [t; -t] and F = -[B<0 | B>0]. The exit leaf loses
    nothing; where several leaves lose nothing it is the leftmost of them, as leaves stand from
    left to right.
    """
    q = q.clamp(-LARGEST, LARGEST)
    return -q.relu(), -(-q).relu()


def log_sigmoid(q: Float[Tensor, "J m"]) -> tuple[Tensor, Tensor]:
    """ln of the nonzero entries of M: ln σ(-q) left of a test and ln σ(q) right of it.

    Paper: Eq. `defM`.
    """
    q = q.clamp(-LARGEST, LARGEST)
    return torch.nn.functional.logsigmoid(-q), torch.nn.functional.logsigmoid(q)


@dataclass(frozen=True)
class Query:
    """A query and how it behaves.

    Attributes
    ----------
    terms
        q to (left, right).
    is_bounded
        Whether scores stay bounded as τ → 0, so that weights must divide by τ themselves.
    is_missing_certain
        Whether a missing column answers as if it stood far beyond every other. In an affine query
        it would outweigh all other tests; there it stands at distance 1 from the threshold.
    """

    terms: Callable[[Tensor], tuple[Tensor, Tensor]]
    is_bounded: bool = False
    is_missing_certain: bool = True


QUERIES = {
    "affine": Query(affine, is_missing_certain=False),
    "sign": Query(sign, is_bounded=True),
    "tanh": Query(tanh, is_bounded=True),
    "relu": Query(relu_pair),
    "log_sigmoid": Query(log_sigmoid),
}
