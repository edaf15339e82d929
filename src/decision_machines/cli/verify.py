"""`dm verify`: a proof that our machine answers as the model's own library does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from .options import AsJson, Model, Trust


def verify(
    model: Model,
    data: Annotated[
        Path | None, typer.Option("--data", help="Rows to compare too: CSV, Parquet or Arrow.")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Prove that our machine and the model's own library route every input alike.

    Prints the certificate; exits with 1 where it does not hold. With --data, also compares every
    row of a file and explains those that differ.
    """
    from ..explain import certify, explain_mismatch
    from ..files.tables import read_table
    from ..libraries import convert
    from ..libraries.originals import open_original

    console = Console()
    original = open_original(model, trust=trust)
    machine = convert(original)
    rows = None if data is None else read_table(data)
    certificate = certify(machine, original, rows, verbose=False if as_json else None)
    report = None if rows is None else explain_mismatch(machine, original, rows)
    holds = certificate.holds and not report
    if as_json:
        found = {**vars(certificate), "holds": holds}
        found["first_disagreement"] = certificate.first_disagreement and str(
            certificate.first_disagreement
        )
        if report is not None:
            found["rows that differ"] = report.rows.tolist()
        typer.echo(json.dumps(found, default=str))
    else:
        console.print(Text(str(certificate), "green" if certificate else "red"), soft_wrap=True)
        if report is not None:
            console.print(Text(str(report), "red" if report else "green"), soft_wrap=True)
    raise typer.Exit(0 if holds else 1)
