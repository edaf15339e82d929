"""Steps: what an ONNX graph does to the sums of its trees, one after the other.

The parameters of the link `onnx` are steps. Here each has its name, how many constants it takes
and how many columns it gives; `run`, `relax` and the explorer page compute them, each in its own
way, under the same names. Files hold the names, so the order of this table means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvariantError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class StepKind:
    """What is known of a step before it is computed."""

    name: str
    takes_constants: bool = False
    """Whether it takes one constant for all columns, or one for each."""
    columns: int = 1
    """How many columns it makes of one."""


STEPS: dict[str, StepKind] = {
    kind.name: kind
    for kind in (
        StepKind("single"),
        StepKind("double"),
        StepKind("logistic"),
        StepKind("softmax"),
        StepKind("softmax_zero"),
        StepKind("probit"),
        StepKind("complement", columns=2),
        StepKind("opposite", columns=2),
        StepKind("beside_zero", columns=2),
        StepKind("normalize"),
        StepKind("add", takes_constants=True),
        StepKind("subtract", takes_constants=True),
        StepKind("subtract_from", takes_constants=True),
        StepKind("multiply", takes_constants=True),
        StepKind("divide", takes_constants=True),
        StepKind("divide_into", takes_constants=True),
        StepKind("negate"),
        StepKind("exp"),
        StepKind("sigmoid"),
        StepKind("libm_exp"),
        StepKind("libm_log1p"),
    )
}
"""Every step by its name."""

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, c: x + c,
    "subtract": lambda x, c: x - c,
    "subtract_from": lambda x, c: c - x,
    "multiply": lambda x, c: x * c,
    "divide": lambda x, c: x / c,
    "divide_into": lambda x, c: c / x,
}
"""Steps with constants, for arrays of any kind and constants as an array of the same."""


@dataclass(frozen=True)
class Step:
    """A step by its name, with its constants.

    Examples
    --------
    >>> Step("add", (1.5,))
    Step(name='add', constants=(1.5,))
    """

    name: str
    constants: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        kind = STEPS.get(self.name) if isinstance(self.name, str) else None
        if kind is None:
            raise InvariantError(
                "known steps", f"a step named {self.name!r:.60}", f"use one of {', '.join(STEPS)}"
            )
        object.__setattr__(self, "constants", tuple(float(c) for c in self.constants))
        if kind.takes_constants != bool(self.constants):
            raise InvariantError(
                "steps have their constants",
                f"the step {self.name!r} with {len(self.constants)} constants",
                "give it one constant for all columns, or one for each"
                if kind.takes_constants
                else "give it none",
            )

    def width_after(self, width: int) -> int:
        """How many columns there are after this step where there were `width`.

        Raises
        ------
        InvariantError
            Where the constants are neither one for all columns nor one for each.
        """
        given = len(self.constants)
        if not STEPS[self.name].takes_constants:
            return width * STEPS[self.name].columns
        if given != 1 and width != 1 and given != width:
            raise InvariantError(
                "steps have their constants",
                f"the step {self.name!r} with {given} constants for {width} columns",
                f"give it 1 constant, or {width}",
            )
        return max(given, width)


def width_after(steps: Iterable[Step], width: int) -> int:
    """How many columns there are after all these steps.

    Examples
    --------
    >>> width_after([Step("logistic"), Step("complement")], 1)
    2
    """
    for step in steps:
        width = step.width_after(width)
        if width > MOST_COLUMNS:
            raise InvariantError(
                "steps give few columns",
                f"steps that make {width} columns or more",
                f"use steps that give at most {MOST_COLUMNS}",
            )
    return width


MOST_COLUMNS = 1 << 20
"""Thirty steps that double the columns would fill any memory: a file may claim them."""
