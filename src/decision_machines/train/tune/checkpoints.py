"""What a run has done so far, in a file: written whole after every epoch, and no code in it.

A checkpoint belongs to one machine, one set of rows and one set of options; its fingerprint says
which, and another's is refused.
"""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ...errors import InputError
from ...files.atomic import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1
DOING = "going on from a checkpoint"


def fingerprint(parts: Iterable[Any]) -> str:
    """A short name for arrays, tensors and options: equal for equal ones."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, torch.Tensor):
            part = part.detach().cpu().numpy()
        if hasattr(part, "tobytes"):
            found.update(f"{part.dtype}{part.shape}".encode())
            found.update(part.tobytes())
        else:
            found.update(repr(part).encode())
    return found.hexdigest()


def save(path: str | os.PathLike, name: str, state: dict[str, Any]) -> None:
    """Write the state of the run of this fingerprint; the file is there whole or as it was."""
    buffer = io.BytesIO()
    torch.save({"version": VERSION, "fingerprint": name, "state": state}, buffer)
    write_atomically(path, [buffer.getbuffer()])


def load(path: str | os.PathLike, name: str) -> dict[str, Any] | None:
    """The state that `save` wrote, or None where there is no file.

    Raises
    ------
    InputError
        Where the file is no checkpoint, or one of another run.
    """
    if not Path(path).exists():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of pickles that it then refuses
            found = torch.load(path, map_location="cpu", weights_only=True)
        version, owner, state = found["version"], found["fingerprint"], found["state"]
    except Exception as error:
        raise InputError(
            DOING,
            f"{path} is no checkpoint, or a damaged one ({type(error).__name__})",
            "name another file, or start without resume",
        ) from error
    if version != VERSION or owner != name:
        raise InputError(
            DOING,
            f"{path} was written with another machine, other rows or other options"
            if version == VERSION
            else f"{path} has version {version}; this is version {VERSION}",
            "call with what it was written with, or start without resume",
        )
    return state
