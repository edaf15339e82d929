"""XGBoost: boosters, scikit-learn wrappers and their files, read, written and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Format, Library, Target
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class XGBoost(Library):
    name = package = "xgboost"
    releases = RELEASES

    def formats(self) -> tuple[Format, ...]:
        from .read import looks_like_xgboost, read_xgboost_binary, read_xgboost_bytes
        from .read_binary import looks_like_binary

        return (
            Format("XGBoost JSON or UBJSON", looks_like_xgboost, read_xgboost_bytes),
            Format("XGBoost's old binary", looks_like_binary, read_xgboost_binary),
        )

    def targets(self) -> tuple[Target, ...]:
        from .write import xgboost_content

        return (Target("xgboost", (".json", ".ubj"), xgboost_content, ("margins",)),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_xgboost

        return read_xgboost(model)

    def open(self, package: Any, data: bytes) -> Any:
        booster = package.Booster()
        booster.load_model(bytearray(data))
        wrapper = WRAPPERS.get(_kind_of_wrapper(booster))
        if wrapper is None:
            return booster
        model = getattr(package, wrapper)()
        model.load_model(bytearray(data))
        return model

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import XGBoostOracle

        return XGBoostOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


WRAPPERS = {"classifier": "XGBClassifier", "regressor": "XGBRegressor", "ranker": "XGBRanker"}
"""What a scikit-learn wrapper notes in the file that it saves → its class."""


def _kind_of_wrapper(booster: Any) -> str:
    import json

    noted = booster.attr("scikit_learn")
    return "" if noted is None else str(json.loads(noted).get("_estimator_type"))


LIBRARY = XGBoost()
