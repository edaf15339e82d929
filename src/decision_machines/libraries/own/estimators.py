"""Our own fitted estimators: their machine, and what they answer themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import InputError, UnsupportedModelError
from ...machine import Assembly, DecisionMachine, single
from ...machine.coded import coded
from ..oracles import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from jaxtyping import Float

ANSWERS = ("predict", "predict_proba")


def read_estimator(model: Any) -> DecisionMachine | Assembly:
    """The machine of a fitted estimator, or its soft trees: what the estimator answers with."""
    kind = type(model).__name__
    doing = f"reading a {kind}"
    if kind == "SoftMachine":
        return model.frozen()  # type: ignore[no-any-return]
    machine: DecisionMachine | Assembly | None = getattr(model, "machine_", None)
    if not isinstance(machine, DecisionMachine):
        if kind not in INSTEAD and hasattr(model, "fit"):
            raise InputError(doing, "it is not fitted", "call fit first")
        raise UnsupportedModelError(
            doing, "it has no machine_ that answers for it", INSTEAD.get(kind, OTHERWISE)
        )
    if getattr(model, "soft_", None) is not None:
        machine = getattr(model, "soft_machine_", None)
        if machine is None:
            raise UnsupportedModelError(
                doing,
                "it predicts with a soft machine (soft=True) of linear leaves, in torch",
                "use its hard tree, model.machine_, or fit with soft=False",
            )
    for name in ANSWERS:
        owner = next((cls for cls in type(model).__mro__ if name in vars(cls)), None)
        if owner is not None and owner.__module__.split(".")[0] != __package__.split(".")[0]:
            raise UnsupportedModelError(
                doing,
                f"it has a {name} of its own",
                f"use model.machine_, and do what {name} does to the machine's answers",
            )
    return machine


OTHERWISE = "pass a fitted estimator of this library, or a machine"
INSTEAD = {
    "TemplateCodeClassifier": "it combines learners of two classes: convert them one by one",
    "Tuned": "use what was tuned, tuned.machine",
}
"""Classes that hold no machine of their own: what to do."""


class EstimatorOracle(Oracle):
    """The estimator's own machine, walked down test by test instead of by the native engine."""

    compared = "values and margins of its machine_"

    def __init__(self, model: Any, machine: DecisionMachine) -> None:
        super().__init__(model, machine)
        self.theirs = coded(single(read_estimator(model), "asking an estimator"))

    @property
    def n_trees(self) -> int:
        return self.theirs.n_trees

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m k"]:
        output = self.output_of_tree(self.theirs.output)
        return replace(self.theirs.tree(tree), output=output).margin(X, engine="walk")

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        return self.theirs.margin(X, engine="walk")


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """The estimator's own `predict`."""

    def predict(X: Any, threads: int) -> Any:
        if "n_threads" in model.get_params():
            model.set_params(n_threads=threads)
        return model.predict(X)

    return predict
