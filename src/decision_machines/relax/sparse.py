"""Sparse alternatives to softmax from the `entmax` package, in a shape that torch can compile.

The package's autograd functions are class methods, which `torch.compile` and the ONNX exporter
cannot follow. Here its forward passes are called as plain functions, and the gradient is that of
α-entmax at its solution w: with g = w^(2 - α) on the support, the Jacobian is
diag(g) - g gᵀ / Σ g.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

DIM = -1
"""The package sorts along this dimension, several times faster where it lies side by side."""


class _NoContext:
    """Stands in for what an autograd function would keep for its backward pass."""

    def save_for_backward(self, *tensors: Tensor) -> None:
        pass


def sparsemax(p: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """The Euclidean projection onto the simplex, along the last dimension."""
    from entmax.activations import SparsemaxFunction

    w = SparsemaxFunction.forward(_NoContext(), p.detach(), DIM, None)
    return _with_gradient(w, p, 2.0)


def entmax15(p: Float[Tensor, "... n"]) -> Float[Tensor, "... n"]:
    """1.5-entmax along the last dimension."""
    from entmax.activations import Entmax15Function

    w = Entmax15Function.forward(_NoContext(), p.detach(), DIM, None)
    return _with_gradient(w, p, 1.5)


def entmax(p: Float[Tensor, "... n"], alpha: float) -> Float[Tensor, "... n"]:
    """α-entmax by bisection along the last dimension."""
    from entmax.root_finding import EntmaxBisectFunction

    w = EntmaxBisectFunction.forward(_NoContext(), p.detach(), alpha, DIM)
    return _with_gradient(w, p, alpha)


def _with_gradient(w: Tensor, p: Tensor, alpha: float) -> Tensor:
    """w, to the last bit, with the gradient of α-entmax: p - p is exactly 0."""
    g = torch.where(w > 0, w.clamp(min=torch.finfo(w.dtype).tiny) ** (2 - alpha), 0.0)
    step = p - p.detach()
    return w + g * (step - (g * step).sum(DIM, keepdim=True) / g.sum(DIM, keepdim=True))
