"""What a command says besides its answer, on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..machine.feature_names import listed

if TYPE_CHECKING:
    from collections.abc import Sequence


def note_ignored(names: Sequence[str], where: object) -> None:
    """Say which columns of a file the model does not read."""
    if names:
        what = "a column" if len(names) == 1 else f"{len(names)} columns"
        note(f"ignoring {what} of {where} that the model does not read: {listed(names)}")


def note(text: str) -> None:
    Console(stderr=True).print(Text.assemble(("note ", "bold"), text), soft_wrap=True)


def warn(text: str) -> None:
    """Say something that may differ from what is expected."""
    said = Text.assemble(("warning ", "bold yellow"), text)
    Console(stderr=True).print(said, soft_wrap=True)
