"""`dm diff`: what differs between two models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from .options import AsJson, Model, Trust


def diff(
    a: Model,
    b: Annotated[Path, typer.Argument(help="The model file to compare it with, of any library.")],
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Compare two models: trees, thresholds, values, outputs; show an input where they differ.

    Trees are matched by what they hold, so one put in does not make all that follow differ. The
    models may be of different libraries and file formats.

    [bold]Examples[/]

    dm diff yesterday.txt today.txt

    dm diff model.json model.onnx --json

    [bold]Exit codes[/]  0 equal; 1 different; 2 the call or a model is wrong.
    """
    from ..explain import diff as compare
    from ..libraries import load
    from ..machine import single

    doing = "comparing two models"
    found = compare(single(load(a, trust=trust), doing), single(load(b, trust=trust), doing))
    if as_json:
        typer.echo(json.dumps(found.to_dict(), default=str))
    else:
        style = "green" if not found else ""
        Console().print(Text(str(found), style), soft_wrap=True)
    raise typer.Exit(1 if found else 0)
