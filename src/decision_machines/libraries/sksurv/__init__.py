"""scikit-survival: survival trees and forests, and boosted trees, read and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import Assembly, DecisionMachine
    from ..oracles import Oracle


class ScikitSurvival(Library):
    name = package = "sksurv"
    releases = RELEASES

    def read(self, model: Any) -> DecisionMachine | Assembly:
        from .read import read_survival

        return read_survival(model)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import oracle

        return oracle(model, machine)

    def members(self, model: Any) -> list[Any]:
        from .read import n_machines

        return [model] * n_machines(model)

    def answers(self, model: Any) -> dict[str, Callable[[Any], Any]]:
        from .ask import answers

        return answers(model)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from ..sklearn.ask import predictor

        return predictor(model)


LIBRARY = ScikitSurvival()
