"""A model file opened by the library that wrote it, to compare a machine with."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, InputError, MissingLibraryError, ModelFormatError
from ..machine import DecisionMachine
from .files import FORMATS, read_file

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


def open_original(path: str | os.PathLike, *, trust: bool = False) -> Any:
    """The source library's own object of a model file.

    Raises
    ------
    MissingLibraryError
        Where that library is not installed; the message names the extra.
    """
    found = read_file(path, trust=trust)
    if not isinstance(found, DecisionMachine):
        return found
    data = Path(path).read_bytes()
    kind = next(kind for kind in FORMATS if kind.knows(data))
    if kind.module not in OPENERS:
        raise InputError(
            f"opening {path} as its own library does",
            f"it is a {kind.name}: this library is its own",
            "give the model file that the machine was converted from",
        )
    package, opener = OPENERS[kind.module]
    try:
        library = importlib.import_module(package)
    except ImportError:
        raise MissingLibraryError(
            f"opening {path} as its own library does",
            f"{package} is not installed",
            f"pip install 'decision-machines[{kind.module}]'",
        ) from None
    try:
        return opener(library, data)
    except DecisionMachinesError:
        raise
    except Exception as error:
        raise ModelFormatError(
            f"opening {path} with {package}",
            f"the library refuses it: {error}",
            "check that the installed version can read this file",
        ) from None


def _xgboost(xgboost: Any, data: bytes) -> Any:
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    return booster


def _lightgbm(lightgbm: Any, data: bytes) -> Any:
    return lightgbm.Booster(model_str=data.decode())


def _catboost(catboost: Any, data: bytes) -> Any:
    import tempfile

    kind = "cbm" if data.startswith(b"CBM1") else "json"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(data)
        return catboost.CatBoost().load_model(str(path), format=kind)


def _onnx(onnx: Any, data: bytes) -> Any:
    return onnx.load_model_from_string(data)


OPENERS: dict[str, tuple[str, Callable[[Any, bytes], Any]]] = {
    "xgboost": ("xgboost", _xgboost),
    "lightgbm": ("lightgbm", _lightgbm),
    "catboost": ("catboost", _catboost),
    "onnx": ("onnx", _onnx),
}
"""The reader's file in this room → the package and what opens the bytes with it."""
