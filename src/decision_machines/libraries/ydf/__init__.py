"""YDF (Yggdrasil Decision Forests): models, their folders and bytes, read and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Folder, Format, Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class YDF(Library):
    name = package = "ydf"
    releases = RELEASES

    def formats(self) -> tuple[Format, ...]:
        from ..library import MARKED
        from .parts import looks_like_serialized
        from .read import read_ydf_bytes

        return (Format("YDF's serialised bytes", looks_like_serialized, read_ydf_bytes, MARKED),)

    def folders(self) -> tuple[Folder, ...]:
        from .parts import looks_like_folder
        from .read import read_ydf_folder

        return (Folder("YDF model", looks_like_folder, read_ydf_folder),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_ydf

        return read_ydf(model)

    def open(self, package: Any, data: bytes) -> Any:
        return package.deserialize_model(data)

    def open_folder(self, package: Any, folder: Path) -> Any:
        return package.load_model(str(folder))

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import YDFOracle

        return YDFOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = YDF()
