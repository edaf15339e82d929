"""Asking scikit-survival."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..sklearn.ask import TreesOracle
from .read import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float

    from ...machine import DecisionMachine
    from ..oracles import Oracle

FEW = 20
"""Rows that are asked about one by one, too."""


def oracle(model: Any, machine: DecisionMachine) -> Oracle:
    """The oracle of one machine of a model; its source says which of the answers it gives."""
    is_forest = any(machine.source.endswith(f", {part}") for part in PARTS)
    return (PartOracle if is_forest else BoostingOracle)(model, machine)


class PartOracle(TreesOracle):
    """The trees' leaves, and the risk or function of time that the whole model gives."""

    takes_infinity = False
    compared = "leaves and the model's own answers"

    @property
    def takes_nan(self) -> bool:  # type: ignore[override]
        return bool(self.model.__sklearn_tags__().input_tags.allow_nan)

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> None:
        """None: what one tree answers, only its leaves tell."""
        return None

    def whole(self, X: Float[np.ndarray, "m n"]) -> tuple[str, np.ndarray, np.ndarray]:
        part = next(p for p in PARTS if self.machine.source.endswith(f", {p}"))
        ours = self.machine.margin(X)
        if part == PARTS[0]:
            many = X if len(X) > 1 else np.concatenate([X, X])
            theirs = np.repeat(self.model.predict(many)[: len(X), None], ours.shape[1], axis=1)
            for i in range(min(len(X), FEW) if ours.shape[1] == 2 else 0):
                theirs[i, 1] = self.model.predict(X[i : i + 1])[0]
            theirs[FEW:, 1:] = ours[FEW:, 1:]
            return "risk", ours, theirs
        return part, ours, np.asarray(answers(self.model)[FUNCTIONS[part]](X))


class BoostingOracle(TreesOracle):
    takes_infinity = takes_nan = False
    compared = "leaves and predictions"

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> None:
        """None: what the model makes of a tree's value, only its prediction tells."""
        return None

    def whole(self, X: Float[np.ndarray, "m n"]) -> tuple[str, np.ndarray, np.ndarray]:
        return "prediction", self.machine.predict(X), self.model.predict(X)


FUNCTIONS = {
    "cumulative hazard": "predict_cumulative_hazard_function",
    "survival": "predict_survival_function",
}


def answers(model: Any) -> dict[str, Callable[[Any], Any]]:
    """What an assembly of the model answers, as the model does."""
    found: dict[str, Callable[[Any], Any]] = {"predict": model.predict}
    has_functions = not getattr(model, "low_memory", False)
    if hasattr(model, "_loss"):
        has_functions = model._baseline_model is not None
    if has_functions:
        for name in FUNCTIONS.values():
            found[name] = functools.partial(getattr(model, name), return_array=True)
    return found
