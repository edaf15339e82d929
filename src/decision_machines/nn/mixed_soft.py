"""The soft tree of tests that each weigh a few columns, chosen by 1.5-entmax of logits.

On a CPU the weights that are not 0 go to the soft tree's kernel as they are: a test that weighs
four of a hundred columns costs four products for each row, forwards and backwards, and nothing of
the size of tests times rows is written. Elsewhere torch multiplies whole matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import _native
from ..errors import InputError
from ..relax.native_soft import soft_tree_sum_native
from ..relax.soft_tree import has_kernel
from ..relax.soft_tree_plain import soft_tree_sum_by_level
from ..relax.sparse import entmax15
from ..run.engines.processor import target

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..relax.paths import Paths

MOST_COLUMNS = 512
"""Columns of a tile of rows that stay in the second-level cache."""
MOST_WEIGHTS = 12
"""Weights of a test, on average, up to which the kernel is faster than whole products."""
BITS = {torch.float32: "32", torch.float64: "64"}


def soft_tree_sum_mixed(
    paths: Paths,
    z: Float[Tensor, "m n"],
    logits: Float[Tensor, "J n"],
    t: Float[Tensor, "J"],
    slope: Float[Tensor, "J"],
    V: Float[Tensor, "L k"],
) -> Float[Tensor, "m k"]:
    """The soft trees' sum of values over all leaves, of tests σ(slope (entmax(logits) z - t))."""
    if has_kernel(z, V) and z.dtype == logits.dtype and z.shape[1] <= MOST_COLUMNS:
        bits = BITS[z.dtype]
        mixes = getattr(_native, f"entmax15_{bits}")(logits.detach().contiguous().numpy())
        if len(mixes[1]) <= MOST_WEIGHTS * len(logits):
            # torch does not annotate `apply`.
            found: Tensor = MixedSoftTree.apply(  # type: ignore[no-untyped-call]
                z, logits, t, slope, V, paths.mixed_structure(V.shape[1], z.shape[1]), mixes
            )
            return found
    g = (entmax15(logits) @ z.t()).t()
    if has_kernel(g, V):
        return soft_tree_sum_native(paths.structure(V.shape[1]), g, t, slope, V)
    q = ((g - t) * slope).t().index_select(0, paths.test_order)
    return soft_tree_sum_by_level(q, paths, V)


class MixedSoftTree(torch.autograd.Function):
    """The kernel's forward and backward, of the first order."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        logits: Tensor,
        t: Tensor,
        slope: Tensor,
        V: Tensor,
        structure: Any,
        mixes: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> Tensor:
        ctx.save_for_backward(z, logits, t, slope, V)
        ctx.structure, ctx.mixes = structure, mixes
        out = z.new_empty((len(z), V.shape[1]))
        _run(ctx, "forward", (z, t, slope, V), (out,), (mixes,))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
        z, logits, t, slope, V = ctx.saved_tensors
        dt, dslope, dV = (torch.empty_like(part) for part in (t, slope, V))
        dz = torch.zeros_like(z) if ctx.needs_input_grad[0] else None
        start, column, weight = ctx.mixes
        dmix = np.empty_like(weight)
        others = (G.contiguous(), dt, dslope, dV, dz)
        _run(ctx, "backward", (z, t, slope, V), others, (ctx.mixes, dmix))
        dlogits = torch.empty(logits.shape, dtype=logits.dtype)
        gradient = getattr(_native, f"entmax15_gradient_{BITS[z.dtype]}")
        gradient(start, column, weight, dmix, dlogits.numpy())
        return dz, dlogits, dt, dslope, dV, None, None


def _run(ctx: Any, name: str, inputs: Any, others: Any, last: tuple[Any, ...]) -> None:
    z, t, slope, V = (part.detach() for part in inputs)
    method = getattr(ctx.structure.plan, name + BITS[z.dtype])
    small = [part.contiguous().numpy() for part in (t, torch.zeros_like(t), slope, V)]
    results = [None if part is None else part.numpy() for part in others]
    try:
        method(target(), z.numpy(), *small, 0.0, torch.get_num_threads(), *results, *last)
    except ValueError as error:
        raise InputError(
            "running a tree layer", str(error), "check that training has not diverged"
        ) from None
