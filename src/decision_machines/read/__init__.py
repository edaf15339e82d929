"""The read room: trained models of other libraries, and files, turned into machines exactly.

One file for each library. A field that changes a prediction is read or refused, never ignored.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, InputError, InvariantError, UnsupportedModelError
from ..machine import DecisionMachine
from .files import broken, read_content, read_file

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READERS", "convert", "load", "reader_of"]

READERS: dict[str, tuple[str, str]] = {
    "sklearn": ("sklearn", "read_sklearn"),
    "xgboost": ("xgboost", "read_xgboost"),
    "lightgbm": ("lightgbm", "read_lightgbm"),
    "catboost": ("catboost", "read_catboost"),
    "onnx": ("onnx", "read_onnx"),
}
"""The package that a model's class comes from → the file of this room and its function."""


def convert(model: Any) -> DecisionMachine:
    """The machine that answers as `model` does, to the bit.

    Parameters
    ----------
    model
        A fitted tree model of a supported library, or the content of a model file as bytes or
        text. A machine is returned as it is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> convert(model)
    DecisionMachine(1 tree, 3 leaves, depth 2, 4 features, 3 outputs;
    scikit-learn DecisionTreeClassifier)
    """
    if isinstance(model, DecisionMachine):
        return model
    if isinstance(model, os.PathLike):
        raise InputError("converting a model", f"a path, {model}", f"use dm.load({str(model)!r})")
    if isinstance(model, (bytes, bytearray, memoryview, str)):
        return _of_content(lambda: convert(read_content(_as_bytes(model))), "a model's content")
    return reader_of(model)(model)


def load(path: str | os.PathLike, *, trust: bool = False) -> DecisionMachine:
    """The machine of a model file, told apart by its content, never by its name.

    Parameters
    ----------
    path
        Our own file (`.dm`, see `DecisionMachine.save`), or one of XGBoost (JSON or UBJSON),
        LightGBM (text), CatBoost (cbm or JSON), ONNX, or scikit-learn models (skops, pickle,
        joblib).
    trust
        A pickle or joblib file runs whatever code its writer put in it, merely by being read.
        Such a file is refused unless this is True.

    Raises
    ------
    InputError
        Where there is no such file, or it is a pickle and `trust` is False.
    ModelFormatError
        Where the file is of no kind we know, or truncated, or edited.
    """
    return _of_content(lambda: convert(read_file(path, trust=trust)), str(path))


def _of_content(read: Callable[[], DecisionMachine], source: str) -> DecisionMachine:
    """What `read` gives; whatever goes wrong in it, the content is at fault."""
    try:
        return read()
    except InvariantError as error:
        raise broken(source, error.found) from error
    except DecisionMachinesError:
        raise
    except Exception as error:
        raise broken(source, f"{type(error).__name__}: {error}") from error


def _as_bytes(content: Any) -> bytes:
    if isinstance(content, str):
        if len(content) < 4096 and "\n" not in content and os.path.exists(content):
            raise InputError(
                "converting a model", f"text that names a file, {content!r}", "use dm.load"
            )
        return content.encode()
    return bytes(content)


def reader_of(model: Any) -> Callable[[Any], DecisionMachine]:
    """The reader for an object, found by the package of its class; nothing else is imported."""
    for cls in type(model).__mro__:
        found = READERS.get(cls.__module__.split(".")[0])
        if found is not None:
            module, function = found
            return getattr(importlib.import_module(f"{__name__}.{module}"), function)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    raise UnsupportedModelError(
        "converting a model",
        f"an object of type {kind}",
        f"pass a fitted tree model of {', '.join(READERS)}, or a file to dm.load",
    )
