"""A machine as a HistGradientBoosting, which takes NaN and compares and adds in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..limits import missing_answers
from ..nodes import nodes_of
from ..rounds import rounds_of
from ..write_thresholds import double_thresholds

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from ..limits import Limits
    from ..rounds import Slot


@dataclass(frozen=True)
class Kind:
    """What a boosted model is made for."""

    loss: str
    classes: np.ndarray | None = None


def hist_gradient_boosting(machine: DecisionMachine, limits: Limits) -> Any:
    """A HistGradientBoosting, or a refusal: all else has been tried."""
    from sklearn import ensemble
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    output = machine.output
    kind = _hist_kind(machine)
    if kind is None:
        limits.refuse(
            f"output.link {output.link!r} with {len(output)} outputs, the decision "
            f"{output.decision!r}, sums in {output.dtype} divided by {output.divisor:g}: no tree "
            "model of scikit-learn answers so",
            "write the margins of one output alone, with margins=True; or use to_lightgbm, "
            "to_onnx or machine.save",
        )
    # A model without a tree is not fitted to scikit-learn: a tree of 0 takes its place.
    rounds = rounds_of(machine, limits, base_is_tree=False) or [[0.0] * len(output)]
    X, y = np.zeros((max(2, len(output)), machine.n_features)), np.arange(max(2, len(output)))
    options = {"loss": kind.loss, "max_iter": 1, "early_stopping": False}
    model: Any
    if kind.classes is None:
        model = ensemble.HistGradientBoostingRegressor(**options).fit(X, y + 1.0)
    else:
        model = ensemble.HistGradientBoostingClassifier(**options).fit(X, y)
        model.classes_ = kind.classes
    written = _HistTrees(machine, model._predictors[0][0].nodes.dtype)
    no_sets = np.zeros((0, 8), np.uint32)
    model._predictors = [
        [TreePredictor(written.nodes_of(slot), no_sets, no_sets) for slot in slots]
        for slots in rounds
    ]
    base = output.base if output.base_first else np.zeros_like(output.base)
    model._baseline_prediction = base.reshape(1, -1).copy()
    return model.set_params(max_iter=len(rounds))


def _hist_kind(machine: DecisionMachine) -> Kind | None:
    output = machine.output
    k, params = len(output), output.link_numbers
    if output.divisor != 1 or output.scale != 1 or not output.squeeze:
        return None
    if output.decision == "response" and k == 1 and not params and output.classes is None:
        return {"identity": Kind("squared_error"), "exp": Kind("poisson")}.get(output.link)
    if output.classes is None or len(output.groups) > 2 or len(output.classes[0]) != max(k, 2):
        return None
    how = (output.link, output.decision)
    if how == ("expit", "margin_above") and params in ((), (1.0,)) and k == 1:
        fits = output.decision_params in ((), (0.0,))
        return Kind("log_loss", output.classes[0]) if fits else None
    if how == ("softmax", "argmax_margin") and params == (1.0,) and k > 2:
        return Kind("log_loss", output.classes[0])
    return None


class _HistTrees:
    """The nodes of HistGradientBoosting's predictors."""

    def __init__(self, machine: DecisionMachine, dtype: np.dtype) -> None:
        nodes = nodes_of(machine)
        self.machine, self.nodes = machine, nodes
        array = np.zeros(len(nodes.test), dtype)
        array["count"] = nodes.spread(machine.structure.n_leaves, 1)
        array["feature_idx"] = nodes.spread(machine.columns.feature[machine.selection], 0)
        array["num_threshold"] = nodes.spread(double_thresholds(machine), 0.0)
        array["missing_go_to_left"] = nodes.spread(missing_answers(machine) < 0, False)
        is_leaf = nodes.leaf >= 0
        array["left"], array["right"] = np.maximum(nodes.left, 0), np.maximum(nodes.right, 0)
        array["depth"] = nodes.spread(machine.structure.depth, machine.structure.leaf_depth)
        array["is_leaf"] = is_leaf
        array["gain"] = -1.0
        self.array = array

    def nodes_of(self, slot: Slot) -> np.ndarray:
        if not isinstance(slot, tuple):
            node: np.ndarray = np.zeros(1, self.array.dtype)
            node["value"], node["is_leaf"], node["count"], node["gain"] = slot, 1, 1, -1.0
            return node
        tree, column = slot
        at = self.nodes.tree(tree)
        found = self.array[at].copy()
        is_leaf = found["is_leaf"] != 0
        found["value"][is_leaf] = self.machine.V[self.nodes.leaf[at][is_leaf], column]
        return found
