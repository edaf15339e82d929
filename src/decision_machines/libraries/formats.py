"""Model files, told apart by their content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import InputError, ModelFormatError
from .registry import folder_kind, folders, formats

COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"(\xb5/\xfd")
"""How files of gzip, bzip2, xz and zstandard begin."""


def read_file(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """The machine in a file, or the model that it holds.

    Parameters
    ----------
    trust
        Whether a pickle may be read, which runs the code in it.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(
            "loading a model file",
            f"an object of type {type(path).__name__} where a path is needed",
            "pass the file's path to dm.load, and models or bytes to dm.convert",
        )
    if _is_folder(Path(path)):
        return _read_folder(Path(path))
    data = _bytes_of(Path(path))
    from .sklearn import pickles

    if trust and pickles.looks_like_pickle(data):
        return pickles.read_pickle(data, str(path))
    return read_content(data, str(path))


def read_content(data: bytes, source: str = "a model's content") -> Any:
    """The machine in a file's bytes, or the model that they hold."""
    if not data:
        raise ModelFormatError(
            f"reading {source}", "it is empty", "check that the model was written to its end"
        )
    for _, kind in formats():
        if kind.looks_like(data):
            return kind.read(data, source)
    if data.startswith(COMPRESSED):
        raise ModelFormatError(
            f"reading {source}", "it is compressed, and no joblib file", "decompress it first"
        )
    raise ModelFormatError(
        f"reading {source}",
        f"it is not a model file we know; it begins {data[:24]!r}",
        f"give a file of one of these kinds: {', '.join(kind.name for _, kind in formats())}",
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False  # what is wrong with it is said when it is read


def _read_folder(path: Path) -> Any:
    found = folder_kind(path)
    if found is None:
        raise InputError(
            f"loading {path}",
            "it is a folder, and not one of a model",
            "give a model file, or a folder of one of these kinds: "
            + ", ".join(kind.name for _, kind in folders()),
        )
    return found[1].read(path, str(path))


def _bytes_of(path: Path) -> bytes:
    shown = str(path)
    doing = f"loading {shown if len(shown) < 300 else shown[:100] + ' …'}"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(doing, "there is no such file", "check the path") from None
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise InputError(
            doing, f"it cannot be read ({found})", "check the path; content goes to dm.convert"
        ) from None


def broken(source: str, found: str) -> ModelFormatError:
    """The error for a file that is of a known kind but does not hold what it should."""
    return ModelFormatError(
        f"reading {source}", found, "check that the model file is whole and unedited"
    )
