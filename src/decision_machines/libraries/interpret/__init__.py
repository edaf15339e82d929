"""InterpretML: explainable boosting machines, read and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class Interpret(Library):
    name = package = "interpret"
    releases = RELEASES

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_interpret

        return read_interpret(model)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import InterpretOracle

        return InterpretOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = Interpret()
