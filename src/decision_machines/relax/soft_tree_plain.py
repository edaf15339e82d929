"""The soft tree in plain torch: leaf weights as products of gates along each path.

Paper: Eq. `defM`, Eq. `soft`. M holds σ(B_ij q_j) along the path of leaf i and 1 elsewhere, so
exp(ln(M) · 1) is the product of the gates on the path; products need no logarithm and no L × J.
These are torch operations alone: they run on any device, inside compiled and exported graphs, and
have derivatives of any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from .paths import Paths
    from .soft_structure import SoftStructure


def soft_tree_weights(q: Float[Tensor, "J m"], paths: Paths) -> Float[Tensor, "L m"]:
    """p = exp(ln(M) 1), the weight of every leaf; tests and leaves in level order.

    Paper: Eq. `soft`.
    """
    return torch.cat(list(paths.products((-q).sigmoid(), q.sigmoid())))


def soft_tree_sum_by_level(
    q: Float[Tensor, "J m"], paths: Paths, V: Float[Tensor, "L k"]
) -> Float[Tensor, "m k"]:
    """`soft_tree_sum` in plain torch, q tests first and in level order.

    Each level adds its leaves at once, so that the weights of all leaves never stand together.
    """
    V = V.index_select(0, paths.leaf_order).split(paths.leaf_blocks)
    weights = paths.products((-q).sigmoid(), q.sigmoid())
    parts = [p.t() @ v for p, v in zip(weights, V, strict=True)]
    found: Float[Tensor, "m k"] = sum(parts[1:], parts[0])
    return found


def soft_tree_sum_plain(
    structure: SoftStructure,
    z: Float[Tensor, "m n"],
    t: Float[Tensor, "J"],
    slope: Float[Tensor, "J"],
    V: Float[Tensor, "L w"],
    nudge: Float[Tensor, "J"] | None = None,
) -> Float[Tensor, "m k"]:
    """What the native kernel computes, and its gradients, with derivatives of any order.

    Gates of missing and of infinite columns, and of infinite slopes, are 0 or 1 and pass no
    gradient; see `native_soft`.
    """
    paths = structure.paths
    order = paths.test_order

    def taken(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.asarray(values, np.int64)).index_select(0, order)

    selected = z.t().index_select(0, taken(structure.selection))
    t, slope = (part.index_select(0, order)[:, None] for part in (t, slope))
    goes_right = (taken(structure.missing) > 0)[:, None]
    # Finite before they meet: inf - inf, and inf times a gate's slope of 0, would be NaN.
    bound = torch.finfo(z.dtype).max / 4
    distance = selected.clamp(-bound, bound) - t.clamp(-bound, bound)
    is_same_infinity = (selected == t) & t.isinf()
    distance = torch.where(is_same_infinity | selected.isnan(), 0.0, distance)
    if nudge is not None:
        distance = distance - nudge.index_select(0, order)[:, None]
    is_hard = slope.isinf()
    q = distance * torch.where(is_hard, 1.0, slope)

    def gate(q: Tensor, is_open: Tensor, is_missing_open: Tensor) -> Tensor:
        soft = torch.where(is_hard, is_open.to(q.dtype), q.sigmoid())
        return torch.where(selected.isnan(), is_missing_open.to(q.dtype), soft)

    left, right = gate(-q, distance <= 0, ~goes_right), gate(q, distance > 0, goes_right)
    values = _wide(structure, V).index_select(0, paths.leaf_order).split(paths.leaf_blocks)
    parts = [p.t() @ v for p, v in zip(paths.products(left, right), values, strict=True)]
    found: Float[Tensor, "m k"] = sum(parts[1:], parts[0])
    return found


def _wide(structure: SoftStructure, V: Float[Tensor, "L w"]) -> Float[Tensor, "L k"]:
    """A value for each output; where each tree feeds one, 0 in the others."""
    feeds = np.asarray(structure.feeds, np.int64)
    if not len(feeds) or feeds[0] < 0:
        return V
    of_leaf = torch.from_numpy(np.repeat(feeds, np.diff(structure.test_start) + 1))
    return V.new_zeros((len(V), structure.n_outputs)).scatter(1, of_leaf[:, None], V)
