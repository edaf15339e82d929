"""CatBoost: models and their files, read and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..library import Format, Library

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..oracles import Oracle


class CatBoost(Library):
    name = package = "catboost"

    def formats(self) -> tuple[Format, ...]:
        from .read import looks_like_catboost, read_catboost_bytes

        return (Format("CatBoost", looks_like_catboost, read_catboost_bytes),)

    def read(self, model: Any) -> DecisionMachine:
        from .read import read_catboost

        return read_catboost(model)

    def open(self, package: Any, data: bytes) -> Any:
        import tempfile
        from pathlib import Path

        from .objectives import CLASSIFICATION
        from .read_cbm import MAGIC

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
            if _loss_of(plain) in CLASSIFICATION:
                return package.CatBoostClassifier().load_model(str(path), format=kind)
            return package.CatBoostRegressor().load_model(str(path), format=kind)

    def oracle(self, model: Any, machine: DecisionMachine) -> Oracle:
        from .ask import CatBoostOracle

        return CatBoostOracle(model, machine)

    def predictor(self, model: Any) -> Callable[[Any, int], Any]:
        from .ask import predictor

        return predictor(model)


def _loss_of(model: Any) -> str:
    """The name of the loss that a model was trained with, without its parameters."""
    return str(model.get_all_params().get("loss_function", "")).split(":")[0]


LIBRARY = CatBoost()
