"""The `dm` command as typer runs it, with its exit codes."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, NoReturn, TypeVar, cast

import typer
from rich.console import Console
from rich.text import Text

from ..errors import DecisionMachinesError
from .bench import bench
from .codes import DEFECT, DONE, INTERRUPTED, UNREAD, WRONG
from .convert import convert
from .demo import demo
from .diff import diff
from .explain import explain
from .explore import explore
from .inspect import inspect
from .predict import predict
from .serve import serve
from .train import train
from .tune import tune
from .verify import verify

Command = TypeVar("Command", bound=Callable[..., None])


def _ended(command: Command) -> Command:
    """The command with exit codes of its own for an interrupt and for a closed pipe.

    Typer has 1 for a pipe, and in some versions for an interrupt; here 1 means that answers differ.
    """

    @functools.wraps(command)
    def run(*given: Any, **options: Any) -> None:
        try:
            command(*given, **options)
        except KeyboardInterrupt:
            _say("interrupted", "")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise typer.Exit(UNREAD) from None
        except SystemExit as end:
            # Rich has met the closed pipe first, and ends with 1.
            if isinstance(end.__context__, BrokenPipeError):
                raise typer.Exit(UNREAD) from None
            raise

    return cast("Command", run)


def _paragraphs(command: Callable[..., None]) -> str:
    """A command's docstring, each paragraph on one line: the terminal breaks it."""
    text = cleandoc(command.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


app = typer.Typer(
    help="""Decision trees as matrices: read them exactly, look inside, prove them equal.

    [bold]Exit codes[/], the same for every command:

    [bold]0[/] done, and where something is compared: equal

    [bold]1[/] the comparison says no: answers or models differ (bench, diff, verify)

    [bold]2[/] the call, a model or the data is wrong, or there is not enough memory

    [bold]3[/] a defect of this program; please report it

    [bold]4[/] nothing differs, but not everything could be proven (verify)

    [bold]130[/] interrupted

    [bold]141[/] the program that read the output has ended
    """,
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
    explain,
    train,
    tune,
    explore,
    serve,
    bench,
    diff,
):
    app.command(help=_paragraphs(command))(_ended(command))


def main() -> NoReturn:
    """Run `dm`, and exit with the code that says how it went."""
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffers has no reader: Python would complain of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = UNREAD
    sys.exit(code)


def _run() -> int:
    """The exit code of one call.

    An error of ours is printed in its three parts, without a traceback; any other is a defect, and
    is printed with one.
    """
    try:
        app()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else DONE
    except DecisionMachinesError as error:
        _say("error", str(error))
        return WRONG
    except MemoryError as error:
        reason = f" ({error})" if str(error) else ""
        _say("error", f"There is not enough memory{reason}.\nWhat to do: give fewer rows at once.")
        return WRONG
    except Exception:
        traceback.print_exc()
        from .. import __version__ as version

        _say(
            "defect",
            "This is a mistake in decision-machines, not in your call. Please report it, with the "
            f"lines above and the version, {version}.",
        )
        return DEFECT
    return DONE


def _say(what: str, text: str) -> None:
    said = Text.assemble((f"{what} ", "bold red"), text)
    Console(stderr=True).print(said, soft_wrap=True)
