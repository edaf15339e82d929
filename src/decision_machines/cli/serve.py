"""`dm serve`: models behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .options import Trust


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Model files of any supported library, each served under its name without the "
            "ending, or as NAME=FILE.",
        ),
    ],
    host: Annotated[str, typer.Option("--host", help="0.0.0.0 is open to the network.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 takes one that is free.")
    ] = 8000,
    watch: Annotated[
        float,
        typer.Option("--watch", min=0.0, help="Seconds between looks at the files; 0: never."),
    ] = 2.0,
    body: Annotated[
        float, typer.Option("--max-body", min=0.001, help="Megabytes of a request.")
    ] = 16.0,
    rows: Annotated[int, typer.Option("--max-rows", min=1, help="Rows of a request.")] = 100_000,
    patience: Annotated[
        float, typer.Option("--patience", min=0.1, help="Seconds for a body to arrive.")
    ] = 30.0,
    trust: Trust = False,
) -> None:
    """Serve models over HTTP, in the Open Inference Protocol (v2, JSON).

    Single rows that arrive together are answered in one call. A model file that changes is read
    again; one that is broken is not, and the model before it goes on. SIGTERM and Ctrl-C stop the
    server when what it has accepted is answered.

    [bold]Paths[/]  POST /v2/models/NAME/infer; GET /v2/models/NAME, /v2/health/ready, /metrics

    [bold]Examples[/]

    dm serve model.txt

    dm serve risk=forest.skops price=model.dm --host 0.0.0.0 --port 8080

    [bold]Exit codes[/]  0 stopped; 2 the call or a model is wrong.
    """
    from ..serve import Limits, Models
    from ..serve import serve as run

    paths: dict[str, Path] = {}
    for given in models:
        name, path = _named(given)
        if name in paths:
            raise InputError(
                "serving models", f"two are named {name!r}", "name them: NAME=FILE for each"
            )
        paths[name] = path
    limits = Limits(int(body * 2**20), rows, patience)
    run(
        Models.read(paths, trust=trust),
        host=host,
        port=port,
        limits=limits,
        watch_seconds=watch or None,
    )


def _named(given: str) -> tuple[str, Path]:
    name, equals, path = given.partition("=")
    if not equals or Path(given).exists():
        name, path = Path(given).stem, given
    if not name or "/" in name:
        raise InputError("serving models", f"the name {name!r} of {given!r}", "use NAME=FILE")
    return name, Path(path)
