"""Soft trees without torch: an assembly of one machine and the slopes of its tests.

Test j of a soft machine sends a row right with probability σ(slope_j (S z - t_j)) instead of
deciding; a leaf's weight is the product of the probabilities on its path, and every leaf counts
with its weight. Paper: Eq. `soft`. *Exact: in the limit* of infinite slopes; a test whose slope is
infinite is hard already.

The member of the assembly is the hard machine: what is left where every test decides. The numbers
are ``slope``, ``t`` (where the gate is one half) and ``nudge`` (what t lacks of the middle between
two neighbouring numbers), one for each test, all of the dtype in which the machine is computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, InvariantError
from .compose import direct_sum

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Float

    from .assembly import Assembly
    from .machine import DecisionMachine

RULE = "soft trees"
PARTS = ("slope", "t", "nudge")


def soft_trees(
    machine: DecisionMachine,
    slope: Float[np.ndarray, "J"],
    t: Float[np.ndarray, "J"] | None = None,
    nudge: Float[np.ndarray, "J"] | None = None,
    *,
    dtype: Any = None,
    source: str | None = None,
) -> Assembly:
    """The machine with soft tests, as an assembly that predicts, is saved, served and streamed.

    Parameters
    ----------
    machine
        Of constant leaves that are summed.
    slope
        How steep each test is; infinite for a hard one.
    t, nudge
        Where the tests are one half; the machine's own thresholds, and 0, by default.
    dtype
        In which it is computed, float32 or float64; by default that of the slopes.
    source
        What it was made from, for people.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from decision_machines.machine.soft import soft_trees
    >>> soft = soft_trees(dm.figure_one(), np.full(5, 2.0))
    >>> soft
    Assembly(soft trees, 1 member; the paper's Fig. 1)
    >>> soft.predict([[2, 1, 2, 2]]).round(2), dm.figure_one().predict([[2, 1, 2, 2]])
    (array([4.64]), array([5.]))
    """
    from .assembly import Assembly

    slope = np.asarray(slope)
    dtype = np.dtype(dtype or (slope.dtype if slope.dtype.kind == "f" else np.float64))
    given = {
        "slope": slope,
        "t": machine.t if t is None else t,
        "nudge": np.zeros(machine.n_tests) if nudge is None else nudge,
    }
    classes = machine.output.classes
    return Assembly(
        RULE,
        (machine,),
        {name: np.asarray(part).astype(dtype) for name, part in given.items()},
        {"kind": ("numbers" if classes is None else "classes",)},
        classes[0] if classes is not None and len(classes) == 1 else None,
        machine.source if source is None else source,
    )


def hard_as_soft(machine: DecisionMachine) -> Assembly:
    """The machine itself among soft ones: every slope is infinite."""
    return soft_trees(machine, np.full(machine.n_tests, np.inf))


def soft_sum(softs: Sequence[Assembly], weights: Sequence[float] | None = None) -> Assembly:
    """The weighted direct sum of soft machines, again one: see `direct_sum`.

    It is computed in float64 if one of them is; those whose tests are all hard do not count, they
    are exact in any case.

    Examples
    --------
    >>> import decision_machines as dm
    >>> one = soft_trees(dm.figure_one(), np.full(5, 2.0))
    >>> two = soft_sum([one, one], [1.0, -0.5])
    >>> bool(np.isclose(two.margin([[2, 1, 2, 2]]), one.margin([[2, 1, 2, 2]]) / 2).all())
    True
    """
    softs = list(softs)
    for i, soft in enumerate(softs):
        if soft.rule != RULE:
            raise InputError(
                "summing soft machines",
                f"machine {i} is a {soft.rule}",
                "sum assemblies of the rule 'soft trees', which module.frozen() gives",
            )
    total = direct_sum([soft.members[0] for soft in softs], weights)  # type: ignore[misc]
    parts = [np.concatenate([s.numbers[name] for s in softs]) for name in PARTS]
    slopes = [s.numbers["slope"] for s in softs]
    dtypes = [slope.dtype for slope in slopes if np.isfinite(slope).any()]
    return soft_trees(total, *parts, dtype=np.result_type(*dtypes) if dtypes else np.float64)


def hard_of(soft: Assembly) -> DecisionMachine:
    """The hard machine of soft trees: its tests decide."""
    return soft.members[0]  # type: ignore[return-value]


def with_columns_and_output(soft: Assembly, machine: DecisionMachine) -> Assembly:
    """The soft trees with the names, labels and output of another machine's."""
    own = hard_of(soft)
    named = replace(
        own,
        columns=replace(own.columns, names=machine.columns.names),
        output=replace(own.output, classes=machine.output.classes),
        source=machine.source,
    )
    return with_machine(soft, named)


def with_machine(soft: Assembly, machine: DecisionMachine) -> Assembly:
    """The soft trees of another machine with as many tests, in the same places."""
    return soft_trees(machine, *(soft.numbers[name] for name in PARTS))


def check_soft(members: tuple[Any, ...], numbers: Mapping[str, np.ndarray]) -> None:
    """Refuse what cannot be computed as soft trees.

    Raises
    ------
    InvariantError
    """
    from .machine import DecisionMachine

    if len(members) != 1 or not isinstance(members[0], DecisionMachine):
        raise InvariantError(
            "soft trees are of one machine", f"{len(members)} members", "give one machine"
        )
    machine = members[0]
    if machine.linear is not None or machine.output.aggregate != "sum":
        raise InvariantError(
            "soft trees are sums of constants",
            "linear leaves, or trees that are not summed",
            "keep the torch module, or harden it",
        )
    if set(numbers) != set(PARTS):
        raise InvariantError(
            "soft trees have slope, t and nudge", f"numbers {sorted(numbers)}", "give these three"
        )
    dtypes = {numbers[name].dtype for name in PARTS}
    if len(dtypes) > 1 or not dtypes <= {np.dtype(np.float32), np.dtype(np.float64)}:
        raise InvariantError(
            "soft trees are computed in one dtype",
            f"slope, t and nudge of {', '.join(sorted(map(str, dtypes)))}",
            "give all three as float32, or as float64",
        )
    for name in PARTS:
        if numbers[name].shape != (machine.n_tests,):
            raise InvariantError(
                "soft trees have a slope for each test",
                f"{name} of shape {numbers[name].shape} for {machine.n_tests} tests",
                "give one number for each test",
            )
    slope, t, nudge = (numbers[name] for name in PARTS)
    if not (np.all(slope > 0) and np.all(np.isfinite(nudge)) and not np.isnan(t).any()):
        raise InvariantError(
            "soft tests have positive slopes",
            "a slope that is not above 0, or t or nudge that are not numbers",
            "give positive slopes (infinite for a hard test), thresholds and finite nudges",
        )
