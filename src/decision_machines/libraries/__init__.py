"""The libraries room: the models and files of other libraries, read, written and asked.

A folder for each library, with its `read`, `write`, `ask` (the library's own answers) and
`objectives`; the folder's `LIBRARY` says what there is, and `registry` finds the folders. Files of
this room hold what several libraries share. A reader is exact: a field that changes a prediction is
read or refused, never ignored. A writer is exact or refuses: what the target cannot say is named
with the field, the tree and the test, and a way out. `to_onnx` and `to_treelite` also write what
differs in the last digits, and warn with the cause.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, InputError, InvariantError
from ..machine import Assembly, DecisionMachine
from .formats import broken, read_content, read_file
from .registry import library_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["convert", "load"]


def convert(
    model: Any, X: Any = None, *, monotone: Collection[Any] = ()
) -> DecisionMachine | Assembly:
    """The machine that answers as `model` does, to the bit.

    Parameters
    ----------
    model
        A fitted tree model of a supported library, or the content of a model file as bytes or
        text. A machine is returned as it is. The steps of a scikit-learn Pipeline before its model
        are folded into the tests: the machine reads what the pipeline reads. A model made of models
        (a vote, a calibration, a stack) becomes an `Assembly`, which predicts and is saved as a
        machine does.
    X
        For a pipeline: some rows as they will be given. Its steps compute in float32 where columns
        are of float32; by default columns are taken to be of float64 or whole numbers, and others
        are refused when they come.
    monotone
        For a pipeline: steps that we do not know and that you declare to take every column by
        itself and never to fall (or never to rise): their names, classes or functions. A false
        claim is refused here where it shows, and found by `dm.certify`.

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
    if isinstance(model, (DecisionMachine, Assembly)):
        return model
    if isinstance(model, os.PathLike):
        raise InputError("converting a model", f"a path, {model}", f"use dm.load({str(model)!r})")
    if isinstance(model, (bytes, bytearray, memoryview, str)):
        return _of_content(lambda: convert(read_content(_as_bytes(model))), "a model's content")
    library = library_of(model, "converting a model")
    if X is None and not monotone:
        return library.read(model)
    return library.read_with(model, X, monotone)


def load(path: str | os.PathLike[str], *, trust: bool = False) -> DecisionMachine | Assembly:
    """The machine, or the assembly, of a model file, told apart by its content, never by its name.

    Parameters
    ----------
    path
        Our own file (`.dm`, see `DecisionMachine.save`), or one of XGBoost (JSON or UBJSON),
        LightGBM (text), CatBoost (cbm or JSON), ONNX, Treelite (a checkpoint), YDF (a folder, or
        what `serialize` gives), Spark MLlib (a folder), or scikit-learn or
        InterpretML models (skops, pickle, joblib).
    trust
        A pickle or joblib file can run any code that its writer put in it, as soon as it is read.
        Such a file is refused unless this is True.

    Raises
    ------
    InputError
        Where there is no such file, or it is a pickle and `trust` is False.
    ModelFormatError
        Where the file is of no kind we know, or truncated, or edited.
    """
    return _of_content(lambda: convert(read_file(path, trust=trust)), str(path))


def _of_content(
    read: Callable[[], DecisionMachine | Assembly], source: str
) -> DecisionMachine | Assembly:
    """What `read` gives; whatever goes wrong in it, except for memory, is the content's fault."""
    try:
        return read()
    except InvariantError as error:
        raise broken(source, error.found) from error
    except (DecisionMachinesError, MemoryError):
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
