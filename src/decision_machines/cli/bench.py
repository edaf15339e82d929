"""`dm bench`: our engine against the model's own library, on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .notes import note_ignored
from .options import TABLE, AsJson, Columns, Model, Threads, Trust

if TYPE_CHECKING:
    from .speeds import Bench


def bench(
    model: Model,
    data: Annotated[
        Path | None,
        typer.Option("--data", help=f"Rows to time: {TABLE}. Else rows are drawn."),
    ] = None,
    column: Columns = None,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="How many rows are drawn without --data.")
    ] = 100_000,
    n_threads: Threads = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="How long each call is tried.")
    ] = 1.0,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Time `predict` of the model's own library and ours, on this machine, in one run.

    First their answers are compared: predictions for every row, and raw scores. Where they are
    equal to the bit, or at most 4 units in the last place (ulp) apart, both are timed; what was
    found is said either way. Rows are drawn around the model's own thresholds, or given with
    --data. Times are the best of about a second of calls, for 1 row, 1000 rows and all.

    [bold]Examples[/]

    dm bench model.txt

    dm bench model.json --data rows.parquet --n-threads 1

    [bold]Exit codes[/]  0 equal to the bit, and timed; 1 the answers differ, by however little; 2
    the call, the model or the data is wrong.
    """
    from ..files.tables import read_features
    from ..libraries import load
    from ..libraries.originals import open_original
    from ..machine import single
    from .speeds import bench as run_bench

    original = open_original(model, trust=trust)
    machine = single(load(model, trust=trust), "comparing speeds")
    table = None
    if data is not None:
        read = read_features(data, machine.columns, chosen=column)
        note_ignored(read.ignored, data)
        table = read.X
    console = Console()
    with Console(stderr=True).status("comparing, then timing ..."):
        found = run_bench(
            original, table, machine=machine, n_rows=rows, n_threads=n_threads, seconds=seconds
        )
    if as_json:
        timings = [{**asdict(t), "ratio": t.ratio} for t in found.timings]
        typer.echo(json.dumps({**asdict(found), "timings": timings}))
    else:
        _show(console, found)
    raise typer.Exit(0 if found.equal else 1)


def _show(console: Console, found: Bench) -> None:
    console.print(found.machine, soft_wrap=True, highlight=False)
    words = f"predictions {found.compared}"
    console.print(Text(words, "green" if found.equal else "bold red"), soft_wrap=True)
    if not found.timings:
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
