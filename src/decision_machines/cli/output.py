"""The model file that a command writes: refused before the work, not after it."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ..errors import InexactWarning, InputError


def check_output(path: Path, *inputs: str | os.PathLike[str] | None) -> None:
    """Refuse a file that could not be written, or that the command reads."""
    doing = f"writing {path}"
    folder = path.resolve().parent
    if any(given is not None and path.resolve() == Path(given).resolve() for given in inputs):
        raise InputError(
            doing, "the command reads this file", "name another, so that both are kept"
        )
    if not folder.is_dir():
        raise InputError(doing, f"there is no folder {folder}", "make it first, or name another")
    if path.is_dir():
        raise InputError(doing, "it is a folder", "name a file")
    try:
        # Permissions do not say all: a file system may take no files, whoever asks.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        found = f"nothing can be written in {folder} ({error.strerror or error})"
        raise InputError(doing, found, "name another folder") from None


def write_model(machine: Any, path: Path, kind: str) -> list[str]:
    """Write the file, and say on stderr what may differ in the last digits; gives what was said."""
    from ..libraries.targets import write_file

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_file(machine, path, kind)
    said = [str(w.message) for w in caught if issubclass(w.category, InexactWarning)]
    for text in said:
        Console(stderr=True).print(Text.assemble(("warning ", "bold yellow"), text), soft_wrap=True)
    return said


def check_writable(machine: Any, path: Path, kind: str) -> None:
    """Refuse a kind of file that cannot say what this machine says."""
    from ..libraries.targets import write_file

    if kind == "dm":
        return
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        write_file(machine, Path(folder) / f"model{path.suffix}", kind)
