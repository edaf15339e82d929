"""`dm explain`: Shapley values of data files of any size."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from ..errors import InputError
from .notes import note_ignored
from .options import TABLE, AsJson, Columns, Model, Quiet, Threads, Trust
from .predict import Engine, Format


def explain(
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
            help="A file ending in .parquet, .csv, .tsv or .arrow for all values; or a folder, "
            "with a file of values for each file of data.",
        ),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="A column to carry along, such as an id. Repeat for more."),
    ] = None,
    column: Columns = None,
    cover: Annotated[
        str | None,
        typer.Option(
            "--cover",
            help="A file of training rows: covers are counted on them, instead of those that the "
            "model stores (or does not).",
        ),
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="Here, or file by file on a cluster.")
    ] = Engine.local,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="A Dask scheduler's or Spark master's address; else one is started here.",
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
    trust: Trust = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """What each feature adds to each row's margin: exact Shapley values, batch by batch.

    The columns written are shap_base, the margin with no feature known, and shap_<feature> for
    each feature: a row's values add up to its margin. With several outputs there are shap_base_0,
    shap_<feature>_0 and so on, or labels instead of numbers. Everything else is as in dm predict.

    [bold]Examples[/]

    dm explain model.txt rows.parquet -o shap.parquet --keep id

    dm explain model.onnx rows.parquet -o shap.parquet --cover training.parquet

    [bold]Exit codes[/]  0 done; 2 the call, the model or the data is wrong; 130 interrupted.
    """
    from ..libraries import load
    from ..machine import single
    from ..stream import score

    machine = single(load(model, trust=trust), "explaining rows")
    if cover is not None:
        if os.path.realpath(cover) == os.path.realpath(output):
            raise InputError(f"writing {output}", "it is the file of --cover", "name another")
        from ..files.tables import read_features

        rows = read_features(cover, machine.columns, chosen=column)
        machine = machine.with_cover(rows.X, n_threads=n_threads)
    try:
        report = score(
            machine,
            data,
            output,
            outputs="shap",
            keep=keep or (),
            columns=column,
            engine=engine.value,
            cluster=cluster,
            format=format_.value,
            n_threads=n_threads,
            rows_at_once=rows_at_once,
            verbose=False if quiet or as_json else None,
        )
    except KeyboardInterrupt:
        typer.echo("interrupted; no unfinished file is left", err=True)
        sys.exit(130)
    if as_json:
        typer.echo(json.dumps(asdict(report)))
        return
    if not quiet:
        note_ignored(report.ignored, data)
    speed = report.rows_scored / max(report.seconds, 1e-9)
    typer.echo(
        f"Shapley values of {report.rows} rows in {report.output}; {report.seconds:.1f} s, "
        f"{speed:,.0f} rows/s"
    )
