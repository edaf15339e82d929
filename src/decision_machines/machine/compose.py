"""The weighted direct sum of machines.

Paper: Eq. `forest`, the sum of trees is again a machine: S and t stacked, B block-diagonal, and
the weights multiplied into V.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..errors import InputError
from .columns import Columns
from .cover import Cover
from .equality import same
from .machine import DecisionMachine
from .output import Output
from .trees import ALL_OUTPUTS, Trees
from .values import wide_values

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from jaxtyping import Float, Int

DOING = "summing machines"
JOINED_COLUMNS = ("feature", "rule", "sets")
"""The fields of the columns that are joined; in all others the machines must agree."""
SUMMED_OUTPUT = ("base", "dtype", "base_first", "divisor", "scale")
"""The fields of the output that are worked into the sum; in all others the machines must agree."""


def direct_sum(
    machines: Sequence[DecisionMachine], weights: Sequence[float] | None = None
) -> DecisionMachine:
    """The machine whose margin is the sum of w · margin over the given machines.

    All must read the same features in the same way (dtype, names, labels, what counts as missing)
    and do the same to their sums (outputs, link, decision, labels). Where the margins of machines
    with other links are to be added, take their margins alone first, with
    `machine.output.as_margins`.

    Parameters
    ----------
    machines
        At least one, whose trees are summed and whose leaves are constants.
    weights
        One number w for each machine; 1 by default.

    Raises
    ------
    InputError
        That names the property in which the machines differ.

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
    feeds = [m.trees.feeds if is_narrow else np.full(m.n_trees, ALL_OUTPUTS) for m in machines]
    selection: Any
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
        cover=_cover(machines),
    )


def _cover(machines: list[DecisionMachine]) -> Cover | None:
    """The covers side by side; None where a machine has none."""
    covers = [m.cover for m in machines if m.cover is not None]
    if len(covers) < len(machines):
        return None
    return Cover(
        np.concatenate([c.tests for c in covers]), np.concatenate([c.leaves for c in covers])
    )


def _weights(weights: Sequence[float] | None, n: int) -> list[float]:
    try:
        return [1.0] * n if weights is None else [float(w) for w in weights]
    except (TypeError, ValueError) as error:
        _refuse(f"a weight that is not a number ({error})", "give numbers as weights")


def _refuse(found: str, remedy: str) -> NoReturn:
    raise InputError(DOING, found, remedy) from None


def _check_compatible(machines: list[DecisionMachine], weights: list[float]) -> None:
    if not machines:
        _refuse("no machine", "give at least one")
    if len(weights) != len(machines):
        _refuse(f"{len(weights)} weights for {len(machines)} machines", "give one weight each")
    first = machines[0]
    for i, m in enumerate(machines):
        if m.n_outputs != first.n_outputs:
            _refuse(
                f"machine {i} has {m.n_outputs} outputs, machine 0 has {first.n_outputs}",
                "sum machines with equal outputs",
            )
        if m.linear is not None:
            _refuse(f"machine {i} has linear leaves", "sum machines whose leaves are constants")
        if m.output.aggregate != "sum":
            _refuse(
                f"machine {i} takes the {m.output.aggregate} of its trees",
                "sum machines whose trees are summed",
            )
        _check_same(first.columns, m.columns, JOINED_COLUMNS, f"machine {i} reads its data")
        _check_same(first.output, m.output, SUMMED_OUTPUT, f"machine {i} answers")


def _check_same(
    a: Columns | Output, b: Columns | Output, joined: tuple[str, ...], what: str
) -> None:
    """Refuse two parts of machines that differ in a field, by its name."""
    for field in fields(a):
        own, other = getattr(a, field.name), getattr(b, field.name)
        if field.name not in joined and not same(own, other):
            part = "columns" if isinstance(a, Columns) else "output"
            _refuse(
                f"{what} in another way: {part}.{field.name} is {other!r:.80}, "
                f"not {own!r:.80} as in machine 0",
                "sum machines that read their data in one way"
                if part == "columns"
                else "sum machines of one link and one set of labels; or their margins alone: "
                "dataclasses.replace(machine, output=machine.output.as_margins())",
            )


def _widened(S: sp.csr_array, where: Int[np.ndarray, "n"], n_columns: int) -> sp.csr_array:
    """S over more columns, its own standing at `where`."""
    return sp.csr_array((S.data, where[S.indices], S.indptr), shape=(S.shape[0], n_columns))


def _scale(machine: DecisionMachine, weight: float) -> float:
    return weight * machine.output.scale / machine.output.divisor


def _values(machine: DecisionMachine, weight: float, is_narrow: bool) -> Float[np.ndarray, "L k"]:
    V = machine.V if is_narrow else wide_values(machine)
    scaled: Float[np.ndarray, "L k"] = V * V.dtype.type(_scale(machine, weight))
    return scaled


def _join_columns(machines: list[DecisionMachine]) -> tuple[Columns, list[Int[np.ndarray, "n"]]]:
    """The columns of all machines, equal ones once, and where each machine's columns are there."""
    parts = [m.columns for m in machines]
    kinds = {(c.sets.negative_fractions, c.sets.whole) for c in parts if c.sets is not None}
    if len(kinds) > 1:
        _refuse(
            "some read -0.5 or 1.5 as a category and others do not "
            "(columns.sets.negative_fractions, columns.sets.whole)",
            "sum machines of one library",
        )
    place: dict[tuple[Any, ...], int] = {}
    at = [
        np.array([place.setdefault(key, len(place)) for key in c.column_keys()], np.int32)
        for c in parts
    ]
    # One that has sets says how they are read.
    like = next((c for c in parts if c.sets is not None), parts[0])
    return like.with_keys(place), at
