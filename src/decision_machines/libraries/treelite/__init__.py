"""Treelite: models and checkpoints, read and asked, and models written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Format, Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class Treelite(Library):
    name = package = "treelite"
    releases = RELEASES

    def formats(self) -> tuple[Format, ...]:
        from .checkpoint import looks_like_checkpoint
        from .read import read_treelite_bytes

        return (Format("Treelite checkpoint", looks_like_checkpoint, read_treelite_bytes),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_treelite

        return read_treelite(model)

    def open(self, package: Any, data: bytes) -> Any:
        return package.Model.deserialize_bytes(data)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import TreeliteOracle

        return TreeliteOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = Treelite()
