"""The soft tree: by the fused kernel where it can run, else in plain torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from . import native_soft
from .leaves import is_traced
from .soft_tree_plain import soft_tree_sum_by_level

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from .paths import Paths


def soft_tree_sum(
    q: Float[Tensor, "m J"], paths: Paths, V: Float[Tensor, "L k"]
) -> Float[Tensor, "m k"]:
    """Σ p_i v_i over the leaves of all trees; tests and leaves in the machine's order.

    Paper: Eq. `soft`; cites `irsoy2012soft`. A test sends a row right with σ(q). On a CPU the fused
    kernel of `native_soft` does this where it can; elsewhere, and inside compiled or exported
    graphs, `soft_tree_sum_by_level` does.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from decision_machines.relax.paths import Paths
    >>> machine = dm.figure_one()
    >>> q = torch.zeros(1, 5)
    >>> soft_tree_sum(q, Paths.of(machine), torch.tensor(machine.V, dtype=torch.float32))
    tensor([[4.1875]])
    """
    if has_kernel(q, V):
        return native_soft.soft_tree_sum(q, paths, V)
    return soft_tree_sum_by_level(q.t().index_select(0, paths.test_order), paths, V)


def has_kernel(q: Tensor, V: Tensor) -> bool:
    """Whether the fused kernel can be used on these tensors.

    It cannot off the CPU, in other dtypes than float32 and float64, under autocast, inside a graph
    that is compiled, exported or traced, and under the transforms of `torch.func`.
    """
    return (
        q.device.type == "cpu"
        and V.device.type == "cpu"
        and q.dtype == V.dtype
        and q.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
        and not is_traced()
        and not torch.is_autocast_enabled("cpu")
        and type(q) in (torch.Tensor, torch.nn.Parameter)
        and not torch._C._functorch.is_functorch_wrapped_tensor(q)
        and not torch._C._functorch.is_functorch_wrapped_tensor(V)
    )
