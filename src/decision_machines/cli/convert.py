"""`dm convert`: a model as another kind of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..errors import InexactWarning, InputError
from .options import MODEL_FILE, AsJson, Columns, Model, Trust


def convert(
    model: Model,
    out: Annotated[
        Path,
        typer.Option("--output", "--out", "-o", help=MODEL_FILE),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="dm, onnx, xgboost, lightgbm, c, javascript or sql; overrides the suffix.",
        ),
    ] = None,
    operator: Annotated[
        str, typer.Option("--operator", help="For ONNX: tree operators v3 or v5.")
    ] = "v3",
    labels: Annotated[
        str,
        typer.Option(
            "--labels",
            help="For ONNX, of features given as labels: text, which the graph looks up itself; "
            "or codes, the numbers that machine.features(table) gives.",
        ),
    ] = "text",
    margins: Annotated[
        bool, typer.Option("--margins", help="Leave link and labels out: predict raw scores.")
    ] = False,
    columns: Columns = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as another kind of file: exactly, or not at all.

    The file appears only when it is whole. What may differ in the last digits (ONNX) is said. An
    ONNX model of features that are given as labels has an input for each feature, named like it;
    no label at all is the empty text.

    SQL reads the table "rows", which has a column for each feature, by its name or as --column
    says; it gives the column "prediction", or with --margins "margin".
    """
    import warnings

    from ..libraries import load
    from ..libraries.targets import target_of, write_file
    from .output import check_output

    kind = target_of(out, to)
    check_output(out, model)
    options: dict[str, Any] = {} if kind == "dm" else {"margins": margins}
    if kind == "onnx":
        options |= {"operator": operator, "labels": labels}
    if columns:
        if kind != "sql":
            raise InputError(f"writing {out}", f"--column for {kind}", "use it for SQL alone")
        options["columns"] = columns
    machine = load(model, trust=trust)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_file(machine, out, kind, **options)
    said = [str(w.message) for w in caught if issubclass(w.category, InexactWarning)]
    if as_json:
        found = {"out": str(out), "kind": kind, "bytes": out.stat().st_size, "warnings": said}
        typer.echo(json.dumps(found))
        return
    for text in said:
        Console(stderr=True).print(Text.assemble(("warning ", "bold yellow"), text))
    Console().print(Text(f"{machine} written to {out} ({kind})"), soft_wrap=True)
