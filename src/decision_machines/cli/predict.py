"""`dm predict`: data files of any size through a model."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from .notes import note_ignored
from .options import TABLE, AsJson, Columns, Model, Quiet, Threads, Trust


class Engine(StrEnum):
    """Where the work is done."""

    local = "local"
    dask = "dask"
    ray = "ray"
    spark = "spark"


class Format(StrEnum):
    """Of the files in a folder of answers."""

    parquet = "parquet"
    csv = "csv"
    arrow = "arrow"


def predict(
    model: Model,
    data: Annotated[
        str,
        typer.Argument(help=f"A file ({TABLE}), a folder, or a quoted glob of them."),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="A file ending in .parquet, .csv, .tsv or .arrow for all answers; or a folder, "
            "with a file of answers for each file of data.",
        ),
    ],
    want_predict: Annotated[
        bool, typer.Option("--predict", help="The model's prediction (what else, by default).")
    ] = False,
    want_proba: Annotated[
        bool, typer.Option("--proba", help="A probability for each class.")
    ] = False,
    want_margin: Annotated[bool, typer.Option("--margin", help="Raw scores.")] = False,
    want_leaves: Annotated[bool, typer.Option("--leaves", help="Exit leaf of each tree.")] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="A column to carry along, such as an id. Repeat for more."),
    ] = None,
    column: Columns = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="Here, or file by file on a cluster.")
    ] = Engine.local,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="A Dask scheduler's, Ray's or a Spark master's address; else one is started here.",
        ),
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="Of the files in a folder.")
    ] = Format.parquet,
    n_threads: Threads = None,
    rows_at_once: Annotated[
        int | None,
        typer.Option("--rows-at-once", min=1, help="Rows of a batch; fewer take less memory."),
    ] = None,
    split_rows: Annotated[
        int | None,
        typer.Option(
            "--split-rows",
            min=1,
            help="Cut large Parquet files, between row groups, into pieces of about so many rows: "
            "a cluster shares them out, and a stopped run goes on within a file.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            help="Seconds without a sign of any worker of a cluster after which the run is given "
            "up; what is finished stays.",
        ),
    ] = 600.0,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh/--resume",
            help="Remove what an earlier run wrote into the folder and start again, or go on "
            "with it.",
        ),
    ] = False,
    trust: Trust = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Score data of any size: batch by batch, in memory that does not grow with it.

    Columns are matched to the model's features by name, in any order; other columns are ignored,
    and named, unless kept. A file of answers appears when it is complete, never half.
    Interrupted, or stopped by a broken file, a run into a folder goes on where it was: run the
    same command again.

    [bold]Examples[/]

    dm predict model.txt rows.parquet -o answers.parquet --keep id

    dm predict forest.skops 'data/*.csv' -o answers/ --proba --margin

    dm predict model.json data/ -o answers/ --engine dask --cluster tcp://host:8786

    [bold]Exit codes[/]  0 done; 2 the call, the model or the data is wrong; 130 interrupted.
    """
    from ..libraries import load
    from ..stream import score

    wanted = {
        "predict": want_predict,
        "proba": want_proba,
        "margin": want_margin,
        "leaves": want_leaves,
    }
    machine = load(model, trust=trust)
    try:
        report = score(
            machine,
            data,
            output,
            outputs=[name for name, is_wanted in wanted.items() if is_wanted] or "predict",
            keep=keep or (),
            columns=column,
            engine=engine.value,
            cluster=cluster,
            format=format_.value,
            n_threads=n_threads,
            rows_at_once=rows_at_once,
            split_rows=split_rows,
            timeout=timeout,
            fresh=fresh,
            verbose=False if quiet or as_json else None,
        )
    except KeyboardInterrupt:
        typer.echo(
            "interrupted; no unfinished file is left, and the same command goes on with a "
            "folder where it was",
            err=True,
        )
        sys.exit(130)
    if as_json:
        typer.echo(json.dumps(asdict(report)))
        return
    if not quiet:
        note_ignored(report.ignored, data)
    again = f", {report.found_finished} of them finished before" if report.found_finished else ""
    speed = report.rows_scored / max(report.seconds, 1e-9)
    typer.echo(
        f"{report.rows} rows of {report.parts} file{'' if report.parts == 1 else 's'}{again} in "
        f"{report.output}; {report.seconds:.1f} s, {speed:,.0f} rows/s"
    )
