"""quantile-forest: forests that predict quantiles of the targets in their leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import Assembly, DecisionMachine
    from ..oracles import Oracle


class QuantileForest(Library):
    name = package = "quantile_forest"
    releases = RELEASES

    def read(self, model: Any) -> Assembly:
        from .read import read_quantile_forest

        return read_quantile_forest(model)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from ..sklearn.ask import TreesOracle

        return TreesOracle(model, machine)

    def members(self, model: Any) -> list[Any]:
        return [model]

    def answers(self, model: Any) -> dict[str, Callable[[Any], Any]]:
        from ...run.quantiles import CERTIFIED

        return {
            "predict": model.predict,
            "predict_quantiles": lambda X: model.predict(X, quantiles=list(CERTIFIED)),
        }

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from ..sklearn.ask import predictor

        return predictor(model)


LIBRARY = QuantileForest()
