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


def entmax(p: Float[Tensor, "... n"], alpha: float | Tensor) -> Float[Tensor, "... n"]:
    """α-entmax by bisection along the last dimension, with a gradient in α where it is a tensor."""
    from entmax.root_finding import EntmaxBisectFunction

    fixed = alpha.detach() if isinstance(alpha, torch.Tensor) else alpha
    w = EntmaxBisectFunction.forward(_NoContext(), p.detach(), fixed, DIM)
    w = w.detach()
    found = _with_gradient(w, p, fixed)
    return found + _alpha_step(w, alpha) if isinstance(alpha, torch.Tensor) else found


def _with_gradient(w: Tensor, p: Tensor, alpha: float | Tensor) -> Tensor:
    """w, to the last bit, with the gradient of α-entmax: p - p is exactly 0."""
    g = _curvature(w, alpha)
    step = p - p.detach()
    return w + g * (step - (g * step).sum(DIM, keepdim=True) / g.sum(DIM, keepdim=True))


def _curvature(w: Tensor, alpha: float | Tensor) -> Tensor:
    """g = w^(2 - α) on the support, 0 elsewhere."""
    return torch.where(w > 0, w.clamp(min=torch.finfo(w.dtype).tiny) ** (2 - alpha), 0.0)


def _alpha_step(w: Tensor, alpha: Tensor) -> Tensor:
    """0, with the gradient of w in α.

    Differentiate w^(α-1) = (α - 1) p - θ where Σ w stays 1: with s = g / Σ g and e = w ln w,
    dw/dα = (w - s) / (α - 1)² - (e - s Σ e) / (α - 1).
    """
    fixed, g = alpha.detach(), _curvature(w, alpha.detach())
    share = g / g.sum(DIM, keepdim=True)
    e = torch.special.xlogy(w, w)
    slope = (w - share) / (fixed - 1) ** 2 - (e - share * e.sum(DIM, keepdim=True)) / (fixed - 1)
    step: Tensor = slope * (alpha - fixed)
    return step
