"""The cli room: the `dm` command, a file for each of its commands.

Exit codes: 0 done; 1 the answer is no (not equal); 2 the call or its input is wrong; 130
interrupted.
"""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from ..errors import DecisionMachinesError
from .bench import bench
from .convert import convert
from .demo import demo
from .diff import diff
from .explore import explore
from .inspect import inspect
from .predict import predict
from .train import train
from .tune import tune
from .verify import verify

app = typer.Typer(
    help="Decision trees as matrices: read them exactly, look inside, prove them equal.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for command in (
    demo,
    inspect,
    convert,
    verify,
    predict,
    train,
    tune,
    explore,
    bench,
    diff,
):
    app.command()(command)


def main() -> None:
    """Run `dm`; an error of ours is printed in its three parts, without a traceback."""
    try:
        app()
    except DecisionMachinesError as error:
        said = Text.assemble(("error ", "bold red"), str(error))
        Console(stderr=True).print(said, soft_wrap=True)
        sys.exit(2)
