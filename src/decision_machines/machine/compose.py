"""The weighted direct sum of machines.

Paper: Eq. `forest`, the sum of trees is again a machine: S and t stacked, B block-diagonal, and
the weights multiplied into V.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..errors import InputError
from .columns import CategorySets, Columns
from .machine import DecisionMachine
from .trees import Trees

if TYPE_CHECKING:
    from collections.abc import Sequence


def direct_sum(
    machines: Sequence[DecisionMachine], weights: Sequence[float] | None = None
) -> DecisionMachine:
    """The machine whose margin is the sum of w · margin over the given machines.

    All must read the same features in the same dtype and have the same number of outputs.
    Labels and link are the first machine's.

    Examples
    --------
    >>> import decision_machines as dm
    >>> one = dm.figure_one()
    >>> both = direct_sum([one, one], [1.0, -0.5])
    >>> both.margin([[2, 1, 2, 2]]).item()
    2.5
    """
    machines = list(machines)
    weights = [1.0] * len(machines) if weights is None else [float(w) for w in weights]
    _check_compatible(machines, weights)
    first = machines[0]
    n_tests = np.cumsum([0] + [m.n_tests for m in machines])
    n_leaves = np.cumsum([0] + [m.n_leaves for m in machines])
    n_columns = np.cumsum([0] + [len(m.columns) for m in machines])
    children = [
        np.where(m.children >= 0, m.children + a, m.children - b)
        for m, a, b in zip(machines, n_tests, n_leaves, strict=False)
    ]
    starts = [m.trees.test_start[:-1] + a for m, a in zip(machines, n_tests, strict=False)]
    dtype = np.result_type(*(m.V.dtype for m in machines))
    is_narrow = all(m.is_narrow for m in machines)
    V = [_values(m, w, is_narrow).astype(dtype) for m, w in zip(machines, weights, strict=True)]
    feeds = [m.trees.feeds if is_narrow else np.full(m.n_trees, -1) for m in machines]
    if any(m.is_oblique for m in machines):
        selection = sp.block_diag([m.S for m in machines], format="csr")
    else:
        selection = np.concatenate(
            [m.selection + c for m, c in zip(machines, n_columns, strict=False)]
        )
    base = sum(
        (
            np.asarray(_scale(m, w) if m.output.base_first else w, float) * m.output.base
            for m, w in zip(machines, weights, strict=True)
        ),
        np.zeros(first.n_outputs),
    )
    output_dtype = np.result_type(*(m.output.dtype for m in machines))
    return DecisionMachine(
        columns=_stack(machines),
        selection=selection,
        t=np.concatenate([m.t for m in machines]),
        missing=np.concatenate([m.missing for m in machines]),
        children=np.concatenate(children),
        V=np.concatenate(V),
        trees=Trees(np.concatenate([*starts, n_tests[-1:]]), np.concatenate(feeds)),
        output=replace(
            first.output,
            base=base.astype(output_dtype),
            dtype=output_dtype,
            base_first=True,
            divisor=1.0,
            scale=1.0,
        ),
        source=f"direct sum of {len(machines)} machines",
    )


def _check_compatible(machines: list[DecisionMachine], weights: list[float]) -> None:
    def refuse(found: str, remedy: str):
        raise InputError("summing machines", found, remedy)

    if not machines:
        refuse("no machine", "give at least one")
    if len(weights) != len(machines):
        refuse(f"{len(weights)} weights for {len(machines)} machines", "give one weight each")
    first = machines[0]
    for i, m in enumerate(machines):
        if m.n_outputs != first.n_outputs:
            refuse(
                f"machine {i} has {m.n_outputs} outputs, machine 0 has {first.n_outputs}",
                "sum machines with equal outputs",
            )
        for name in ("n_features", "dtype", "names", "absent", "categories", "integers_as"):
            a, b = getattr(first.columns, name), getattr(m.columns, name)
            if a != b and not (a != a and b != b):
                refuse(
                    f"machine {i} reads its data otherwise: {name} is {b!r}, not {a!r}",
                    "sum machines that read the same features in the same dtype",
                )
        if m.linear is not None or m.output.aggregate != "sum":
            refuse(
                f"machine {i} has linear leaves or takes the {m.output.aggregate} of its trees",
                "sum machines whose leaves are constants and whose trees are summed",
            )


def _scale(machine: DecisionMachine, weight: float) -> float:
    return weight * machine.output.scale / machine.output.divisor


def _values(machine: DecisionMachine, weight: float, is_narrow: bool) -> np.ndarray:
    V = machine.V * machine.V.dtype.type(_scale(machine, weight))
    if is_narrow or not machine.is_narrow:
        return V
    wide = np.zeros((machine.n_leaves, machine.n_outputs), V.dtype)
    wide[np.arange(machine.n_leaves), machine.trees.feeds[machine.trees.of_leaf]] = V[:, 0]
    return wide


def _stack(machines: list[DecisionMachine]) -> Columns:
    """The columns of all machines, one after the other."""
    parts = [m.columns for m in machines]
    sets = [c.sets for c in parts if c.sets is not None]
    if any(s.negative_fractions != sets[0].negative_fractions for s in sets):
        raise InputError(
            "summing machines",
            "some read -0.5 as category 0 and others as no category",
            "sum machines of one library",
        )
    members = np.cumsum([0] + [len(s.members) for s in sets])
    joined = (
        CategorySets(
            np.concatenate(
                [*(s.start[:-1] + a for s, a in zip(sets, members, strict=False)), members[-1:]]
            ),
            np.concatenate([s.members for s in sets]),
            np.concatenate([s.answer for s in sets]),
            np.concatenate([s.outside for s in sets]),
            sets[0].negative_fractions,
        )
        if sets
        else None
    )
    return replace(
        parts[0],
        feature=np.concatenate([c.feature for c in parts]),
        rule=np.concatenate([c.rule for c in parts]),
        sets=joined,
    )
