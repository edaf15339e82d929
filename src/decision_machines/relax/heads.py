"""Trees as heads: the leaves of each tree side by side, so that each tree is normalised alone.

Trees of like size stand in one dense block, padded to its widest tree; sizes within a block differ
by less than a factor of two, so all blocks together hold fewer than twice the leaves, however
ragged the forest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jaxtyping import Float, Int
    from torch import Tensor

    from ..machine import DecisionMachine


class Heads(nn.Module):
    """Where the leaves of every tree stand among the scores, which come in level order."""

    tree_rank: Tensor
    position: Tensor

    def __init__(self, machine: DecisionMachine, leaf_rank: Tensor) -> None:
        super().__init__()
        sizes = np.diff(machine.trees.leaf_start)
        start = machine.trees.leaf_start[:-1]
        block_of = np.ceil(np.log2(np.maximum(sizes, 1))).astype(int)
        self.n_blocks, self.shapes, trees, position = 0, [], [], np.empty(machine.n_leaves, int)
        offset = 0
        for block in np.unique(block_of):
            which = np.flatnonzero(block_of == block)
            width = int(sizes[which].max())
            within = np.minimum(np.arange(width)[None], sizes[which][:, None] - 1)
            leaves = start[which][:, None] + within
            is_real = np.arange(width)[None] < sizes[which][:, None]
            position[leaves[is_real]] = offset + np.flatnonzero(is_real)
            offset += leaves.size
            self._buffer(f"index_{self.n_blocks}", leaf_rank.numpy()[leaves.reshape(-1)])
            self._buffer(f"leaves_{self.n_blocks}", leaves.reshape(-1))
            self._buffer(f"first_{self.n_blocks}", start[which])
            self._buffer(f"trees_{self.n_blocks}", which)
            self._buffer(f"real_{self.n_blocks}", is_real[:, :, None], bool)
            self.shapes.append((len(which), width, bool(is_real.all())))
            trees.append(which)
            self.n_blocks += 1
        self._buffer("tree_rank", np.argsort(np.concatenate([np.empty(0, int), *trees])))
        self._buffer("position", position)

    def _buffer(self, name: str, index: np.ndarray, dtype: type = np.int64) -> None:
        self.register_buffer(name, torch.from_numpy(index.astype(dtype)), persistent=False)

    def blocks(self, p: Float[Tensor, "L m"]) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Scores (trees, width, m) of each block, and which of them are leaves (None: all)."""
        for block, (n_trees, width, is_full) in enumerate(self.shapes):
            taken = p.index_select(0, getattr(self, f"index_{block}"))
            is_real = None if is_full else getattr(self, f"real_{block}")
            yield taken.reshape(n_trees, width, p.shape[1]), is_real

    def exit_leaves(self, p: Float[Tensor, "L m"]) -> Int[Tensor, "T m"]:
        """The leaf of the largest score in each tree, the leftmost where several are largest.

        Paper: Eq. `defK`, whose argmax "returns the smallest index".
        """
        if not self.n_blocks:
            return p.new_zeros((0, p.shape[1]), dtype=torch.int64)
        # Padding repeats the last leaf and the first maximum wins, so that no mask is needed.
        found = [
            scores.argmax(1) + getattr(self, f"first_{block}")[:, None]
            for block, (scores, _) in enumerate(self.blocks(p))
        ]
        return torch.cat(found).index_select(0, self.tree_rank)

    def normalise(
        self, p: Float[Tensor, "L m"], weigh: Callable[[Tensor, Tensor | None, int], Tensor]
    ) -> list[Float[Tensor, "l m"]]:
        """`weigh` applied to each tree's scores; a block for each size, padding included, as 0.

        It gets the scores of a block, which of them are leaves, and the number of the block.
        """
        if not self.n_blocks:
            return [p]
        return [
            weigh(scores, is_real, block).flatten(0, 1)
            for block, (scores, is_real) in enumerate(self.blocks(p))
        ]

    def leaves_of_block(
        self, part: Float[Tensor, "L"], block: int
    ) -> Float[Tensor, "trees width 1"]:
        """What every leaf has, as the scores of a block stand."""
        n_trees, width, _ = self.shapes[block]
        taken = part.index_select(0, getattr(self, f"leaves_{block}"))
        return taken.reshape(n_trees, width, 1)

    def trees_of_block(self, part: Float[Tensor, "T"], block: int) -> Float[Tensor, "trees 1 1"]:
        """What every tree has, as the scores of a block stand."""
        return part.index_select(0, getattr(self, f"trees_{block}"))[:, None, None]

    def by_leaf(self, weights: list[Tensor]) -> Float[Tensor, "L m"]:
        """Weights of the blocks, of which there is at least one, in the machine's order."""
        return torch.cat(weights).index_select(0, self.position)

    def of_leaves(self, values: Tensor) -> list[Tensor]:
        """Rows of `values`, one for each leaf, as the blocks stand."""
        if not self.n_blocks:
            return [values]
        return [values.index_select(0, getattr(self, f"leaves_{b}")) for b in range(self.n_blocks)]
