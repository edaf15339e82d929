"""The paper's equations as they stand, over NumPy arrays and torch tensors alike.

Slow, obvious, exact: the oracle of every other engine. Each function below is one line of
Eq. `tree`, Eq. `def:LPOM` or Eq. `delta`, written once over the array API. Trees are done one after
the other with their dense templates, so this is for trees whose L × J fits in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.arrays import device_of, namespace
from .combine import combine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float, Int, Num

    from ...machine import DecisionMachine


def signum(q: Num[Any, "..."]) -> Num[Any, "..."]:
    """-1 where q ≤ 0, else +1.

    Paper: Eq. `signum`.
    """
    xp = namespace(q)
    return xp.where(q <= 0, xp.asarray(-1.0, dtype=q.dtype), xp.asarray(1.0, dtype=q.dtype))


def test_results(machine: DecisionMachine, z: Num[Any, "m n"], tree: int) -> Int[Any, "m J"]:
    """h = sgn(S z - t) of one tree's tests, with the missing answer where the column is NaN.

    Paper: Eq. `result`. NOTE[PAPER]: z ≤ t is compared, not z - t ≤ 0; they differ where both
    are infinite.
    """
    xp = namespace(z)
    tests = machine.trees.tests(tree)
    q = selected(machine, z, tests)
    t = xp.asarray(machine.t[tests].copy(), device=device_of(z))
    missing = xp.asarray(machine.missing[tests].astype(machine.columns.dtype), device=device_of(z))
    gap = xp.where(q <= t, xp.asarray(0.0, dtype=q.dtype), xp.asarray(1.0, dtype=q.dtype))
    return xp.where(xp.isnan(q), missing, signum(gap))


def selected(machine: DecisionMachine, z: Num[Any, "m n"], tests: slice) -> Num[Any, "m J"]:
    """S z: the column that each test reads, or the weighted sum of an oblique test.

    A weight that is not stored does not read its column, so NaN or inf there does no harm; the
    terms are added in the order of the columns, each product rounded before it is added.
    """
    xp = namespace(z)
    if not machine.is_oblique:
        columns = machine.selection[tests].astype(np.int64)
        return xp.take(z, xp.asarray(columns, device=device_of(z)), axis=1)
    S = machine.S
    q = []
    for j in range(tests.start, tests.stop):
        terms = slice(S.indptr[j], S.indptr[j + 1])
        total = xp.zeros_like(z[:, 0])
        for column, weight in zip(S.indices[terms], S.data[terms], strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                total = total + z[:, int(column)] * float(weight)
        q.append(total)
    return xp.stack(q, axis=1) if q else z[:, :0]


def similarities(machine: DecisionMachine, h: Int[Any, "m J"], tree: int) -> Float[Any, "m L"]:
    """p = B̄ h: the logical similarity of h with every template of one tree, in [-1, 1].

    Paper: Eq. `zhang_similarity`, Eq. `comparision`. NOTE[PAPER]: -1 is reached, so the interval
    is closed. Whole numbers are multiplied first and divided once: d copies of the rounded 1/d
    need not sum to 1. The one leaf of a tree without tests is given 1 where the paper has 0/0.
    """
    xp = namespace(h)
    B = machine.templates(tree).toarray().astype(np.float64)
    depth = machine.structure.leaf_depth[machine.trees.leaves(tree)].astype(np.float64)
    if B.shape[1] == 0:
        return xp.ones((h.shape[0], 1), dtype=xp.float64, device=device_of(h))
    B, depth = (xp.asarray(a, device=device_of(h)) for a in (B, depth))
    return xp.matmul(xp.astype(h, xp.float64), B.T) / depth


def exit_leaf(p: Float[Any, "m L"]) -> Int[Any, "m"]:
    """arg max p.

    Paper: Eq. `tree`, its last line.
    """
    return namespace(p).argmax(p, axis=1)


def simplex_weights(p: Float[Any, "m L"]) -> Float[Any, "m L"]:
    """The point d of the probability simplex that maximises <d, p>: the vertex of the exit leaf.

    Paper: Eq. `def:LPOM`.
    """
    xp = namespace(p)
    return xp.astype(p == xp.max(p, axis=1, keepdims=True), p.dtype)


def delta_weights(p: Float[Any, "m L"]) -> Float[Any, "m L"]:
    """δ(1 - p): 1 at the one template that h matches in full.

    Paper: Eq. `delta`.
    """
    xp = namespace(p)
    return xp.astype(1.0 - p == 0.0, p.dtype)


FORMS = {"delta": delta_weights, "lpom": simplex_weights}
"""How the forms other than Eq. `tree` weigh the leaves."""


def apply(machine: DecisionMachine, X: Num[Any, "m n_features"]) -> Int[Any, "m T"]:
    """Exit leaf of every tree by Eq. `tree`; X is a NumPy array or a torch tensor."""
    xp = namespace(X)
    z = machine.columns.read(X)
    leaves = [
        exit_leaf(similarities(machine, test_results(machine, z, tree), tree))
        for tree in range(machine.n_trees)
    ]
    return xp.stack(leaves, axis=1) if leaves else xp.zeros((X.shape[0], 0), dtype=xp.int64)


def margin(
    machine: DecisionMachine, X: Num[Any, "m n_features"], form: str = "tree"
) -> Float[Any, "m k"]:
    """Margins by one of the three equal forms of the paper.

    Parameters
    ----------
    form
        "tree": the value of the leaf of the largest similarity (Eq. `tree`);
        "lpom": a sum over leaves weighted by a point of the simplex (Eq. `def:LPOM`);
        "delta": a sum over leaves weighted by δ(1 - p) (Eq. `delta`).
    """
    if form not in ("tree", *FORMS):
        raise InputError("predicting", f"form={form!r}", "use 'tree', 'lpom' or 'delta'")
    z = machine.columns.read(X)
    values = _values(machine, X, z, form)
    return combine(machine, values, X.shape[0], namespace(X), getattr(X, "device", None))


def _values(
    machine: DecisionMachine, X: Num[Any, "m n_features"], z: Num[Any, "m n"], form: str
) -> Iterator[Any]:
    """The value of every row's exit leaf, tree after tree."""
    xp = namespace(z)
    for tree in range(machine.n_trees):
        p = similarities(machine, test_results(machine, z, tree), tree)
        leaves = machine.trees.leaves(tree)
        if form == "tree" or machine.linear is not None:
            yield leaf_values(machine, X, exit_leaf(p) + leaves.start)
        else:
            V = xp.asarray(machine.V[leaves].copy(), device=device_of(z))
            yield xp.matmul(xp.astype(FORMS[form](p), V.dtype), V)


