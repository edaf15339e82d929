"""The JavaScript modules that evaluate a machine; the explorer page has them too."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MODULES = ("rounding", "machine", "columns", "ranks", "walk", "evaluate", "links", "decisions")
"""Each after those that it imports."""
IMPORT = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)


def evaluator() -> list[str]:
    """The sources of the evaluator."""
    return [source(f"{name}.js") for name in MODULES]


def source(name: str) -> str:
    """A JavaScript file of this folder."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def joined(sources: Iterable[str]) -> str:
    """Modules as one script: imports and exports dropped, because all names stand in one scope."""
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)) for text in sources)
