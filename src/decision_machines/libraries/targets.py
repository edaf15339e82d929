"""Machines into files of other libraries' models, the kind told by the file's suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, UnsupportedModelError
from ..files.atomic import write_atomically
from ..machine import Assembly
from .registry import targets

if TYPE_CHECKING:
    import os

    from ..machine import DecisionMachine


def target_of(path: str | os.PathLike[str], to: str | None = None) -> str:
    """The kind of file that `to` names, or else the path's suffix."""
    known = targets()
    suffix = Path(path).suffix.lower()
    kind = to or next((name for name, t in known.items() if suffix in t.suffixes), None)
    if kind is None or kind not in known:
        suffixes = ", ".join(s for t in known.values() for s in t.suffixes)
        raise InputError(
            f"writing {path}",
            f"the suffix {suffix!r} does not name a kind of model that we write"
            if to is None
            else f"{to!r} is not a kind of model that we write",
            f"use one of {suffixes}, or name the kind: {', '.join(known)}",
        )
    return kind


def write_file(
    machine: DecisionMachine | Assembly,
    path: str | os.PathLike[str],
    to: str | None = None,
    **options: Any,
) -> str:
    """Write the machine as a model file and give the name of its kind; atomically.

    Parameters
    ----------
    to
        The name of a kind; by default the one that the path's suffix says.
    options
        Of the writer: `margins`, and for ONNX `operator` and `labels`.
    """
    kind = target_of(path, to)
    if isinstance(machine, Assembly) and kind != "dm":
        raise UnsupportedModelError(
            f"writing {path}",
            f"an assembly, {machine}, and {kind} holds one machine",
            "write a .dm file, or one of its machines, assembly.machines[0]",
        )
    suffix = Path(path).suffix.lower()
    write_atomically(path, [targets()[kind].content(machine, suffix, **options)])
    return kind
