"""Every library, found by its folder: a folder added beside the others is a library added."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from ..errors import InputError, UnsupportedModelError

if TYPE_CHECKING:
    from pathlib import Path

    from .library import Folder, Format, Library, Target


@functools.cache
def libraries() -> tuple[Library, ...]:
    """The `LIBRARY` of every folder of this room, in the order of their names."""
    room = importlib.import_module(__package__)
    folders = sorted(found.name for found in pkgutil.iter_modules(room.__path__) if found.ispkg)
    return tuple(importlib.import_module(f"{__package__}.{name}").LIBRARY for name in folders)


def library_of(model: Any, doing: str) -> Library:
    """The library of a model, found by the package of its class; no other package is imported."""
    if isinstance(model, type):
        raise InputError(
            doing,
            f"the class {model.__name__} itself",
            f"pass a fitted object of it: {model.__name__}(...).fit(X, y)",
        )
    by_package = {library.package: library for library in libraries() if library.package}
    for cls in type(model).__mro__:
        found = by_package.get(cls.__module__.split(".")[0])
        if found is not None:
            return found
    raise UnsupportedModelError(
        doing,
        f"an object of type {type(model).__module__}.{type(model).__qualname__}",
        f"pass a fitted tree model of {', '.join(by_package)}, or a model file to dm.load",
    )


@functools.cache
def formats() -> tuple[tuple[Library, Format], ...]:
    """Every kind of model file with its library, those that are surest to tell apart first."""
    found = [(library, kind) for library in libraries() for kind in library.formats()]
    return tuple(sorted(found, key=lambda pair: pair[1].certainty))


@functools.cache
def folders() -> tuple[tuple[Library, Folder], ...]:
    """Every kind of model that is a folder, with its library."""
    return tuple((library, kind) for library in libraries() for kind in library.folders())


def folder_kind(folder: Path) -> tuple[Library, Folder] | None:
    """The library and the kind of a folder of model files; None where it holds none."""
    return next((pair for pair in folders() if pair[1].looks_like(folder)), None)


@functools.cache
def targets() -> dict[str, Target]:
    """Every kind of model file that a machine can be written as, by name."""
    return {target.name: target for library in libraries() for target in library.targets()}
