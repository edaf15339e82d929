"""Spark MLlib: models of trees and pipelines that end with them, from folders; asked by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Folder, Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class Spark(Library):
    name = "spark"
    package = "pyspark"
    releases = RELEASES

    def folders(self) -> tuple[Folder, ...]:
        from .folder import looks_like_folder
        from .read import read_spark_folder

        return (Folder("Spark model", looks_like_folder, read_spark_folder),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_spark

        return read_spark(model)

    def open_folder(self, package: Any, folder: Path) -> Any:
        from .ask import open_folder
        from .folder import stage_of

        return open_folder(folder, stage_of(folder, f"opening {folder}").metadata["class"])

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import SparkOracle

        return SparkOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = Spark()
