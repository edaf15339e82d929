"""What a counterfactual is to reach: another answer, a certain label, a range of values.

A goal is checked on rows by `machine.predict` itself. For forests it is also a few linear functions
of the leaves (`goal_functions`), by which boxes of inputs are ruled out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, UnsupportedModelError
from ...machine.coded import coded
from .goal_functions import with_functions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from ...machine import DecisionMachine

DOING = "searching for a counterfactual"


@dataclass(frozen=True)
class Goal:
    """A target for predictions, and what can be said of it from sums over trees."""

    machine: DecisionMachine
    before: Any
    """The prediction of the input itself."""
    target: Any
    """None for any other answer, a label, or (low, high) for a value."""
    W: Float[np.ndarray, "L q"] = field(default_factory=lambda: np.empty((0, 0)))
    """What each leaf adds to each of q functions of the trees."""
    constant: Float[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0))
    slack: Float[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0))
    """By how much rounding may make the machine's own sums differ from these."""
    need: Float[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0))
    """What each function must reach. Compared, not subtracted: that would round."""
    strict: Bool[np.ndarray, "q"] = field(default_factory=lambda: np.empty(0, bool))
    """Functions that must be above that: where two classes tie, the first one wins."""
    ways: tuple[tuple[int, ...], ...] = ()
    """The goal is met only where all functions of one of these reach their need, rounding apart."""

    def met(self, X: Float[np.ndarray, "m n"]) -> Bool[np.ndarray, "m"]:
        """Whether the machine's own prediction for each row meets the goal."""
        return self.answers(predicted(self.machine, X))

    def answers(self, found: np.ndarray) -> Bool[np.ndarray, "m"]:
        """Whether each of these predictions meets the goal."""
        found = _flat(found)
        if self.target is None:
            differs = found != self.before
            if found.dtype.kind == "f":
                differs &= ~((found != found) & (self.before != self.before))
            return np.asarray(np.any(differs.reshape(len(found), -1), axis=1))
        if isinstance(self.target, tuple):
            low, high = self.target
            return np.asarray((found >= low) & (found <= high))
        return np.asarray(found == self.target)


def predicted(machine: DecisionMachine, X: np.ndarray) -> np.ndarray:
    """`machine.predict` for rows of numbers, in which labels already are codes."""
    return _flat(np.asarray(coded(machine).predict(X, n_threads=1)))


def _flat(found: np.ndarray) -> np.ndarray:
    """One answer for each row where a source gives it as a column."""
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def goal(machine: DecisionMachine, x: Float[np.ndarray, "n"], target: Any = None) -> Goal:
    """The goal for one input; with the functions that bound it, where the machine is a forest."""
    if machine.linear is not None:
        raise UnsupportedModelError(
            DOING,
            "the machine's leaves are linear functions, so an answer changes within a leaf",
            "use a machine whose leaves are constants",
        )
    before = predicted(machine, x[None])
    if before.ndim > 1 and target is not None:
        raise InputError(
            DOING,
            f"the target {target!r} for a machine with {before.shape[1]} answers",
            "leave the target out: any other answer then counts",
        )
    found = Goal(machine, before[0], _checked(machine, before, target))
    return found if machine.n_trees <= 1 else with_functions(found)


def _checked(machine: DecisionMachine, before: np.ndarray, target: Any) -> Any:
    if target is None:
        return None
    if isinstance(target, (tuple, list)):
        try:
            low, high = (float(v) for v in target)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if before.dtype.kind != "f" or not low <= high:
            raise InputError(
                DOING,
                f"the target {target!r}",
                "give (low, high) for a machine that predicts values, else a label",
            )
        return (low, high)
    classes = machine.output.classes
    labels = [-1, 1] if classes is None else classes[0].tolist()
    if before.dtype.kind == "f" and classes is None:
        raise InputError(
            DOING, f"the target {target!r}", "give a range of values: target=(low, high)"
        )
    if target not in labels:
        shown = ", ".join(repr(v) for v in labels[:12])
        raise InputError(DOING, f"the target {target!r}", f"use one of the labels {shown}")
    return target
