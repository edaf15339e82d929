"""`dm bench`: our engine against the model's own library, on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .options import AsJson, Model, Trust


def bench(
    model: Model,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Rows to time: CSV, Parquet or Arrow. Else rows are drawn."),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="How many rows are drawn without --data.")
    ] = 100_000,
    n_threads: Annotated[
        int | None, typer.Option("--n-threads", min=1, help="For both; by default all processors.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="How long each call is tried.")
    ] = 1.0,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Time `predict` of the model's own library and ours, on this machine, in one run.

    Both must give the same answers first: predictions for every row, and raw scores. Rows are
    drawn around the model's own thresholds, or given with --data. Times are the best of about a
    second of calls, for 1 row, 1000 rows and all.

    [bold]Exit codes[/]  0 equal, and timed; 1 the answers differ; 2 the call or its input is wrong.
    """
    from ..files.tables import read_table
    from ..libraries.originals import open_original
    from .speeds import bench as run_bench

    original = open_original(model, trust=trust)
    table = None if data is None else read_table(data)
    console = Console()
    with Console(stderr=True).status("comparing, then timing ..."):
        found = run_bench(original, table, n_rows=rows, n_threads=n_threads, seconds=seconds)
    if as_json:
        timings = [{**asdict(t), "ratio": t.ratio} for t in found.timings]
        typer.echo(json.dumps({**asdict(found), "timings": timings}))
    else:
        _show(console, found)
    raise typer.Exit(0 if found.equal else 1)


def _show(console: Console, found) -> None:
    console.print(found.machine, soft_wrap=True, highlight=False)
    words = f"predictions {found.compared}"
    console.print(Text(words, "green" if found.equal else "bold red"), soft_wrap=True)
    if not found.equal:
        return
    table = Table(caption=f"engine: {found.engine}", caption_justify="left")
    for name in ("rows", "threads", found.library, "ours", "times as fast"):
        table.add_column(name, justify="right")
    for timing in found.timings:
        table.add_row(
            str(timing.rows),
            str(timing.threads),
            _time(timing.library),
            _time(timing.ours),
            f"[bold]{timing.ratio:.1f}[/]",
        )
    console.print(table)


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"
