"""Leaves in closed form, for the tests as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..errors import InputError
from .sizes import check_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor

    from .tree_layer import TreeLayer

DOING = "updating leaves"
LEAST = 1e-12
"""Added to shares under the logarithm: a leaf may have seen none of a class."""


@torch.no_grad()
def class_leaves(layer: TreeLayer, batches: Sequence[tuple[Tensor, Tensor]], steps: int) -> None:
    """π ← Σ p_leaf π_y / P(y | x), for each tree by itself, until `steps` are done.

    A leaf that no row reaches keeps its distribution.
    """
    pairs = [_weights(layer, x, y) for x, y in batches]
    if not sum(len(y) for _, y in pairs):
        raise InputError(DOING, "no rows", "give at least one batch of rows and their classes")
    T, L, k = layer.trees, 2**layer.depth, layer.out_features
    pairs = [(p, check_classes(DOING, y, len(p), k)) for p, y in pairs]
    share = layer.V.double().softmax(-1).reshape(T, L, k)
    for _ in range(steps):
        total = torch.zeros_like(share)
        for p, y in pairs:
            joint = p.double() * share[:, :, y].permute(2, 0, 1)  # (m, T, L)
            joint /= joint.sum(-1, keepdim=True).clamp(min=LEAST)
            total.permute(2, 0, 1).index_add_(0, y, joint)
        mass = total.sum(-1, keepdim=True)
        share = torch.where(mass > LEAST, total / mass.clamp(min=LEAST), share)
    layer.V.copy_((share + LEAST).log().reshape(T * L, k))


@torch.no_grad()
def value_leaves(layer: TreeLayer, batches: Iterable[tuple[Tensor, Tensor]], ridge: float) -> None:
    """Least squares of the targets on the weights of all leaves."""
    L = len(layer.V)
    square = torch.zeros(L, L, dtype=torch.float64, device=layer.V.device)
    product = torch.zeros(L, layer.out_features, dtype=torch.float64, device=layer.V.device)
    n = 0
    for x, y in batches:
        p, y = _weights(layer, x, y)
        target = y.double().reshape(len(y), -1)
        if target.shape != (len(p), layer.out_features):
            raise InputError(
                DOING,
                f"targets of shape {tuple(y.shape)} for {len(p)} rows",
                f"give them the shape ({len(p)}, {layer.out_features})",
            )
        flat = p.double().reshape(len(p), L)
        square += flat.t() @ flat
        product += flat.t() @ target
        n += len(flat)
    if not n:
        raise InputError(DOING, "no rows", "give at least one batch of rows and their targets")
    square.diagonal().add_(ridge * square.diagonal().mean())
    # Towards the values that were there, which stay where no row comes.
    was = layer.V.double()
    product += ridge * square.diagonal().mean() * was
    layer.V.copy_(torch.linalg.solve(square, product))


def _weights(layer: TreeLayer, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The weights of a batch, with the scale that was seen, whatever mode the layer is in."""
    was = layer.training
    layer.eval()
    try:
        return layer.weights(x.reshape(-1, x.shape[-1])), y
    finally:
        layer.train(was)
