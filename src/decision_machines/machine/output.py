"""What becomes of the leaves' values: their sum, its dtype and order, the link, the labels."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvariantError
from .arrays import Part, frozen
from .decisions import DECISIONS, Decision
from .links import ADABOOST, LINKS, OPPOSED, SIGMOID, Link
from .steps import Step, width_after

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Output(Part):
    """How k sums of leaf values become margins, probabilities and answers.

    The steps, all in `dtype` and in this order:

    1. the sum starts at `base` (if `base_first`) or at 0 and takes the trees one after the other,
       or `aggregate` says another way to combine them;
    2. it is divided by `divisor`, multiplied by `scale` (each skipped at 1), and `base` is added
       (unless `base_first`): this is the **margin**;
    3. `link`, with `link_params`, makes **probabilities** (or the response) of it;
    4. `decision` makes the **prediction**.

    Parameters
    ----------
    base
        (k,) base scores.
    aggregate
        "sum", "min", "max" or "median" over the trees' values; a weighted median takes
        `weights`.
    link, decision
        Names from `machine.links.LINKS` and `machine.decisions.DECISIONS`.
    link_params, decision_params
        Numbers; of the link `onnx` its steps, after the numbers.
    classes
        The labels, one array for each group of outputs; None where nothing is classified.
    groups
        Where each group of outputs starts, and k; (0, k) unless the model has several targets
        with classes of their own.
    squeeze
        Whether one output comes back as (m,) rather than (m, 1).
    """

    base: Float[np.ndarray, "k"]
    dtype: Any = np.float64
    base_first: bool = True
    divisor: float = 1.0
    scale: float = 1.0
    aggregate: str = "sum"
    weights: Float[np.ndarray, "T"] | None = None
    link: str = "identity"
    link_params: tuple[float | Step, ...] = ()
    decision: str = "response"
    decision_params: tuple[float, ...] = ()
    classes: tuple[np.ndarray, ...] | None = None
    groups: tuple[int, ...] | Any = None
    squeeze: bool = True

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "dtype", np.dtype(self.dtype))
        set_(self, "base", frozen(self.base, self.dtype, "output.base"))
        if self.weights is not None:
            set_(self, "weights", frozen(self.weights, np.float64, "output.weights"))
        if self.base.ndim != 1:
            raise InvariantError(
                "a base score for each output",
                f"base of {self.base.ndim} dimensions",
                "give base as a vector: one base score for each output",
            )
        if self.groups is None:
            set_(self, "groups", (0, len(self)))
        set_(self, "groups", tuple(int(g) for g in self.groups))
        if self.classes is not None:
            set_(self, "classes", tuple(_labels(labels) for labels in self.classes))
        for name in ("link_params", "decision_params"):
            set_(self, name, tuple(map(_parameter, getattr(self, name))))
        self._check()
        self._check_link()
        self._check_decision()

    def _check(self) -> None:
        if self.dtype not in (np.float32, np.float64):
            raise InvariantError(
                "outputs are summed in one dtype",
                f"dtype {self.dtype}",
                "sum in float32 or float64",
            )
        if self.aggregate not in ("sum", "min", "max", "median"):
            raise InvariantError(
                "known aggregate",
                f"aggregate = {self.aggregate!r}",
                "use 'sum', 'min', 'max' or 'median'",
            )
        if not np.isfinite(self.divisor) or self.divisor == 0:
            raise InvariantError(
                "divisor is a number other than 0",
                f"divisor = {self.divisor}",
                "use 1 for no division",
            )
        groups = self.groups
        if groups[0] != 0 or groups[-1] != len(self) or any(np.diff(groups) < 0):
            raise InvariantError(
                "groups cover the outputs",
                f"groups = {groups} for {len(self)} outputs",
                "start at 0 and end at the number of outputs",
            )
        if self.classes is not None and len(self.classes) != len(groups) - 1:
            raise InvariantError(
                "labels for each group",
                f"{len(self.classes)} lists of labels for {len(groups) - 1} groups",
                "give one list of labels for each group of outputs",
            )

    def _check_link(self) -> None:
        if self.link not in LINKS:
            raise InvariantError(
                "known link", f"output.link = {self.link!r:.80}", f"use one of {', '.join(LINKS)}"
            )
        link, numbers, steps = LINKS[self.link], self.link_numbers, self.link_steps
        if (*numbers, *steps) != self.link_params or (steps and not link.takes_steps):
            raise InvariantError(
                "a link has its parameters",
                f"output.link_params of {self.link!r} hold what is neither a number nor, after "
                "the numbers, a step of a link that takes steps",
                "give numbers, and steps by name: machine.steps.Step",
            )
        if not link.least_params <= len(numbers) <= link.most_params:
            raise InvariantError(
                "a link has its parameters",
                f"{len(numbers)} numbers in output.link_params of {self.link!r}",
                f"give it {_count(link.least_params, link.most_params)}",
            )
        # Divisors and slopes: only above 0 is what `machine.links` says of a family true.
        has_slope = link.family in (SIGMOID, OPPOSED)
        positive = numbers if has_slope else numbers[: link.least_params]
        if not all(0 < p < np.inf for p in positive):
            raise InvariantError(
                "a link has its parameters",
                f"output.link_params = {self.link_params!r:.80} of {self.link!r}",
                "give it a divisor, and a slope, above 0",
            )
        for low, high in itertools.pairwise(self.groups):
            if link.family.n_outputs not in (None, high - low):
                raise InvariantError(
                    "a link takes the outputs",
                    f"the link {self.link!r} of {high - low} outputs",
                    f"give it {link.family.n_outputs}",
                )
            width_after(steps, high - low)

    def _check_decision(self) -> None:
        if self.decision not in DECISIONS:
            raise InvariantError(
                "known decision",
                f"output.decision = {self.decision!r:.80}",
                f"use one of {', '.join(DECISIONS)}",
            )
        decision = DECISIONS[self.decision]
        if len(self.decision_params) > decision.most_params or not all(
            isinstance(p, float) for p in self.decision_params
        ):
            raise InvariantError(
                "a decision has its parameters",
                f"output.decision_params = {self.decision_params!r:.80} of {self.decision!r}",
                f"give it {_count(0, decision.most_params)} numbers",
            )
        if len(self) < decision.least_outputs:
            raise InvariantError(
                "a decision has its outputs",
                f"the decision {self.decision!r} by {len(self)} output",
                f"give it {decision.least_outputs}",
            )
        if decision.labels:
            self._check_labels(decision)

    def _check_labels(self, decision: Decision) -> None:
        """As many labels as the decision chooses among, for every group that it decides."""
        classes = self.classes or ()
        for group, (low, high) in enumerate(itertools.pairwise(self.groups)):
            width = high - low if decision.reads == "margin" else self.response_width(high - low)
            needed = max(decision.labels, width if decision.chooses_largest else 0)
            found = len(classes[group]) if classes else 0
            if found < needed:
                raise InvariantError(
                    "labels for the decision",
                    f"{found} labels for the decision {self.decision!r}, which chooses among "
                    f"{needed}",
                    "give output.classes a label for each",
                )

    def __len__(self) -> int:
        return len(self.base)

    @property
    def link_numbers(self) -> tuple[float, ...]:
        """The link's parameters that are numbers."""
        return tuple(p for p in self.link_params if isinstance(p, float))

    @property
    def link_steps(self) -> tuple[Step, ...]:
        """The steps of the link `onnx`; () of any other."""
        return tuple(p for p in self.link_params if isinstance(p, Step))

    def without_average(self) -> tuple[Link, float, tuple[float, ...]]:
        """The plain link, what margins are divided by before it, and its own numbers.

        Examples
        --------
        >>> output = Output(np.zeros(1), link="averaged expit", link_params=(5.0, 2.0))
        >>> link, divisor, numbers = output.without_average()
        >>> link.name, divisor, numbers
        ('expit', 5.0, (2.0,))
        """
        link, numbers = LINKS[self.link], self.link_numbers
        if link.is_averaged:
            return link.plain, numbers[0], numbers[1:]
        return link, 1.0, numbers

    def as_margins(self) -> Output:
        """The same sums as the answer itself: no link, no decision, no labels."""
        return replace(
            self,
            link="identity",
            link_params=(),
            decision="response",
            decision_params=(),
            classes=None,
            groups=None,
        )

    def response_width(self, width: int) -> int:
        """How many responses the link makes of `width` margins of one group."""
        if LINKS[self.link].family is ADABOOST:
            return max(width, 2)
        return width_after(self.link_steps, width)


def _parameter(given: Any) -> Any:
    """A number as a float; anything else as it is, for the checks to name it."""
    return float(given) if isinstance(given, (int, float, np.number)) else given


def _count(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def _labels(labels: Any) -> np.ndarray:
    found = np.array(labels)
    found.flags.writeable = False
    return found
