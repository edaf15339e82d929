"""Schedules of the temperature: from a soft machine to one that is nearly a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InputError
from .build import check_tau

if TYPE_CHECKING:
    from .module import SoftMachine


class Annealing:
    """Lowers τ by one factor at every step, from `start` to `end` in `steps` steps.

    Used as a learning-rate scheduler is: ``anneal.step()`` after each optimiser step.

    Parameters
    ----------
    net
        What `DecisionMachine.soften` gave; its `tau` is set to `start` at once.
    start, end
        Temperatures above 0.
    steps
        How many steps lead from one to the other.

    Examples
    --------
    >>> import decision_machines as dm
    >>> net = dm.figure_one().soften("soft_tree")
    >>> anneal = Annealing(net, start=1.0, end=0.01, steps=2)
    >>> for _ in range(3):
    ...     print(round(net.tau, 6))
    ...     anneal.step()
    1.0
    0.1
    0.01
    """

    def __init__(self, net: SoftMachine, *, start: float, end: float, steps: int) -> None:
        self.net, self.start, self.end = net, check_tau(start), check_tau(end)
        if not isinstance(steps, int) or steps < 1:
            raise InputError(
                "annealing the temperature", f"steps={steps!r}", "use a whole number of at least 1"
            )
        self.steps, self.done = steps, 0
        net.tau = start

    def step(self) -> None:
        """One step on; τ stays at `end` afterwards."""
        self.done = min(self.done + 1, self.steps)
        self.net.tau = self.start * (self.end / self.start) ** (self.done / self.steps)

    def state_dict(self) -> dict[str, float]:
        return {"start": self.start, "end": self.end, "steps": self.steps, "done": self.done}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.start, self.end = state["start"], state["end"]
        self.steps, self.done = int(state["steps"]), int(state["done"]) - 1
        self.step()
