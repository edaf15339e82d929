"""`dm explore`: a model as one page to look at, and to move about in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .notes import note_ignored
from .options import TABLE, AsJson, Columns, Model, Trust

if TYPE_CHECKING:
    from ..machine import DecisionMachine


def explore(
    model: Model,
    data: Annotated[
        Path | None,
        typer.Option("--data", help=f"Rows to choose from in the page: {TABLE}."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="The column of --data that the model predicts."),
    ] = None,
    column: Columns = None,
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
    from ..libraries import load
    from ..machine import single
    from .output import check_output

    page = output if output is not None else Path(model.with_suffix(".html").name)
    if page.suffix.lower() not in (".html", ".htm"):
        found = f"the suffix {page.suffix!r} is not that of a page"
        raise InputError(f"writing {page}", found, "name a file that ends in .html")
    check_output(page, model, data)
    machine = single(load(model, trust=trust), "making a page")
    X, y = None, None
    if data is not None:
        X, y = _read(data, target, column, machine)
    machine.explore(page, X, y, open=open_, title=title, max_rows=max_rows)
    if as_json:
        typer.echo(json.dumps({"page": str(page), "bytes": page.stat().st_size}))
    else:
        typer.echo(f"{machine} in {page} ({page.stat().st_size / 1e6:.1f} MB)")


def _read(
    path: Path, target: str | None, chosen: list[str] | None, machine: DecisionMachine
) -> tuple[Any, list[Any] | None]:
    """The features of a file and, where asked for, the column that the model predicts."""
    from ..files.tables import read_features

    keep = () if target is None else (target,)
    found = read_features(path, machine.columns, keep=keep, chosen=chosen)
    note_ignored(found.ignored, path)
    return found.X, None if target is None else found.kept[target].to_pylist()
