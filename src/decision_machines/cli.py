"""The `dm` command.

Exit codes: 0 done; 1 the answer is no (not equal); 2 the call or its input is wrong; 130
interrupted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .commands.bench import bench
from .commands.diff import diff
from .commands.explore import explore
from .commands.options import AsJson, Trust
from .commands.predict import predict
from .commands.train import train
from .commands.tune import tune
from .errors import DecisionMachinesError, InexactWarning

app = typer.Typer(
    help="Decision trees as matrices: read them exactly, look inside, prove them equal.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
console = Console()

Model = Annotated[Path, typer.Argument(help="A model file of any supported library.")]


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the picture goes.")] = Path(
        "demo-output"
    ),
) -> None:
    """The paper's example on the terminal, then a forest proven equal, timed and drawn."""
    from .demo import figure_one_steps, forest_steps

    figure_one_steps(console)
    forest_steps(console, folder)


@app.command()
def inspect(
    model: Model,
    trust: Trust = False,
    as_json: AsJson = False,
    engine: Annotated[
        bool, typer.Option("--engine", help="Show the native engine's plan for it, too.")
    ] = False,
) -> None:
    """What a model is made of: trees, leaves, tests, depth, rank, columns, output, size."""
    from .machine.summary import shown, summary
    from .read import load

    machine = load(model, trust=trust)
    found = summary(machine)
    if engine:
        from .run.native import describe_plan

        found |= {f"engine: {name}": value for name, value in describe_plan(machine).items()}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, default=str))
        return
    table = Table(title=str(model), show_header=False, title_style="bold")
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in found.items():
        table.add_row(name, shown(name, value))
    console.print(table)


@app.command()
def convert(
    model: Model,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file to write: .dm, .onnx, .json or .ubj (XGBoost), .txt (LightGBM).",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option("--to", help="dm, onnx, xgboost or lightgbm, whatever the suffix says."),
    ] = None,
    operator: Annotated[
        str, typer.Option("--operator", help="For ONNX: tree operators v3 or v5.")
    ] = "v3",
    margins: Annotated[
        bool, typer.Option("--margins", help="Leave link and labels out: predict raw scores.")
    ] = False,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as another kind of file: exactly, or not at all.

    The file appears only when it is whole. What may differ in the last digits (ONNX) is said.
    """
    import warnings

    from .read import load
    from .write import target_of, write_file

    kind = target_of(out, to)
    options: dict[str, Any] = {} if kind == "dm" else {"margins": margins}
    if kind == "onnx":
        options["operator"] = operator
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
    console.print(Text(f"{machine} written to {out} ({kind})"), soft_wrap=True)


@app.command()
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
    from rich.progress import Progress

    from .explain import certify, explain_mismatch
    from .read import convert
    from .read.originals import open_original
    from .run.files import read_table

    original = open_original(model, trust=trust)
    machine = convert(original)
    rows = None if data is None else read_table(data)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("probing trees", total=machine.n_trees)
        certificate = certify(
            machine, original, rows, progress=lambda done, total: bar.update(task, completed=done)
        )
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


app.command()(predict)
app.command()(train)
app.command()(tune)
app.command()(explore)
app.command()(bench)
app.command()(diff)


def main() -> None:
    """Run `dm`; an error of ours is printed in its three parts, without a traceback."""
    try:
        app()
    except DecisionMachinesError as error:
        said = Text.assemble(("error ", "bold red"), str(error))
        Console(stderr=True).print(said, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
