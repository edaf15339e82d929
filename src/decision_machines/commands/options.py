"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Trust = Annotated[
    bool, typer.Option("--trust", help="Open a pickle or joblib file, which may run code.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no notes.")]
