"""Machines into files of other libraries' models, the kind told by the file's suffix."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from .atomic import write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ..machine import DecisionMachine


class Target(NamedTuple):
    """A kind of file: its suffixes, and who makes its content."""

    suffixes: tuple[str, ...]
    module: str
    content: Callable[..., bytes]


def _dm(room: Any, machine: DecisionMachine, suffix: str, **options: Any) -> bytes:
    return room.dm_bytes(machine)


def _onnx(room: Any, machine: DecisionMachine, suffix: str, **options: Any) -> bytes:
    return room.to_onnx(machine, **options).SerializeToString()


def _xgboost(room: Any, machine: DecisionMachine, suffix: str, **options: Any) -> bytes:
    if suffix != ".ubj":
        return room.xgboost_json(machine, **options)
    model = room.to_xgboost(machine, **options)
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return bytes(booster.save_raw("ubj"))


def _lightgbm(room: Any, machine: DecisionMachine, suffix: str, **options: Any) -> bytes:
    return room.lightgbm_text(machine, **options).encode()


TARGETS: dict[str, Target] = {
    "dm": Target((".dm",), "dm_file", _dm),
    "onnx": Target((".onnx",), "onnx", _onnx),
    "xgboost": Target((".json", ".ubj"), "xgboost", _xgboost),
    "lightgbm": Target((".txt",), "lightgbm", _lightgbm),
}
"""What a machine can be written as, and the suffixes that say so."""


def target_of(path: str | os.PathLike, to: str | None = None) -> str:
    """The kind of file that `to` names, or else the path's suffix."""
    suffix = Path(path).suffix.lower()
    kind = to or next((name for name, t in TARGETS.items() if suffix in t.suffixes), None)
    if kind is None or kind not in TARGETS:
        known = ", ".join(s for t in TARGETS.values() for s in t.suffixes)
        raise InputError(
            f"writing {path}",
            f"the suffix {suffix!r} says no kind of model"
            if to is None
            else f"{to!r} is no kind of model that we write",
            f"use one of {known}, or name the kind: {', '.join(TARGETS)}",
        )
    return kind


def write_file(
    machine: DecisionMachine, path: str | os.PathLike, to: str | None = None, **options: Any
) -> str:
    """Write the machine as a model file and give the name of its kind; atomically.

    Parameters
    ----------
    to
        A name of `TARGETS`; by default the one that the path's suffix says.
    options
        Of the writer: `margins`, and for ONNX `operator`.
    """
    kind = target_of(path, to)
    target = TARGETS[kind]
    room = importlib.import_module(f"{__package__}.{target.module}")
    suffix = Path(path).suffix.lower()
    write_atomically(path, [target.content(room, machine, suffix, **options)])
    return kind
