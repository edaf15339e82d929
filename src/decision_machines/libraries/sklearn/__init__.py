"""scikit-learn: tree models and their files (skops, pickle), read, written and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import MARKED, Format, Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ...machine import Assembly, DecisionMachine
    from ..oracles import Oracle


class ScikitLearn(Library):
    name = package = "sklearn"
    releases = RELEASES

    def formats(self) -> tuple[Format, ...]:
        from .pickles import looks_like_pickle, refuse_pickle
        from .skops import looks_like_skops, read_skops_bytes

        return (
            Format("skops", looks_like_skops, read_skops_bytes, MARKED),
            Format("pickle or joblib", looks_like_pickle, refuse_pickle, MARKED),
        )

    def read(self, model: Any) -> DecisionMachine | Assembly:
        from .read import read_sklearn

        return read_sklearn(model)

    def read_with(
        self, model: Any, X: Any, monotone: Collection[Any]
    ) -> DecisionMachine | Assembly:
        from .read import read_sklearn

        return read_sklearn(model, X, monotone)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import oracle

        return oracle(model, machine)

    def members(self, model: Any) -> list[Any]:
        from .pipelines.ask import members_of

        return members_of(model)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = ScikitLearn()
