"""Linear attention: the sum over leaves is taken before the query is known.

Paper: the linear transformers after Eq. `MultiHead`. A kernel φ(B_i) · φ(q) instead of
exp(B_i · q) lets Σ_i φ(B_i) v_i be summed once for all rows. For maps that act entry by entry B has
three values only, so that sum needs the total of the values left and right of each test, nothing
more: O(leaves) once, O(tests) for each row, and the leaf weights are never formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from .leaves import added

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float
    from torch import Tensor

    from ..machine import DecisionMachine
    from .paths import Paths

EPSILON = 1e-6
"""What every leaf's weight has in common, so that no row and no tree divides by 0."""

FEATURE_MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": lambda x: torch.nn.functional.elu(x) + 1,
    "relu": torch.relu,
    "exp": lambda x: x.clamp(max=60.0).exp(),
}
"""Maps that act entry by entry, all of them at least 0."""


class LinearAttention(nn.Module):
    """Σ_i φ(B_i) · φ(q) v_i / Σ_i φ(B_i) · φ(q) in each tree.

    Paper: the linear transformers; cites `tsai-etal-2019-transformer`, `kathRNN2020`.

    Parameters
    ----------
    feature_map
        "elu", "relu" or "exp", entry by entry; or "random": positive random features, whose
        kernel comes near exp(B_i · q), and the form near `softmax`, as `n_random` grows.
    """

    low: Tensor
    middle: Tensor
    high: Tensor
    of_test: Tensor
    of_leaf: Tensor
    start: Tensor
    depth: Tensor
    omega: Tensor

    def __init__(
        self,
        machine: DecisionMachine,
        paths: Paths,
        feature_map: str,
        n_random: int,
        dtype: torch.dtype,
        seed: int,
    ) -> None:
        super().__init__()
        self.feature_map, self.n_trees = feature_map, machine.n_trees
        structure, trees = machine.structure, machine.trees
        order = paths.test_order.numpy()
        low = structure.first_leaf
        left = machine.children[:, 0].astype(np.int64)
        n_left = np.where(left < 0, 1, structure.n_leaves[np.maximum(left, 0)])
        for name, index in (
            ("low", low[order]),
            ("middle", (low + n_left)[order]),
            ("high", (low + structure.n_leaves)[order]),
            ("of_test", trees.of_test[order]),
            ("of_leaf", trees.of_leaf[paths.leaf_order.numpy()]),
            ("start", trees.leaf_start),
        ):
            self.register_buffer(name, torch.from_numpy(index.astype(np.int64)), persistent=False)
        depth = torch.from_numpy(structure.leaf_depth[paths.leaf_order.numpy()].astype(np.float64))
        self.register_buffer("depth", depth[:, None].to(dtype), persistent=False)
        if feature_map == "random":
            generator = torch.Generator().manual_seed(seed)
            omega = torch.randn(machine.n_tests, n_random, generator=generator, dtype=dtype)
            self.register_buffer("omega", omega)

    def forward(
        self, q: Float[Tensor, "J m"], V: Float[Tensor, "L c"], paths: Paths
    ) -> Float[Tensor, "T c m"]:
        """Every tree's value; q in level order, V in the machine's."""
        if self.feature_map == "random":
            return self._random(q, V, paths)
        features = FEATURE_MAPS[self.feature_map](q)
        values, counts = self._summed(V), self._summed(torch.ones_like(V[:, :1]))
        top = self._by_tree(features[:, None, :] * values[:, :, None]) + EPSILON * self._total(V)
        below = self._by_tree(features * counts)[:, None, :] + EPSILON * self._total(
            torch.ones_like(V[:, :1])
        )
        return top / below

    def _summed(self, V: Float[Tensor, "L c"]) -> Float[Tensor, "J c"]:
        """Σ_i φ(B_ij) v_i over the leaves of test j's tree."""
        phi = FEATURE_MAPS[self.feature_map]
        minus, zero, plus = phi(V.new_tensor([-1.0, 0.0, 1.0])).double().unbind()
        # Differences of running sums: in float64, so that a forest's total does not drown a leaf.
        ahead = torch.cat([V.new_zeros((1, V.shape[1])), V]).double().cumsum(0)
        at_low, at_middle, at_high = (
            ahead.index_select(0, i) for i in (self.low, self.middle, self.high)
        )
        total = ahead.index_select(0, self.start[1:]) - ahead.index_select(0, self.start[:-1])
        summed = (
            zero * total.index_select(0, self.of_test)
            + (minus - zero) * (at_middle - at_low)
            + (plus - zero) * (at_high - at_middle)
        )
        found: Float[Tensor, "J c"] = summed.to(V.dtype)
        return found

    def _total(self, V: Float[Tensor, "L c"]) -> Float[Tensor, "T c 1"]:
        ahead = torch.cat([V.new_zeros((1, V.shape[1])), V]).double().cumsum(0)
        total = ahead.index_select(0, self.start[1:]) - ahead.index_select(0, self.start[:-1])
        return total.to(V.dtype)[:, :, None]

    def _by_tree(self, rows: Tensor) -> Tensor:
        return added(rows.new_zeros((self.n_trees, *rows.shape[1:])), self.of_test, rows)

    def _random(self, q: Tensor, V: Tensor, paths: Paths) -> Tensor:
        omega = self.omega.index_select(0, paths.test_order)
        # A factor common to a tree's leaves cancels: the query's norm, and its largest exponent.
        exponent = self._by_tree(omega[:, :, None] * q[:, None, :])
        features = (exponent - exponent.detach().amax(1, keepdim=True)).exp()
        keys = (paths.sums(-omega, omega) - self.depth / 2).exp()
        V = V.index_select(0, paths.leaf_order)

        def summed(rows: Tensor) -> Tensor:
            zero = rows.new_zeros((self.n_trees, *rows.shape[1:]))
            return added(zero, self.of_leaf, rows)

        values = summed(keys[:, :, None] * V[:, None, :]).transpose(1, 2)
        counts = summed(keys)[:, None, :]
        even = summed(torch.ones_like(V[:, :1]))[:, :, None]
        top = values @ features + EPSILON * summed(V)[:, :, None]
        return top / (counts @ features + EPSILON * even)

    def weights(self, q: Float[Tensor, "J m"], paths: Paths, n_leaves: int) -> Float[Tensor, "L m"]:
        """The weights that `forward` never forms, to look at: its values where V is the identity.

        One value for each leaf at a time, so for machines whose L × L fits in memory.
        """
        by_tree = self.forward(q, torch.eye(n_leaves, dtype=q.dtype, device=q.device), paths)
        of_leaf = self.of_leaf.index_select(0, paths.leaf_rank)
        return by_tree[of_leaf, torch.arange(n_leaves, device=q.device)]
