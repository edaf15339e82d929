"""The processor: how many of its cores this process may use, and which kernels it runs."""

from __future__ import annotations

import os
from typing import Any

from ... import _native
from ...errors import InputError

VARIABLE = "DECISION_MACHINES_TARGET"


def cpu_count() -> int:
    """Processors that this process may run on, which may be fewer than the computer has.

    Examples
    --------
    >>> cpu_count() >= 1
    True
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows do not say
        return os.cpu_count() or 1


def target() -> str:
    """The target of native kernels: DECISION_MACHINES_TARGET, or the fastest that runs here.

    Raises
    ------
    InputError
        Where the variable names a target that is unknown, or that this processor cannot run.

    Examples
    --------
    >>> target() in _native.targets()
    True
    """
    names: list[str] = _native.targets()
    given = os.environ.get(VARIABLE, "")
    wanted = given.replace("+", "_") or "auto"
    if wanted == "auto":
        return names[-1]
    if wanted not in names:
        raise InputError(
            "choosing the target of the native kernels",
            f"the environment variable {VARIABLE}={given!r}",
            f"unset it, or use one of {', '.join(names)} or auto",
        )
    return wanted


def engine_info() -> dict[str, Any]:
    """What the native engine runs on: its target, the targets it could run, its threads.

    Examples
    --------
    >>> import decision_machines as dm
    >>> sorted(dm.engine_info())
    ['available', 'target', 'threads']
    """
    return {"target": target(), "available": _native.targets(), "threads": cpu_count()}
