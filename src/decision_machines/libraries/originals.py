"""A model file opened by the library that wrote it, to compare a machine with."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError, InputError, MissingLibraryError, ModelFormatError
from ..machine import Assembly, DecisionMachine
from .formats import read_file
from .registry import folders, formats

if TYPE_CHECKING:
    import os

    from .library import Folder, Format, Library


def open_original(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """The source library's own object of a model file.

    Raises
    ------
    MissingLibraryError
        Where that library is not installed; the message names the extra.
    """
    found = read_file(path, trust=trust)
    if not isinstance(found, (DecisionMachine, Assembly)):
        return found
    folder = Path(path) if Path(path).is_dir() else None
    library: Library
    kind: Folder | Format
    if folder is not None:
        library, kind = next(pair for pair in folders() if pair[1].looks_like(folder))
    else:
        data = Path(path).read_bytes()
        library, kind = next(pair for pair in formats() if pair[1].looks_like(data))
    if library.package is None or not library.opens_its_files:
        raise InputError(
            f"opening {path} as its own library does",
            f"it is a {kind.name}: this library is its own",
            "give the model file that the machine was converted from",
        )
    try:
        package = importlib.import_module(library.package)
    except ImportError:
        raise MissingLibraryError(
            f"opening {path} as its own library does",
            f"{library.package} is not installed",
            f"pip install 'decision-machines[{library.name}]'",
        ) from None
    try:
        return (
            library.open(package, data) if folder is None else library.open_folder(package, folder)
        )
    except (DecisionMachinesError, MemoryError):
        raise
    except Exception as error:
        raise ModelFormatError(
            f"opening {path} with {library.package}",
            f"the library refuses it: {error}",
            "check that the installed version can read this file",
        ) from None
