"""The cli room: the `dm` command, a file for each of its commands.

It needs typer and rich, which are the extra `cli`: whoever predicts from Python does without them.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from ..errors import MissingLibraryError
from .codes import WRONG

LIBRARIES = ("rich", "typer")


def main() -> NoReturn:
    """Run `dm`, and exit with the code that says how it went."""
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
    run()
