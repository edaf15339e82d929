"""`dm explore`: a model as one page to look at, and to move about in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, Model, Trust


def explore(
    model: Model,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Rows to choose from in the page: CSV, Parquet or Arrow."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="The column of --data that the model predicts."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; by default MODEL.html, here."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Its heading.")] = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", min=1, help="Rows of --data kept in the page.")
    ] = 1000,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write one page in which a model can be explored: no server, no network, any browser.

    It draws each tree beside its matrices S, t, B and V, computes as the model does while the
    input is moved, and shows what would change the answer.

    [bold]Examples[/]

    dm explore model.txt --data rows.csv --target label -o page.html

    [bold]Exit codes[/]  0 done; 2 the call, the model or the data is wrong.
    """
    from ..files.tables import read_table
    from ..libraries import load

    machine = load(model, trust=trust)
    X, y = (None, None) if data is None else _split(read_table(data), data, target, machine)
    page = output if output is not None else Path(model.with_suffix(".html").name)
    machine.explore(page, X, y, open=open_, title=title, max_rows=max_rows)
    if as_json:
        typer.echo(json.dumps({"page": str(page), "bytes": page.stat().st_size}))
    else:
        typer.echo(f"{machine} in {page} ({page.stat().st_size / 1e6:.1f} MB)")


def _split(table: Any, path: Path, target: str | None, machine: Any) -> tuple[Any, Any]:
    """The features of a table and, where asked for, the column that the model predicts."""
    from ..errors import InputError

    y = None
    if target is not None:
        if target not in table.column_names:
            raise InputError(
                f"reading {path}",
                f"there is no column {target!r}",
                f"use one of {', '.join(map(repr, table.column_names[:20]))}",
            )
        y = table[target].to_pylist()
        table = table.drop_columns([target])
    names = machine.columns.names
    if names is not None and set(names) <= set(table.column_names):
        table = table.select(list(names))
    return table, y
