"""The keys axis: B as it stands, divided by each leaf's depth, or learned entry by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from .leaves import added

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..machine import DecisionMachine
    from .paths import Paths

KEYS = ("templates", "normalised")


class Keys(nn.Module):
    """Scores of all leaves from the terms of all tests, in level order.

    Parameters
    ----------
    kind
        "templates": B. "normalised": B over each leaf's depth, so that a full match scores 1
        at any depth (Paper: Eq. `comparision`); the sum is divided once, never entry by entry.
    learn
        Whether every nonzero entry of B gets a factor of its own, 1 at first. Then each path is
        summed by itself: O(leaves × depth) instead of O(leaves).
    """

    depth: Tensor
    leaf: Tensor
    test: Tensor
    is_right: Tensor
    factor: nn.Parameter | None

    def __init__(
        self, machine: DecisionMachine, paths: Paths, kind: str, learn: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.kind = kind
        depth = np.maximum(machine.structure.leaf_depth, 1)[paths.leaf_order.numpy()]
        self.register_buffer("depth", torch.from_numpy(depth)[:, None].to(dtype), persistent=False)
        self.factor = None
        if learn:
            B = machine.B
            self.factor = nn.Parameter(torch.ones(B.nnz, dtype=dtype))
            leaf = np.repeat(np.arange(machine.n_leaves), np.diff(B.indptr))
            for name, index in (
                ("leaf", paths.leaf_rank.numpy()[leaf]),
                ("test", paths.test_rank.numpy()[B.indices]),
            ):
                self.register_buffer(name, torch.from_numpy(index), persistent=False)
            is_right = torch.from_numpy(B.data > 0)[:, None]
            self.register_buffer("is_right", is_right, persistent=False)

    def scores(
        self, paths: Paths, left: Float[Tensor, "J m"], right: Float[Tensor, "J m"]
    ) -> Float[Tensor, "L m"]:
        """keys · query."""
        if self.factor is None:
            p = paths.sums(left, right)
        else:
            terms = torch.where(
                self.is_right, right.index_select(0, self.test), left.index_select(0, self.test)
            )
            p = left.new_zeros((paths.n_leaves, left.shape[1]))
            p = added(p, self.leaf, self.factor[:, None] * terms)
        return p / self.depth if self.kind == "normalised" else p
