"""Trees as attention heads, with the projections of multi-head attention.

Paper: Eq. `dot-product`, Eq. `MultiHead`. The templates of a tree are the keys of a head, its
values the head's values, and S z - t is the query that all heads look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..errors import UnsupportedModelError
from .module import SoftMachine

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from ..machine import DecisionMachine
    from .build import Options
    from .forms import Form


def dot_product_attention(
    Q: Float[Tensor, "... m d"],
    K: Float[Tensor, "... L d"],
    V: Float[Tensor, "... L k"],
    tau: float | Tensor = 1.0,
    is_leaf: Bool[Tensor, "... L"] | None = None,
) -> tuple[Float[Tensor, "... m k"], Float[Tensor, "... m L"]]:
    """softmax(Q Kᵀ / τ) V, and the weights.

    Paper: Eq. `dot-product`, with τ in the place of √d; cites `vaswani2017attention`,
    `mino-etal-2017-key`. NOTE[PAPER]: its denominator runs over all keys; it is printed to stop
    at i. Equal to torch's `scaled_dot_product_attention` with ``scale=1/tau``.

    Parameters
    ----------
    Q, K, V
        Queries, keys and values.
    tau
        The temperature: the smaller, the more weight the largest score gets.
    is_leaf
        Which keys count; the others are padding and get weight 0. By default all count.

    Examples
    --------
    >>> import decision_machines as dm
    >>> machine = dm.figure_one()
    >>> B, V = torch.tensor(machine.B.toarray()).double(), torch.tensor(machine.V)
    >>> h = torch.tensor([[1.0, -1.0, -1.0, -1.0, -1.0]]).double()
    >>> K = B / B.abs().sum(1, keepdim=True)
    >>> round(dot_product_attention(h, K, V, tau=0.01)[0].item(), 6)
    5.0
    """
    scores = Q @ K.transpose(-1, -2) / tau
    if is_leaf is not None:
        scores = scores.masked_fill(~is_leaf[..., None, :], -torch.inf)
    weights = scores.softmax(-1)
    return weights @ V, weights


class MultiHeadMachine(SoftMachine):
    """Concat(head_1, …, head_T) W^O with head_i = Attention(q W_i^Q, B_i W_i^K, V_i W_i^V).

    Paper: Eq. `MultiHead`. At first W^Q, W^K and W^V are identities and W^O adds up the heads, so
    the module is the form `softmax`. NOTE[PAPER]: a head's projections act on the tests of its own
    tree, which is what the mask W^B leaves of J × J matrices.

    Heads are dense and padded to the largest tree: for trees of up to a few hundred leaves.
    """

    B: Tensor
    test: Tensor
    leaf: Tensor
    is_test: Tensor
    is_leaf: Tensor

    def __init__(self, machine: DecisionMachine, form: Form, options: Options) -> None:
        super().__init__(machine, form, options)
        if machine.linear is not None:
            raise UnsupportedModelError(
                "softening a machine",
                "leaves that are linear functions, which are not fixed value rows",
                "use another form, such as 'soft_tree' or 'softmax'",
            )
        trees, dtype = machine.trees, options.dtype
        n_tests, n_leaves = np.diff(trees.test_start), np.diff(trees.leaf_start)
        d, width = int(n_tests.max(initial=0)), int(n_leaves.max(initial=0))
        keys = np.zeros((len(trees), width, d))
        for i in range(len(trees)):
            keys[i, : n_leaves[i], : n_tests[i]] = machine.templates(i).toarray()
        at_test = trees.test_start[:-1, None] + np.arange(d)
        at_leaf = trees.leaf_start[:-1, None] + np.arange(width)
        is_test = np.arange(d) < n_tests[:, None]
        is_leaf = np.arange(width) < n_leaves[:, None]
        for name, array in (
            ("test", np.where(is_test, at_test, 0)),
            ("leaf", np.where(is_leaf, at_leaf, 0)),
            ("is_test", is_test),
            ("is_leaf", is_leaf),
            ("B", keys.astype(np.float64)),
        ):
            tensor = torch.from_numpy(np.ascontiguousarray(array))
            tensor = tensor.to(dtype) if tensor.is_floating_point() else tensor
            self.register_buffer(name, tensor, persistent=False)
        c, k = self.leaves.V.shape[1], machine.n_outputs
        feeds = torch.eye(k, dtype=dtype)
        W_O = feeds[self.leaves.feeds] if machine.is_narrow else feeds.repeat(len(trees), 1)

        def parameter(name: str, start: Tensor) -> nn.Parameter:
            return nn.Parameter(start.clone(), requires_grad=name in options.learn)

        self.W_Q = parameter("W_Q", torch.eye(d, dtype=dtype).repeat(len(trees), 1, 1))
        self.W_K = parameter("W_K", torch.eye(d, dtype=dtype).repeat(len(trees), 1, 1))
        self.W_V = parameter("W_V", torch.eye(c, dtype=dtype).repeat(len(trees), 1, 1))
        self.W_O = parameter("W_O", W_O)

    def _soft(self, z: Tensor, values: Tensor, want_weights: bool) -> tuple[Tensor, Tensor | None]:
        q = self._query(z, "affine", None).clamp(-1e30, 1e30)
        m = q.shape[1]
        if not self.machine.n_trees:
            return z.new_zeros((m, self.machine.n_outputs)), z.new_zeros((0, m))
        Q = q.index_select(0, self.test.reshape(-1)).reshape(*self.test.shape, m)
        Q = (Q * self.is_test[..., None]).transpose(1, 2)
        V = values.index_select(0, self.leaf.reshape(-1)).reshape(*self.leaf.shape, -1)
        heads, weights = dot_product_attention(
            Q @ self.W_Q, self.B @ self.W_K, V @ self.W_V, is_leaf=self.is_leaf
        )
        heads = heads * self.leaves.head[:, None, None]
        total = heads.transpose(0, 1).reshape(m, len(self.W_O)) @ self.W_O
        return total, weights.transpose(1, 2)[self.is_leaf] if want_weights else None

    def harden(self, *, axis_aligned: bool = False) -> DecisionMachine:
        """An ordinary machine: W^V and W^O are multiplied into V.

        Queries or keys that were projected belong to no tree any more and are refused.

        Parameters
        ----------
        axis_aligned
            As in `SoftMachine.harden`.
        """
        from .harden import harden_heads

        return harden_heads(self, axis_aligned=axis_aligned)
