"""`dm inspect`: what a model is made of."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from .options import AsJson, Model, Trust


def inspect(
    model: Model,
    trust: Trust = False,
    as_json: AsJson = False,
    engine: Annotated[
        bool, typer.Option("--engine", help="Show the native engine's plan for it, too.")
    ] = False,
) -> None:
    """What a model is made of: trees, leaves, tests, depth, rank, columns, output, size."""
    from ..libraries import load
    from ..machine import DecisionMachine
    from ..machine.summary import shown, summary

    machine = load(model, trust=trust)
    found = summary(machine)
    if engine and isinstance(machine, DecisionMachine):
        from ..run.engines.native import describe_plan

        found |= {f"engine: {name}": value for name, value in describe_plan(machine).items()}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, default=str))
        return
    table = Table(title=str(model), show_header=False, title_style="bold")
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in found.items():
        table.add_row(name, shown(name, value))
    Console().print(table)
