"""The soft tree: leaf weights as products of gates along each path.

Paper: Eq. `defM`, Eq. `soft`. M holds σ(B_ij q_j) along the path of leaf i and 1 elsewhere, so
exp(ln(M) · 1) is the product of the gates on the path; products need no logarithm and no L × J.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from .paths import Paths


def soft_tree_weights(q: Float[Tensor, "J m"], paths: Paths) -> Float[Tensor, "L m"]:
    """p = exp(ln(M) 1), the weight of every leaf; tests and leaves in level order.

    Paper: Eq. `soft`.
    """
    return torch.cat(list(paths.products((-q).sigmoid(), q.sigmoid())))


def soft_tree_sum(
    q: Float[Tensor, "m J"], paths: Paths, V: Float[Tensor, "L k"]
) -> Float[Tensor, "m k"]:
    """Σ p_i v_i over the leaves of all trees; tests and leaves in the machine's order.

    Paper: Eq. `soft`. A test sends a row right with σ(q). On a CPU the fused kernel of
    `native_soft` does this where it can; elsewhere, and inside compiled or exported graphs,
    `soft_tree_sum_by_level` does.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from decision_machines.relax.paths import Paths
    >>> machine = dm.figure_one()
    >>> q = torch.zeros(1, 5)
    >>> soft_tree_sum(q, Paths(machine), torch.tensor(machine.V, dtype=torch.float32))
    tensor([[4.1875]])
    """
    native = native_soft(q, V)
    if native is not None:
        return native.soft_tree_sum(q, paths, V)
    return soft_tree_sum_by_level(q.t().index_select(0, paths.test_order), paths, V)


def soft_tree_sum_by_level(
    q: Float[Tensor, "J m"], paths: Paths, V: Float[Tensor, "L k"]
) -> Float[Tensor, "m k"]:
    """`soft_tree_sum` in plain torch, q tests first and in level order.

    Each level adds its leaves at once, so that the weights of all leaves never stand together.
    """
    V = V.index_select(0, paths.leaf_order).split(paths.leaf_blocks)
    weights = paths.products((-q).sigmoid(), q.sigmoid())
    parts = [p.t() @ v for p, v in zip(weights, V, strict=True)]
    return sum(parts[1:], parts[0])


def native_soft(q: Tensor, V: Tensor) -> Any:
    """The module of the fused kernel, or None where it cannot be used on these tensors.

    That is: off the CPU, in other dtypes than float32 and float64, under autocast, inside a graph
    that is compiled, exported or traced, and under the transforms of `torch.func`.
    """
    is_plain = (
        q.device.type == "cpu"
        and V.device.type == "cpu"
        and q.dtype == V.dtype
        and q.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and not torch.is_autocast_enabled("cpu")
        and type(q) in (torch.Tensor, torch.nn.Parameter)
        and not torch._C._functorch.is_functorch_wrapped_tensor(q)
        and not torch._C._functorch.is_functorch_wrapped_tensor(V)
    )
    return _kernel_module() if is_plain else None


@functools.cache
def _kernel_module() -> Any:
    try:
        return importlib.import_module(f"{__package__}.native_soft")
    except ImportError:
        return None
