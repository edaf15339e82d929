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
from .columns import CategorySets, Columns, Rule
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
    weights = _weights(weights, len(machines))
    _check_compatible(machines, weights)
    first = machines[0]
    n_tests = np.cumsum([0] + [m.n_tests for m in machines])
    n_leaves = np.cumsum([0] + [m.n_leaves for m in machines])
    columns, at = _join_columns(machines)
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
        selection = sp.vstack(
            [_widened(m.S, where, len(columns)) for m, where in zip(machines, at, strict=True)]
        )
    else:
        selection = np.concatenate(
            [where[m.selection] for m, where in zip(machines, at, strict=True)]
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
        columns=columns,
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


def _weights(weights: Sequence[float] | None, n: int) -> list[float]:
    try:
        return [1.0] * n if weights is None else [float(w) for w in weights]
    except (TypeError, ValueError) as error:
        raise InputError(
            "summing machines", f"a weight that is no number ({error})", "give numbers as weights"
        ) from None


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
        if m.linear is not None:
            refuse(f"machine {i} has linear leaves", "sum machines whose leaves are constants")
        if m.output.aggregate != "sum":
            refuse(
                f"machine {i} takes the {m.output.aggregate} of its trees",
                "sum machines whose trees are summed",
            )


def _widened(S: sp.csr_array, where: np.ndarray, n_columns: int) -> sp.csr_array:
    """S over more columns, its own standing at `where`."""
    return sp.csr_array((S.data, where[S.indices], S.indptr), shape=(S.shape[0], n_columns))


def _scale(machine: DecisionMachine, weight: float) -> float:
    return weight * machine.output.scale / machine.output.divisor


def _values(machine: DecisionMachine, weight: float, is_narrow: bool) -> np.ndarray:
    V = machine.V * machine.V.dtype.type(_scale(machine, weight))
    if is_narrow or not machine.is_narrow:
        return V
    wide = np.zeros((machine.n_leaves, machine.n_outputs), V.dtype)
    wide[np.arange(machine.n_leaves), machine.trees.feeds[machine.trees.of_leaf]] = V[:, 0]
    return wide


def _join_columns(machines: list[DecisionMachine]) -> tuple[Columns, list[np.ndarray]]:
    """The columns of all machines, equal ones once, and where each machine's columns are there."""
    parts = [m.columns for m in machines]
    sets = [c.sets for c in parts if c.sets is not None]
    if len({(s.negative_fractions, s.whole) for s in sets}) > 1:
        raise InputError(
            "summing machines",
            "some read -0.5 or 1.5 as a category and others as no category",
            "sum machines of one library",
        )
    place: dict[tuple, int] = {}
    at = [
        np.array([place.setdefault(key, len(place)) for key in _keys(c)], np.int32) for c in parts
    ]
    members = [key[2:] for key in place if key[1] == Rule.MEMBER]
    joined = None
    if members:
        joined = CategorySets(
            np.cumsum([0] + [len(which) for which, _, _ in members]),
            np.concatenate([which for which, _, _ in members]),
            np.concatenate([answer for _, answer, _ in members]),
            np.array([outside for _, _, outside in members]),
            sets[0].negative_fractions,
            sets[0].whole,
        )
    columns = replace(
        parts[0],
        feature=np.array([key[0] for key in place], np.int32),
        rule=np.array([key[1] for key in place], np.uint8),
        sets=joined,
    )
    return columns, at


def _keys(columns: Columns) -> list[tuple]:
    """What makes each column itself: feature, rule and, for a member column, its set."""
    keys: list[tuple] = []
    for c in range(len(columns)):
        key: tuple = (int(columns.feature[c]), int(columns.rule[c]))
        if key[1] == Rule.MEMBER:
            members, answers, outside = columns.members(c)
            key += (tuple(members.tolist()), tuple(answers.tolist()), outside)
        keys.append(key)
    return keys
