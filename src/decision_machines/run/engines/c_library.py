"""Where the engine for programs without Python lies: a shared library, and its C header."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ... import _native
from ...errors import InputError


class CLibrary(NamedTuple):
    """Files to link with."""

    library: Path
    header: Path


def c_library() -> CLibrary:
    """The shared library `libdecision_machines` and its header, as they were installed.

    A program links with them to load `.dm` files and predict with the native engine, without
    Python; `examples/c` has one.

    Examples
    --------
    >>> import decision_machines as dm
    >>> dm.c_library().header.name
    'decision_machines.h'
    """
    place = Path(_native.__file__ or "").parent
    found = sorted((place / "lib").glob("*decision_machines.*"))
    header = place / "include" / "decision_machines.h"
    if not found or not header.is_file():
        raise InputError(
            "looking for the C library",
            f"{place} does not have it",
            "install decision-machines again, from a wheel or with a C++ compiler",
        )
    by_suffix = {path.suffix: path for path in found}
    for suffix in (".so", ".dylib", ".dll"):
        if suffix in by_suffix:
            return CLibrary(by_suffix[suffix], header)
    return CLibrary(found[0], header)
