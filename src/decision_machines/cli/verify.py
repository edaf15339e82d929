"""`dm verify`: a proof that our machine answers as the model's own library does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from .codes import DIFFERS, DONE, UNPROVEN
from .notes import note_ignored
from .options import TABLE, AsJson, Columns, Model, Trust

COLOURS = {"proven": "green", "partly proven": "yellow", "differs": "red"}


def verify(
    model: Model,
    data: Annotated[
        Path | None, typer.Option("--data", help=f"Rows to compare, too: {TABLE}.")
    ] = None,
    column: Columns = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Prove that our machine and the model's own library route every input alike.

    What is proven is the machine that `dm.load` makes of this file; it is compared with what the
    library itself makes of the same file. (CatBoost's reader of its own JSON rounds some numbers
    in their last bit: there CatBoost is given the numbers that the file has.) Prints the
    certificate. With --data, also compares every row of a file and explains those that differ.

    [bold]Examples[/]

    dm verify model.txt

    dm verify model.cbm --data rows.csv --json

    [bold]Exit codes[/]  0 proven; 1 something is answered differently; 2 the call, the model or
    the data is wrong; 4 nothing differs, but some tests could not be probed (CatBoost keeps only
    hashes of labels: give rows that hold them with --data).
    """
    from ..explain import certify, explain_mismatch
    from ..files.tables import read_features
    from ..libraries import load
    from ..libraries.originals import open_original
    from ..machine import DecisionMachine

    console = Console()
    original = open_original(model, trust=trust)
    machine = load(model, trust=trust)
    rows = None
    if data is not None:
        columns = machine.columns if isinstance(machine, DecisionMachine) else machine.reads
        found = read_features(data, columns, chosen=column)
        note_ignored(found.ignored, data)
        rows = found.X
    certificate = certify(machine, original, rows, verbose=False if as_json else None)
    report = None
    if rows is not None and isinstance(machine, DecisionMachine):
        report = explain_mismatch(machine, original, rows)
    holds = certificate.holds and not report
    if as_json:
        verdict = "differs" if report else certificate.verdict
        told = {**vars(certificate), "holds": holds, "verdict": verdict}
        told["first_disagreement"] = certificate.first_disagreement and str(
            certificate.first_disagreement
        )
        if report is not None:
            told["rows that differ"] = report.rows.tolist()
        typer.echo(json.dumps(told, default=str))
    else:
        console.print(Text(str(certificate), COLOURS[certificate.verdict]), soft_wrap=True)
        if report is not None:
            console.print(Text(str(report), "red" if report else "green"), soft_wrap=True)
    differs = bool(report) or certificate.verdict == "differs"
    raise typer.Exit(DIFFERS if differs else DONE if holds else UNPROVEN)
