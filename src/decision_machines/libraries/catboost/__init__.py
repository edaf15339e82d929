"""CatBoost: models and their files, read and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Format, Library
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class CatBoost(Library):
    name = package = "catboost"
    releases = RELEASES

    def formats(self) -> tuple[Format, ...]:
        from .read import looks_like_catboost, read_catboost_bytes

        return (Format("CatBoost", looks_like_catboost, read_catboost_bytes),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_catboost

        return read_catboost(model)

    def open(self, package: Any, data: bytes) -> Any:
        import tempfile
        from pathlib import Path

        from .objectives import CLASSIFICATION, loss_of
        from .read_cbm import MAGIC, note_of

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(data)
            kind = "cbm" if data.startswith(MAGIC) else "json"
            plain = package.CatBoost().load_model(str(path), format=kind)
            # A file does not say which class wrote it: the one that fits its loss.
            if kind == "json":
                from .mend import with_numbers_of

                path, kind = Path(folder) / "mended", "cbm"
                plain.save_model(str(path), format=kind)
                path.write_bytes(with_numbers_of(data, path.read_bytes()))
            notes = {key: note_of(text) for key, text in plain.get_metadata().items()}
            if loss_of(notes) in CLASSIFICATION:
                return package.CatBoostClassifier().load_model(str(path), format=kind)
            return package.CatBoostRegressor().load_model(str(path), format=kind)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import CatBoostOracle

        return CatBoostOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


LIBRARY = CatBoost()
