"""The convex-concave upper bound on the loss of one tree, for non-greedy training.

Paper: the template matching interpretation, which takes it from Norouzi et al. (2015). For test
answers g, tree loss ≤ max_g [g · q + loss(leaf of g)] - max_h h · q. Tests off the path of leaf i
cancel, and along it B_ij q_j - |q_j| = -2 relu(-B_ij q_j), so the bound is a maximum over leaves of
the ReLU form's scores: max_i [loss_i + 2 p_i].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .queries import relu_pair

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from .heads import Heads
    from .paths import Paths


def upper_bound(
    q: Float[Tensor, "m J"], losses: Float[Tensor, "m L"], paths: Paths, heads: Heads
) -> Float[Tensor, "m T"]:
    """An upper bound, piecewise linear in q, on every tree's loss at its exit leaf.

    Paper: the convex-concave bound of non-greedy training; cites `norouzi2015efficient`.

    Parameters
    ----------
    q
        S z - t, tests in the machine's order.
    losses
        The loss of every row if it exited at each leaf, leaves in the machine's order.
    """
    p = paths.sums(*relu_pair(q.t().index_select(0, paths.test_order)))
    scores = losses.t().index_select(0, paths.leaf_order) + 2 * p
    # Padding repeats the last leaf of a tree, which leaves its maximum as it is.
    bounds = [block.amax(1) for block, _ in heads.blocks(scores)]
    return torch.cat(bounds).index_select(0, heads.tree_rank).t()
