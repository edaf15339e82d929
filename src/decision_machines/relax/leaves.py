"""The leaves' values, constant or linear in the features, and their sum into margins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..machine import ALL_OUTPUTS

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from ..machine import DecisionMachine

WIDEST = 16
"""Narrow values of up to so many outputs are spread over them, for one matrix product."""


class Leaves(nn.Module):
    """V, as constants or linear functions, and the outputs that each tree feeds.

    `head` is 1 for a tree that counts and 0 for one that is masked.
    """

    feeds: Tensor
    leaf_feeds: Tensor
    of_leaf: Tensor
    head: Tensor
    term_feature: Tensor
    term_leaf: Tensor

    def __init__(self, machine: DecisionMachine, dtype: torch.dtype, learn: bool) -> None:
        super().__init__()
        self.n_outputs, self.is_narrow = machine.n_outputs, machine.is_narrow

        def parameter(array: np.ndarray) -> nn.Parameter:
            return nn.Parameter(torch.from_numpy(np.array(array)).to(dtype), requires_grad=learn)

        self.V = parameter(machine.V)
        self.is_linear = machine.linear is not None
        feeds = np.where(machine.trees.feeds == ALL_OUTPUTS, 0, machine.trees.feeds)
        of_leaf = machine.trees.of_leaf.astype(np.int64)
        self._buffer("feeds", feeds.astype(np.int64))
        self._buffer("leaf_feeds", feeds[of_leaf].astype(np.int64))
        self._buffer("of_leaf", of_leaf)
        self.register_buffer("head", torch.ones(machine.n_trees, dtype=dtype))
        if machine.linear is not None:
            linear = machine.linear
            self.intercept = parameter(linear.intercept)
            self.coefficient = parameter(linear.coefficient)
            self._buffer("term_feature", linear.feature.astype(np.int64))
            leaf = np.repeat(np.arange(machine.n_leaves), np.diff(linear.start))
            self._buffer("term_leaf", leaf.astype(np.int64))

    def _buffer(self, name: str, array: np.ndarray) -> None:
        self.register_buffer(name, torch.from_numpy(np.array(array)), persistent=False)

    def values(self, x: Float[Tensor, "m n_features"]) -> Tensor:
        """(L, c) constants, or (L, c, m) values of linear leaves at x."""
        if not self.is_linear:
            return self.V
        x = x.to(self.V.dtype).t()
        is_nan = x.isnan()
        terms = torch.where(is_nan, torch.zeros_like(x), x).index_select(0, self.term_feature)
        terms = self.coefficient[:, :, None] * terms[:, None, :]
        total = self.intercept[:, :, None].expand(-1, -1, x.shape[1])
        total = added(total, self.term_leaf, terms)
        lost = added(
            x.new_zeros((len(self.V), x.shape[1])),
            self.term_leaf,
            is_nan.to(x.dtype).index_select(0, self.term_feature),
        )
        return torch.where((lost > 0)[:, None, :], self.V[:, :, None], total)

    def wide(self, values: Tensor) -> Tensor:
        """Constants (L, k) for every output, 0 in those that a leaf's tree does not feed."""
        if not self.is_narrow or self.n_outputs == 1:
            return values
        spread = values.new_zeros((len(values), self.n_outputs))
        return spread.scatter(1, self.leaf_feeds[:, None], values)

    def masked(self, values: Float[Tensor, "L c"]) -> Float[Tensor, "L k"]:
        """`wide`, with 0 in the leaves of masked trees."""
        return self.wide(values) * self.heads_of_leaves()

    def heads_of_leaves(self) -> Float[Tensor, "L 1"]:
        """1 for the leaves of trees that count, 0 for those of masked trees."""
        return self.head.index_select(0, self.of_leaf)[:, None]

    @property
    def is_product(self) -> bool:
        """Whether Σ weight · value is one matrix product."""
        return not self.is_linear and (not self.is_narrow or self.n_outputs <= WIDEST)

    def weigh(self, weights: Float[Tensor, "L m"], values: Tensor) -> Float[Tensor, "m k"]:
        """Σ weight · value of all leaves, masked trees left out."""
        if self.is_product:
            return weights.t() @ self.masked(values)
        mask = self.heads_of_leaves()
        values = values if self.is_linear else values[:, :, None]
        parts = values * (weights * mask)[:, None, :]
        if self.is_narrow:
            zero = parts.new_zeros((self.n_outputs, parts.shape[2]))
            return added(zero, self.leaf_feeds, parts[:, 0]).t()
        return parts.sum(0).t()

    def add_trees(self, by_tree: Float[Tensor, "T c m"]) -> Float[Tensor, "m k"]:
        """The sum of the trees' values, each into the outputs that it feeds."""
        if self.is_narrow:
            zero = by_tree.new_zeros((self.n_outputs, by_tree.shape[2]))
            return added(zero, self.feeds, by_tree[:, 0]).t()
        return by_tree.sum(0).t()

    def pick(
        self, exit_leaves: Int[Tensor, "T m"], values: Tensor, start: Float[Tensor, "k"]
    ) -> Float[Tensor, "m k"]:
        """start + the values of the exit leaves, tree after tree in start's own dtype."""
        n_trees, m = exit_leaves.shape
        total = start[:, None].expand(-1, m)
        if self.is_linear:
            at = exit_leaves[:, None, :].expand(-1, values.shape[1], -1)
            rows = torch.arange(m, device=values.device).expand_as(at)
            outputs = torch.arange(values.shape[1], device=values.device)[None, :, None]
            picked = values[at, outputs, rows]
        else:
            picked = values.index_select(0, exit_leaves.reshape(-1))
            picked = picked.reshape(n_trees, m, values.shape[1]).transpose(1, 2)
        picked = (picked * self.head[:, None, None]).to(start.dtype)
        if self.is_narrow:
            return added(total, self.feeds, picked[:, 0]).t()
        size = total.shape[0] * m
        flat = added(total.reshape(1, size), self.feeds, picked.reshape(n_trees, size))
        return flat.reshape(total.shape).t()


def is_traced() -> bool:
    """Whether torch records a graph by tracing."""
    # torch neither exports nor annotates it.
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def added(total: Tensor, index: Int[Tensor, "n"], rows: Tensor) -> Tensor:
    """total with rows[i] added at index[i], in this order (on a CPU)."""
    if torch.onnx.is_in_onnx_export() and is_traced():
        # That exporter's index_add forgets all but one of the rows of an index.
        where = torch.nn.functional.one_hot(index, total.shape[0]).to(rows.dtype).t()
        return total + (where @ rows.reshape(rows.shape[0], -1)).reshape(total.shape)
    return total.index_add(0, index, rows)
