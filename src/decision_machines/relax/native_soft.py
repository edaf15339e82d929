"""The soft tree on a CPU: a fused native kernel, forwards and backwards, as a torch function.

    out = soft_tree_sum_native(structure, z, t, slope, V)        # (m, k)

Test j sends a row to its right with probability σ(slope_j (z[selection_j] - t_j)), and to its left
with the rest; a leaf's weight is the product of the probabilities on its path, and the output is
the weighted sum of values over all leaves of all trees.
Paper: Eq. `soft`. *Exact: in the limit* of infinite slopes, where no z equals its threshold.

What to hand in
---------------
structure
    A `SoftStructure`: what does not change while training. Make it once,
    `SoftStructure.of(machine)`, and keep it: the kernel's plan is made on its first use.
z (..., n)
    The machine's columns (`machine.columns`), not the raw features. NaN takes the test's missing
    answer as a hard gate: probability 0 or 1, and no gradient. For an oblique machine z is
    (..., J): the products S z, one for each test, made by torch.
t (J,), slope (J,)
    A threshold and a slope for each test (for a log-slope, pass `log_slope.exp()`).
V (L, k), or (L, 1) where each tree feeds one output
    Leaf values.

All four may ask for gradients, of any order, in float32 or float64 (the widest given is used;
bfloat16 and float16 are computed in float32). On infinite and huge inputs a gate is 0 or 1 and
passes no gradient: outputs and gradients are finite where V and the incoming gradient are. z and t
of the same infinity are a tie, q = 0. With `slope` infinite a test is hard, and a tie goes left.

Threads share blocks of rows whose sums are added in a fixed order: the answer has the same bits
whatever `n_threads` is. `skip` > 0 stops rows at a test that all of a strip (a few vectors of
rows) reach with less weight than that, and answers there with the mean of the leaves below. The
error of that is less than `skip` times the spread of the values, for each path that is cut. The
gradient is that of the approximation, of the first order only. It is faster on trees of hundreds of
leaves.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from ..errors import InputError
from ..run.engines.processor import target
from .soft_structure import SoftStructure
from .soft_tree_plain import soft_tree_sum_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor

    from .paths import Paths

DOING = "evaluating the soft tree's native kernel"


def soft_tree_sum_native(
    structure: SoftStructure,
    z: Float[Tensor, "*m n"],
    t: Float[Tensor, "J"],
    slope: Float[Tensor, "J"],
    V: Float[Tensor, "L w"],
    *,
    nudge: Float[Tensor, "J"] | None = None,
    skip: float = 0.0,
    n_threads: int | None = None,
) -> Float[Tensor, "*m k"]:
    """Sum over trees of the soft trees' expected leaf values, differentiable in z, t, slope and V.

    Parameters
    ----------
    structure
        `SoftStructure.of(machine)`, made once.
    z, t, slope, V
        Columns, thresholds, slopes and leaf values, on the CPU; see the top of this file.
    nudge
        Added to t, without gradient and after z - t is taken: what t lacks of the middle between
        two neighbouring numbers, which no number of its dtype can stand for. 0 by default.
    skip
        Paths that carry less weight than this end in the mean of the leaves below; 0 for none.
    n_threads
        By default as many as torch uses.

    Examples
    --------
    >>> import decision_machines as dm
    >>> machine = dm.figure_one()
    >>> structure = SoftStructure.of(machine)
    >>> z, t, V = (torch.tensor(a, dtype=torch.float64)
    ...            for a in ([[2, 1, 2, 2]], machine.t, machine.V))
    >>> slope = torch.full_like(t, 1e3)
    >>> soft = soft_tree_sum_native(structure, z + 0.01, t, slope, V)
    >>> bool(torch.allclose(soft, V[machine.apply([[2, 1, 2, 2]])[0]]))
    True
    """
    given = {"z": z, "t": t, "slope": slope, "V": V}
    dtype = functools.reduce(torch.promote_types, [value.dtype for value in given.values()])
    _check(structure, given, dtype, skip)
    working = dtype if dtype in _BITS else torch.float32
    z, t, slope, V = (value.to(working) for value in given.values())
    nudge = torch.zeros_like(t) if nudge is None else nudge.to(working)
    threads = torch.get_num_threads() if n_threads is None else int(n_threads)
    rows = z.reshape(z.shape[:-1].numel(), structure.n_columns)
    if torch.is_grad_enabled() and any(value.requires_grad for value in (z, t, slope, V)):
        # torch does not annotate `apply`.
        out = NativeSoftTree.apply(  # type: ignore[no-untyped-call]
            rows, t, slope, V, nudge, structure, float(skip), threads
        )
    else:
        out = _forward(rows, t, slope, V, nudge, structure.plan, float(skip), threads)
    found: Float[Tensor, "*m k"] = out.reshape(*z.shape[:-1], structure.n_outputs).to(dtype)
    return found


def soft_tree_sum(
    q: Float[Tensor, "m J"], paths: Paths, V: Float[Tensor, "L k"], **options: Any
) -> Float[Tensor, "m k"]:
    """The same sum from q itself, whatever made it; `paths` is a `relax.paths.Paths`.

    An infinite q is a hard gate; NaN goes left. Fastest where q lies tests first, as the transpose
    of (J, m). Where q is slope (z - t), `soft_tree_sum_native` is faster still: it writes neither q
    nor its gradient.
    """
    structure = paths.structure(V.shape[1])
    t = q.new_zeros(q.shape[-1])
    return soft_tree_sum_native(structure, q, t, torch.ones_like(t), V, **options)


class NativeSoftTree(torch.autograd.Function):
    """The kernel's forward and backward; gates are made again on the way back, none are kept.

    A backward pass that is itself to be differentiated (``create_graph=True``) is that of the
    plain torch form, so second and higher derivatives are right.
    """

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        t: Tensor,
        slope: Tensor,
        V: Tensor,
        nudge: Tensor,
        structure: SoftStructure,
        skip: float,
        threads: int,
    ) -> Tensor:
        ctx.save_for_backward(z, t, slope, V, nudge)
        ctx.structure, ctx.skip, ctx.threads = structure, skip, threads
        return _forward(z, t, slope, V, nudge, structure.plan, skip, threads)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[:4]
        if torch.is_grad_enabled():
            if ctx.skip > 0:
                raise InputError(
                    DOING,
                    f"a second derivative of sums with skip = {ctx.skip}",
                    "use skip = 0, whose derivatives of any order are right",
                )
            return *_plain_gradients(ctx.structure, ctx.saved_tensors, G, needed), *[None] * 4
        z, t, slope, V, nudge = (value.detach() for value in ctx.saved_tensors)
        dz = torch.zeros_like(z) if needed[0] else None
        dt, dslope, dV = (
            torch.empty_like(value, memory_format=torch.contiguous_format)
            for value in (t, slope, V)
        )
        others = (G.contiguous(), dt, dslope, dV, dz)
        inputs = (z, t, nudge, slope, V)
        _call("backward", ctx.structure.plan, inputs, ctx.skip, ctx.threads, others)
        return dz, dt, dslope, dV, None, None, None, None


def _plain_gradients(
    structure: SoftStructure, inputs: Sequence[Tensor], G: Tensor, needed: Sequence[bool]
) -> list[Tensor | None]:
    """The gradients as functions of the inputs and of G, to be differentiated again."""
    # Aliases: where one input was made from another, each still gets its own gradient alone.
    z, t, slope, V, nudge = (value.view_as(value) for value in inputs)
    out = soft_tree_sum_plain(structure, z, t, slope, V, nudge)
    wanted = [part for part, is_needed in zip((z, t, slope, V), needed, strict=True) if is_needed]
    found = iter(torch.autograd.grad(out, wanted, G, create_graph=True, materialize_grads=True))
    return [next(found) if is_needed else None for is_needed in needed]


_BITS = {torch.float32: "32", torch.float64: "64"}


def _forward(
    z: Tensor,
    t: Tensor,
    slope: Tensor,
    V: Tensor,
    nudge: Tensor,
    plan: Any,
    skip: float,
    threads: int,
) -> Tensor:
    inputs = [value.detach() for value in (z, t, nudge, slope, V)]
    out = z.new_empty((len(z), plan.n_outputs))
    _call("forward", plan, inputs, skip, threads, (out,))
    return out


def _call(
    name: str,
    plan: Any,
    inputs: Sequence[Tensor],
    skip: float,
    threads: int,
    others: Sequence[Tensor | None],
) -> None:
    method, on = getattr(plan, name + _BITS[inputs[0].dtype]), target()
    # z and its gradient are read and written where they lie; the others are small.
    z, *small = inputs
    arrays = [value.contiguous().numpy() for value in small]
    results = [None if value is None else value.numpy() for value in others]
    try:
        method(on, z.numpy(), *arrays, skip, threads, *results)
    except ValueError as error:
        raise InputError(
            DOING, str(error), "check that training has not diverged, and the shapes given"
        ) from None


def _check(
    structure: SoftStructure, given: dict[str, Tensor], dtype: torch.dtype, skip: float
) -> None:
    n_tests = len(structure.selection)
    n_leaves = n_tests + len(structure.feeds)
    narrow = len(structure.feeds) and structure.feeds[0] >= 0
    shapes = {
        "t": (n_tests,),
        "slope": (n_tests,),
        "V": (n_leaves, 1 if narrow else structure.n_outputs),
    }
    for name, shape in shapes.items():
        if tuple(given[name].shape) != shape:
            raise InputError(
                DOING, f"{name} of shape {tuple(given[name].shape)}", f"give it the shape {shape}"
            )
    z = given["z"]
    if z.ndim < 1 or z.shape[-1] != structure.n_columns:
        raise InputError(
            DOING, f"z of shape {tuple(z.shape)}", f"give it {structure.n_columns} columns"
        )
    devices = {value.device.type for value in given.values()}
    if devices != {"cpu"}:
        raise InputError(
            DOING, f"tensors on {', '.join(sorted(devices))}", "use the plain torch soft tree there"
        )
    if not dtype.is_floating_point:
        raise InputError(DOING, f"numbers of dtype {dtype}", "use floating-point tensors")
    if not 0 <= skip < 1:
        raise InputError(DOING, f"skip = {skip}", "use 0 for exact sums, or a weight below 1")
