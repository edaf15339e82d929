"""Our own: `.dm` files, read and written (`machine.schema` says what they hold), and estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import MARKED, Format, Library, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import Assembly, DecisionMachine
    from ..oracles import Oracle


class Own(Library):
    name = "own"
    package = "decision_machines"
    opens_its_files = False

    def formats(self) -> tuple[Format, ...]:
        from .read import looks_like_dm, read_dm_bytes

        return (Format("decision machine (.dm)", looks_like_dm, read_dm_bytes, MARKED),)

    def targets(self) -> tuple[Target, ...]:
        from .write import dm_content

        return (Target("dm", (".dm",), dm_content),)

    def read(self, model: Any) -> DecisionMachine | Assembly:
        from .estimators import read_estimator

        return read_estimator(model)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .estimators import EstimatorOracle

        return EstimatorOracle(model, machine)

    def members(self, model: Any) -> list[Any]:
        """None: soft trees are compared as a whole."""
        return []

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .estimators import predictor

        return predictor(model)


LIBRARY = Own()