def leaf_values(
    machine: DecisionMachine, X: Num[Any, "m n_features"], leaf: Int[Any, "m"]
) -> Float[Any, "m k"]:
    """v[leaf] for each row: a constant, or the leaf's linear function of x."""
    xp = namespace(X)
    constant = xp.take(xp.asarray(machine.V.copy(), device=device_of(X)), leaf, axis=0)
    if machine.linear is None:
        return constant
    linear = machine.linear
    x = xp.astype(X, getattr(xp, machine.columns.dtype.name))
    intercept, coefficient = (
        xp.asarray(a.copy(), device=device_of(X)) for a in (linear.intercept, linear.coefficient)
    )
    total = xp.take(intercept, leaf, axis=0)
    is_nan = xp.zeros(leaf.shape, dtype=xp.bool, device=device_of(X))
    sizes = np.diff(linear.start)
    start, size = (xp.asarray(a.copy(), device=device_of(X)) for a in (linear.start[:-1], sizes))
    rows = xp.arange(X.shape[0], device=device_of(X))
    for term in range(int(sizes.max(initial=0))):
        has = term < xp.take(size, leaf)
        at = xp.where(has, xp.take(start, leaf) + term, xp.zeros_like(leaf))
        feature = xp.take(xp.asarray(linear.feature.astype(np.int64), device=device_of(X)), at)
        value = xp.astype(x[rows, feature], total.dtype)
        is_nan = is_nan | (has & xp.isnan(value))
        added = total + xp.take(coefficient, at, axis=0) * value[:, None]
        total = xp.where(has[:, None], added, total)
    return xp.where(is_nan[:, None], xp.astype(constant, total.dtype), total)
