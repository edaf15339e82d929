"""The cli room: the `dm` command, a file for each of its commands.

It needs typer and rich, which are the extra `cli`: whoever predicts from Python does without them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from ..errors import MissingLibraryError
from .codes import INTERRUPTED, WRONG

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARIES = ("rich", "typer")


def main() -> NoReturn:
    """Run `dm`, and exit with the code that says how it went."""
    try:
        _command()()
    except KeyboardInterrupt:  # before a command has begun: most of a short call is imports
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _command() -> Callable[[], NoReturn]:
    try:
        from .app import main as run
    except ModuleNotFoundError as error:
        absent = (error.name or "").split(".")[0]
        if absent not in LIBRARIES:
            raise
        told = MissingLibraryError(
            "running dm", f"{absent} is not installed", "pip install 'decision-machines[cli]'"
        )
        print(f"error {told}", file=sys.stderr)
        sys.exit(WRONG)
    return run
