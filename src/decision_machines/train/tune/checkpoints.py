"""What a run has done so far, in a file: written whole after every epoch, and no code in it.

A checkpoint belongs to one run: it says with which machine, which rows and which options it was
written, each by name, and a run that differs in any of them is refused with the names of those that
differ. A loss of the user's own is a function, which has no content to compare: the source's losses
under it stand for it.
"""

from __future__ import annotations

import io
import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ...errors import InputError
from ...files.atomic import write_atomically
from ...machine.digest import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2
"""1 had one fingerprint for all that was given, and left groups, outputs and selections out."""
DOING = "going on from a checkpoint"
CLOSE = 1e-6
"""How far numbers that were computed may differ: another processor may round differently."""


@dataclass(frozen=True)
class Identity:
    """All that decides a run, by the names that a user knows it by."""

    content: dict[str, str]
    """Name → digest of what was given under it."""
    computed: dict[str, float]
    """Name → a number that must come out again."""

    @classmethod
    def of(cls, given: Mapping[str, Any], computed: Mapping[str, float]) -> Identity:
        """Of machines, tensors and plain values by name, and of numbers computed from them."""
        return cls({name: digest(_plain(value)) for name, value in given.items()}, dict(computed))

    def differing(self, other: Identity) -> list[str]:
        """Names under which the other run has something else."""
        names = dict.fromkeys([*self.content, *other.content])
        found = [name for name in names if self.content.get(name) != other.content.get(name)]
        if found:
            return found  # what is computed from these differs for that reason
        names = dict.fromkeys([*self.computed, *other.computed])
        return [
            name
            for name in names
            if not math.isclose(
                self.computed.get(name, math.nan), other.computed.get(name, math.nan), rel_tol=CLOSE
            )
        ]


def save(path: str | os.PathLike[str], identity: Identity, state: dict[str, Any]) -> None:
    """Write the state of a run; the file is there whole or as it was."""
    buffer = io.BytesIO()
    torch.save(
        {
            "version": VERSION,
            "content": identity.content,
            "computed": identity.computed,
            "state": state,
        },
        buffer,
    )
    write_atomically(path, [buffer.getbuffer()])


def load(path: str | os.PathLike[str], identity: Identity) -> dict[str, Any] | None:
    """The state that `save` wrote, or None where there is no file.

    Raises
    ------
    InputError
        Where the file is not a checkpoint, or one of another run: with what differs.
    """
    if not Path(path).exists():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of pickles that it then refuses
            found = torch.load(path, map_location="cpu", weights_only=True)
        version, state = found["version"], found["state"]
        owner = Identity(found["content"], found["computed"]) if version == VERSION else identity
    except MemoryError:
        raise
    except Exception as error:
        raise InputError(
            DOING,
            f"{path} is not a checkpoint, or a damaged one ({type(error).__name__})",
            "name another file, or start without resume",
        ) from error
    if version != VERSION:
        raise InputError(
            DOING,
            f"{path} has version {version}; this is version {VERSION}",
            "start without resume",
        )
    differing = owner.differing(identity)
    if differing:
        raise InputError(
            DOING,
            f"{path} was written by another run, with another {', another '.join(differing)}",
            "call with what it was written with, or start without resume",
        )
    assert isinstance(state, dict)
    return state


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
