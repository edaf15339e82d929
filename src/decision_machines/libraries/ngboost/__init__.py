"""NGBoost: boosted trees that predict the parameters of distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import Assembly, DecisionMachine
    from ..oracles import Oracle


class NGBoost(Library):
    name = package = "ngboost"
    releases = RELEASES

    def read(self, model: Any) -> Assembly:
        from .read import read_ngboost

        return read_ngboost(model)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import NGBoostOracle

        return NGBoostOracle(model, machine)

    def members(self, model: Any) -> list[Any]:
        return [model]

    def answers(self, model: Any) -> dict[str, Callable[[Any], Any]]:
        from .ask import answers

        return answers(model)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        return lambda X, _: model.predict(X)


LIBRARY = NGBoost()
