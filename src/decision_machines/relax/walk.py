"""The hard answer by walking: every row down every tree at once, one step for each level.

The same exit leaves as Eq. `tree`, in O(depth) for each row and tree instead of O(leaves): what
`straight_through` answers with while it learns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from ..machine import DecisionMachine
    from .selection import Selection


class Walk(nn.Module):
    """`children` as one flat table: entry 2 j is left of test j, 2 j + 1 right; a leaf i is ~i."""

    below: Tensor
    root: Tensor

    def __init__(self, machine: DecisionMachine) -> None:
        super().__init__()
        self.depth = machine.depth
        trees = machine.trees
        is_stump = np.diff(trees.test_start) == 0
        root = np.where(is_stump, ~trees.leaf_start[:-1], trees.test_start[:-1])
        for name, index in (("below", machine.children.reshape(-1)), ("root", root[:, None])):
            self.register_buffer(name, torch.from_numpy(index.astype(np.int64)), persistent=False)

    def exit_leaves(
        self,
        selection: Selection,
        z: Float[Tensor, "m n"],
        t: Float[Tensor, "J"],
        missing: Float[Tensor, "J"],
    ) -> Int[Tensor, "T m"]:
        """The exit leaf of every tree and row; z ≤ t goes left, a missing S z as `missing` says."""
        m = z.shape[0]
        node = self.root.expand(-1, m)
        if selection.kind == "fixed":
            read, width, columns = z.reshape(-1), z.shape[1], selection.column
            start = torch.arange(m, device=z.device) * width
        else:
            selected, is_missing = selection(z, None)
            read = torch.where(is_missing, torch.nan, selected).reshape(-1)
            start = torch.arange(m, device=z.device)
            columns = torch.arange(len(t), device=z.device) * m
        for _ in range(self.depth):
            test = node.clamp(min=0)
            value = read[start + columns[test]]
            goes_right = (value > t[test]) | (value.isnan() & (missing[test] > 0))
            node = torch.where(node < 0, node, self.below[2 * test + goes_right.to(torch.int64)])
        return -1 - node  # ~node, which ONNX lacks
