"""`dm tune`: a trained model that goes on learning from a file of rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from ..errors import InputError, MissingLibraryError
from .notes import note, note_ignored
from .options import (
    MODEL_FILE,
    AsJson,
    Columns,
    Drop,
    LearningData,
    Model,
    Quiet,
    Seed,
    Target,
    Trust,
    Weight,
)

if TYPE_CHECKING:
    from ..machine import DecisionMachine


def tune(
    model: Model,
    data: LearningData,
    target: Target,
    output: Annotated[Path, typer.Option("--output", "-o", help=MODEL_FILE)],
    validation: Annotated[
        str,
        typer.Option(
            "--validation",
            help="Rows to judge by: a file, best of rows that the model was not trained on, or "
            "the share of the data to hold out.",
        ),
    ] = "0.2",
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            help="What to train for, such as squared, absolute, quantile:0.9, poisson, "
            "logistic; by default what the model's link means.",
        ),
    ] = None,
    weight: Weight = None,
    group: Annotated[
        str | None, typer.Option("--group", help="A column with the group to rank within.")
    ] = None,
    drop: Drop = None,
    column: Columns = None,
    oblique: Annotated[
        bool, typer.Option("--oblique", help="Let tests weigh several features.")
    ] = False,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="For each setting tried.")] = 12,
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            help="Train again on all rows with the settings chosen; by default if the rows to "
            "judge by were held out of the data.",
        ),
    ] = None,
    seed: Seed = 0,
    n_threads: Annotated[
        int | None, typer.Option("--n-threads", "--threads", min=1, help="By default torch's.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="A file to keep the state in, after every epoch."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint, if it is there.")
    ] = False,
    trust: Trust = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a model's thresholds and values end to end, and write it hard again.

    What is written is never worse than the model on the validation rows; where nothing better
    is found, it is the model itself. Ctrl-C on a terminal ends training early, with the best so
    far; elsewhere nothing is written. The file appears whole or not at all.

    [bold]Examples[/]

    dm tune model.txt train.csv --target price --validation valid.csv -o tuned.dm

    dm tune model.json rows.parquet --target churned -o tuned.json --checkpoint state --resume

    [bold]Exit codes[/]  0 done; 2 the call, the model or the data is wrong; 130 interrupted.
    """
    try:
        from ..train.tune import tune as fine_tune
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingLibraryError(
            "tuning a machine", "torch is not installed", "pip install 'decision-machines[torch]'"
        ) from None
    from ..libraries import load
    from ..libraries.targets import target_of
    from ..machine import single
    from .output import check_output, check_writable, write_model

    written_as = target_of(output, None)
    check_output(output, model, data, validation)
    if oblique and written_as != "dm":
        raise InputError(
            f"writing {output}",
            f"--oblique, whose tests a file of the kind {written_as} may not hold",
            "write a .dm file; `dm convert` writes it as another kind, where it can",
        )
    machine = single(load(model, trust=trust), "tuning a model")
    check_writable(machine, output, written_as)
    names = Names(target, weight, group, tuple(drop or ()), tuple(column) if column else None)
    says = not (quiet or as_json)
    X, y, w, groups = _read(data, names, machine, says)
    judged_by = _validation(validation, names, machine, says)
    try:
        found = fine_tune(
            machine,
            X,
            y,
            validation=judged_by,
            sample_weight=w,
            group=groups,
            objective=objective,
            learn=("t", "slope", "V", "S") if oblique else ("t", "slope", "V"),
            epochs=epochs,
            refit=refit,
            seed=seed,
            n_threads=n_threads,
            verbose=False if quiet or as_json else None,
            keep_best_on_interrupt=sys.stderr.isatty(),
            checkpoint=checkpoint,
            resume=resume,
        )
    except KeyboardInterrupt:
        typer.echo("interrupted; no file is written", err=True)
        sys.exit(130)
    said = write_model(found.machine, output, written_as)
    if as_json:
        report = found.report.as_dict()
        report |= {"output": str(output), "kind": written_as, "warnings": said}
        typer.echo(json.dumps(report, default=str))
    else:
        console = Console()
        console.print(Text(str(found.report)), soft_wrap=True)
        so_far = "; interrupted, this is the best so far" if found.report.interrupted else ""
        console.print(Text(f"{found.machine!r} written to {output}{so_far}"), soft_wrap=True)
    raise typer.Exit(130 if found.report.interrupted else 0)


class Names(NamedTuple):
    """The columns that are not features, or that are."""

    target: str
    weight: str | None
    group: str | None
    drop: tuple[str, ...]
    chosen: tuple[str, ...] | None


def _validation(given: str, names: Names, machine: DecisionMachine, says: bool) -> Any:
    """A share, or what a file holds."""
    try:
        return float(given)
    except ValueError:
        pass
    if not Path(given).exists():
        raise InputError(
            "reading validation rows",
            f"--validation {given} is neither a share nor a file",
            "give a number between 0 and 1, or a CSV, Parquet or Arrow file",
        )
    return _read(Path(given), names, machine, says)


def _read(
    path: Path, names: Names, machine: DecisionMachine, says: bool
) -> tuple[Any, Any, Any, Any]:
    """Features, targets, weights and groups of a file."""
    import numpy as np

    from ..files.learning_table import with_value
    from ..files.tables import read_features

    used = [name for name in (names.target, names.weight, names.group) if name is not None]
    keep = dict.fromkeys([*used, *names.drop])
    found = read_features(path, machine.columns, keep=tuple(keep), chosen=names.chosen)
    kept, lost = with_value(found.kept, names.target)
    X = found.X.filter(found.kept[names.target].is_valid()) if lost else found.X
    if not len(kept):
        raise InputError(
            f"reading {path}", f"no row with a value in {names.target!r}", "give rows with a target"
        )
    if says:
        note_ignored(found.ignored, path)
        if lost:
            note(f"leaving out {lost} rows of {path} without a value in {names.target!r}")

    def column(name: str | None) -> Any:
        return None if name is None else np.array(kept[name].to_pylist())

    return X, column(names.target), column(names.weight), column(names.group)
