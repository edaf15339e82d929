"""The soft tree of tests that each weigh a few columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..relax.native_soft import soft_tree_sum_native
from ..relax.soft_tree import has_kernel
from ..relax.soft_tree_plain import soft_tree_sum_by_level

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..relax.paths import Paths


def soft_tree_sum_mixed(
    paths: Paths,
    z: Float[Tensor, "m n"],
    S: Float[Tensor, "J n"],
    t: Float[Tensor, "J"],
    slope: Float[Tensor, "J"],
    V: Float[Tensor, "L k"],
) -> Float[Tensor, "m k"]:
    """The soft trees' sum of values over all leaves, of tests σ(slope (S z - t))."""
    g = (S @ z.t()).t()
    if has_kernel(g, V):
        return soft_tree_sum_native(paths.structure(V.shape[1]), g, t, slope, V)
    q = ((g - t) * slope).t().index_select(0, paths.test_order)
    return soft_tree_sum_by_level(q, paths, V)
