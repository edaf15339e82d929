"""The k best leaves of every tree, found best-first down the tree: never all leaves.

Paper: cites `gupta2021memoryefficient`. Where every test only takes from a leaf's score (the
queries "relu" and "log_sigmoid"), the sum at a test bounds all leaves below it. So the search opens
the best of what it has met; the first k leaves that come up are the k best. A tree of the ReLU form
opens at most k · depth tests, and memory grows with what is opened. The scores of the leaves found
are then summed once more, with gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int
    from torch import Tensor

    from ..machine import DecisionMachine

    Terms = Callable[[Tensor], tuple[Tensor, Tensor]]
    """(T, m, ...) tests to their terms left and right, for the rows of the second dimension."""


class BestFirst(nn.Module):
    """The trees as a search goes down and back up through them.

    Paper: cites `gupta2021memoryefficient`.

    `below` and `root` are as in `Walk`; `above` is 2 j or 2 j + 1 where a node is left or right
    below test j, and -1 at a root: of the tests first, then of the leaves.
    """

    below: Tensor
    root: Tensor
    above: Tensor
    size: Tensor

    def __init__(self, machine: DecisionMachine) -> None:
        super().__init__()
        trees, n_tests = machine.trees, machine.n_tests
        is_stump = np.diff(trees.test_start) == 0
        root = np.where(is_stump, ~trees.leaf_start[:-1], trees.test_start[:-1])
        below = machine.children.reshape(-1).astype(np.int64)
        above = np.full(n_tests + machine.n_leaves, -1, np.int64)
        above[np.where(below < 0, n_tests + ~below, below)] = np.arange(len(below))
        self.n_tests, self.depth = n_tests, machine.depth
        for name, index in (
            ("below", below),
            ("root", root[:, None]),
            ("above", above),
            ("size", np.diff(trees.leaf_start)[:, None]),
        ):
            self.register_buffer(name, torch.from_numpy(index.astype(np.int64)), persistent=False)

    @torch.no_grad()
    def leaves(self, k: int, m: int, terms: Terms, dtype: torch.dtype) -> Int[Tensor, "T m k"]:
        """The k best leaves of every tree and row, best first; -1 where a tree has fewer."""
        n_trees = len(self.root)
        wanted = self.size.clamp(max=k).expand(-1, m)
        node = self.root[:, :, None].expand(-1, m, 1)
        score = torch.zeros((n_trees, m, 1), dtype=dtype, device=node.device)
        found = torch.full((n_trees, m, k), -1, dtype=torch.int64, device=node.device)
        n_found = torch.zeros_like(wanted)
        while bool((n_found < wanted).any()):
            best, at = score.max(-1, keepdim=True)
            here = node.gather(-1, at)
            is_leaf = (here < 0) & (n_found < wanted)[..., None]
            place = n_found.clamp(max=k - 1)[..., None]
            found.scatter_(-1, place, torch.where(is_leaf, -1 - here, found.gather(-1, place)))
            n_found = n_found + is_leaf[..., 0].to(torch.int64)
            is_open = (here >= 0) & (n_found < wanted)[..., None]
            test = here.clamp(min=0)
            left, right = terms(test) if self.n_tests else (best, best)
            node = node.scatter(-1, at, torch.where(is_open, self._child(test, 0), here))
            # A leaf that was found is closed; so is all that a finished search still holds.
            score = score.scatter(-1, at, torch.where(is_open, best + left, -torch.inf))
            if bool(is_open.any()):
                node = torch.cat([node, self._child(test, 1)], -1)
                score = torch.cat([score, torch.where(is_open, best + right, -torch.inf)], -1)
        return found

    def _child(self, test: Tensor, side: int) -> Tensor:
        return self.below[2 * test + side] if self.n_tests else test

    def scores(self, leaves: Int[Tensor, "T m k"], terms: Terms) -> Float[Tensor, "T m k"]:
        """Sums along the paths of these leaves, with gradients; -inf where there is none."""
        is_leaf = leaves >= 0
        branch = self.above[self.n_tests + leaves.clamp(min=0)]
        total = None
        for _ in range(self.depth):
            test = (branch // 2).clamp(min=0)
            left, right = terms(test)
            term = torch.where(branch % 2 == 1, right, left)
            term = torch.where(branch >= 0, term, torch.zeros_like(term))
            total = term if total is None else total + term
            branch = torch.where(branch >= 0, self.above[test], -1)
        if total is None:
            total = torch.zeros(leaves.shape, device=leaves.device)
        return total.masked_fill(~is_leaf, -torch.inf)
