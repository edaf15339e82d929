"""LightGBM: Boosters, scikit-learn wrappers and model texts, read, written and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Format, Library, Target
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class LightGBM(Library):
    name = package = "lightgbm"
    releases = RELEASES

    def formats(self) -> tuple[Format, ...]:
        from .read import looks_like_lightgbm, read_lightgbm_text

        return (Format("LightGBM text", looks_like_lightgbm, read_lightgbm_text),)

    def targets(self) -> tuple[Target, ...]:
        from .write import lightgbm_content

        return (Target("lightgbm", (".txt",), lightgbm_content, ("margins",)),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_lightgbm

        return read_lightgbm(model)

    def open(self, package: Any, data: bytes) -> Any:
        return package.Booster(model_str=data.decode())

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import LightGBMOracle

        return LightGBMOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = LightGBM()
