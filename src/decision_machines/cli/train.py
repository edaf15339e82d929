"""`dm train`: a tree, or many, from a file of rows."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..errors import InputError, MissingLibraryError
from ..train.defaults import MAX_LEAVES
from .options import MODEL_FILE, AsJson, Drop, LearningData, Quiet, Seed, Target, Threads, Weight
from .target_kind import TargetKind, target_kind

if TYPE_CHECKING:
    from ..files.learning_table import LearningTable

MOST_RULES = MAX_LEAVES
"""Leaves up to which a tree is printed as rules."""
MOST_TERMS = 4
"""Features up to which that holds for a tree whose tests weigh all of them."""


def train(
    data: LearningData,
    target: Target,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=MODEL_FILE),
    ] = None,
    leaves: Annotated[
        int | None,
        typer.Option("--leaves", min=1, help="Leaves of a tree.", show_default=str(MAX_LEAVES)),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Choose the leaves by cross-validation, at most 32."),
    ] = False,
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, help="Depth of a tree; any by default.")
    ] = None,
    trees: Annotated[int, typer.Option("--trees", min=1, help="How many trees, at most.")] = 1,
    oblique: Annotated[
        bool, typer.Option("--oblique", help="Tests weigh all features (needs torch).")
    ] = False,
    linear: Annotated[
        bool,
        typer.Option("--linear", help="With --oblique, for numbers: linear functions in leaves."),
    ] = False,
    soft: Annotated[
        bool,
        typer.Option("--soft", help="Fine-tune end to end, and score the soft machine too."),
    ] = False,
    kind: Annotated[
        str,
        typer.Option("--kind", help="classification or regression; guessed by default."),
    ] = "auto",
    drop: Drop = None,
    weight: Weight = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give every class the same weight in total.")
    ] = False,
    validation: Annotated[
        float,
        typer.Option(
            "--validation", min=0.0, max=0.9, help="Share of the rows kept apart for the score."
        ),
    ] = 0.2,
    refit: Annotated[
        bool, typer.Option("--refit", help="After the score, train again on all rows.")
    ] = False,
    criterion: Annotated[
        str | None,
        typer.Option(
            "--criterion",
            help="What one tree is searched for: accuracy, log_loss, auc, balanced or f1; of "
            "numbers squared_error, absolute_error, quantile or poisson.",
            show_default="accuracy or squared_error",
        ),
    ] = None,
    quantile: Annotated[
        float,
        typer.Option(
            "--quantile", min=0.0, max=1.0, help="With --criterion quantile: the share below."
        ),
    ] = 0.5,
    leaf_cost: Annotated[
        float,
        typer.Option(
            "--leaf-cost", min=0.0, help="What a leaf must gain, in parts of one leaf's loss."
        ),
    ] = 0.0,
    feature_cost: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-cost", help="COLUMN=COST: what a row pays to be asked it, in that unit."
        ),
    ] = None,
    increasing: Annotated[
        list[str] | None,
        typer.Option("--increasing", help="A column along which predictions must not fall."),
    ] = None,
    decreasing: Annotated[
        list[str] | None,
        typer.Option("--decreasing", help="A column along which they must not rise."),
    ] = None,
    optimal: Annotated[
        bool,
        typer.Option(
            "--optimal", help="The best tree of --depth (3 by default, at most 5), proven."
        ),
    ] = False,
    best: Annotated[
        bool,
        typer.Option(
            "--best", help="A sum of several learners, tuned (needs torch); a .dm file is soft."
        ),
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            min=0.001,
            help="Of one tree, and with --best: seconds, then the best so far.",
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", min=0, help="Moves of a search; more find more."),
    ] = None,
    seed: Seed = 0,
    n_threads: Threads = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn a tree from a file, score it on rows kept apart, and show it.

    One tree is searched for rather than grown; --trees N boosts, --oblique --trees N bags. With
    --optimal the best of all trees of a depth is proven, or how far from it one may be. Empty
    cells are missing values, columns of text are categories. The file is written whole or not at
    all. With --soft the file holds the hard machine, with --best a .dm file the soft one: dm
    predict and dm serve answer with it. Ctrl-C on a terminal ends training early, with the best so
    far; elsewhere nothing is written.

    [bold]Examples[/]

    dm train rows.csv --target price -o model.dm

    dm train rows.parquet --target churned --leaves 8 --drop customer_id

    dm train rows.csv --target species --auto

    dm train rows.csv --target churned --criterion auc --increasing age --time-limit 10

    dm train rows.csv --target species --trees 100 --json

    dm train rows.csv --target price --optimal --depth 3 --time-limit 60

    dm train rows.csv --target price --best --time-limit 300 -o model.dm

    [bold]Exit codes[/]  0 done; 2 the call or the data is wrong; 130 interrupted.
    """
    try:
        from ..estimators import DecisionMachineClassifier, DecisionMachineRegressor
        from .optimal import optimal_model, proof, refuse_with_optimal
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "sklearn":
            raise
        raise MissingLibraryError(
            "training a tree",
            "scikit-learn is not installed",
            "pip install 'decision-machines[sklearn,data]'",
        ) from None
    from ..files.learning_table import integer_columns, read_learning_table
    from ..libraries.targets import target_of
    from .held_out import cart_scores, hold_out, intervals, scores
    from .of_columns import costs_of, directions_of
    from .output import check_output, write_model

    written_as = None
    if output is not None:
        written_as = target_of(output, None)
        check_output(output, data)
    rows = read_learning_table(data, target, drop=drop or [], weight=weight)
    taken = target_kind(rows.y, target, kind, f"reading {data}")
    rows = replace(rows, y=taken.y)
    if written_as not in (None, "dm"):
        _refuse_text(rows, output)
    _refuse_contradictions(taken, oblique=oblique, linear=linear, balanced=balanced)
    many = {"--trees": trees > 1, "--oblique": oblique, "--linear": linear, "--soft": soft}
    names = rows.features.column_names
    costs = costs_of(feature_cost, names)
    directions = directions_of(increasing, decreasing, names)
    searched = {
        "--leaf-cost": leaf_cost > 0,
        "--feature-cost": bool(costs),
        "--increasing": bool(increasing),
        "--decreasing": bool(decreasing),
    }
    moves = {"--iterations": iterations is not None}
    refuse_with_optimal(optimal, many | searched | moves | {"--best": best})
    _refuse_criterion(criterion, quantile, taken)
    of_one_tree = {"--leaves": leaves is not None, "--depth": depth is not None, "--auto": auto}
    of_one_tree |= {"--criterion": criterion is not None and taken.is_classes}
    not_best = many | searched | moves | of_one_tree
    searched |= {"--criterion": criterion is not None, "--time-limit": time_limit is not None}
    for name in (name for name, is_given in not_best.items() if best and is_given):
        raise InputError("choosing how to train", f"--best with {name}", f"leave {name} out")
    for other in (name for name, is_given in many.items() if is_given):
        for name in (name for name, is_given in searched.items() if is_given):
            raise InputError("choosing how to train", f"{name} with {other}", f"leave {name} out")
    given_with_auto = {"--leaves": leaves is not None, "--trees": trees > 1, "--soft": soft}
    for name, is_given in given_with_auto.items():
        if auto and is_given:
            raise InputError("choosing how to train", f"--auto with {name}", f"leave {name} out")
    options: dict[str, Any] = {
        "n_trees": "auto" if best else trees,
        "max_leaves": "auto" if auto else (leaves or MAX_LEAVES),
        "max_depth": depth,
        "oblique": oblique,
        "leaves": "linear" if linear else "constant",
        "soft": soft or best,
        "n_iterations": iterations,
        "random_state": seed,
        "n_threads": n_threads,
        "verbose": False if quiet or as_json else None,
        "keep_best_on_interrupt": sys.stderr.isatty(),
    }
    if optimal:
        model: Any = optimal_model(
            options, time_limit, taken, balanced=balanced, criterion=criterion
        )
    else:
        options |= {
            "leaf_cost": leaf_cost,
            "feature_costs": costs or None,
            "monotone": directions or None,
            "time_limit": time_limit,
        }
        if criterion is not None:
            options["criterion"] = criterion
        if taken.is_classes:
            weight_of = "balanced" if balanced else None
            model = DecisionMachineClassifier(**options, class_weight=weight_of)
        else:
            model = DecisionMachineRegressor(**options, quantile=quantile)
    if not (quiet or as_json):
        lost = f", {rows.dropped} without a target left out" if rows.dropped else ""
        said = f"{len(rows.y)} rows of {rows.features.num_columns} features{lost}"
        Console(stderr=True).print(Text(f"{taken.why}; {said}"), soft_wrap=True)
    own, held = hold_out(rows, validation, seed, is_classes=taken.is_classes)
    start = time.perf_counter()
    try:
        model.fit(own.features, own.y, own.w)
        judged, cart, between = {}, {}, {}
        if held is not None:
            judged = scores(model, held, is_classes=taken.is_classes)
            between = intervals(model, held, is_classes=taken.is_classes)
            if trees == 1 and not best:
                cart = cart_scores(model, own, held, is_classes=taken.is_classes)
        interrupted = bool(model.report_.get("interrupted", False))
        if refit and held is not None and not interrupted:
            model.fit(rows.features, rows.y, rows.w)
            interrupted = bool(model.report_.get("interrupted", False))
    except KeyboardInterrupt:
        typer.echo("interrupted; no file is written", err=True)
        sys.exit(130)
    seconds = time.perf_counter() - start
    if output is not None:
        is_soft = best and written_as in (None, "dm")
        write_model(model.soft_machine_ if is_soft else model.machine_, output, written_as or "dm")
    report = _report(model, rows, taken, own, held, judged, seconds, output)
    report["interrupted"] = interrupted
    report |= {"intervals": between, "scores of CART": cart}
    if optimal:
        report["proof"] = proof(model)
    if best:
        report["tried"] = [
            {k: v for k, v in t.items() if k != "tuning"} for t in model.report_["tried"]
        ]
    if auto:
        report["sizes"] = model.path_.as_dicts()
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False, default=str))
    else:
        _print(model, judged, report, output, integer_columns(rows.features))
    if interrupted:
        typer.echo("interrupted; this is the best so far", err=True)
        raise typer.Exit(130)


def _refuse_contradictions(
    taken: TargetKind, *, oblique: bool, linear: bool, balanced: bool
) -> None:
    """Say in the command's own words which options do not go together."""
    doing = "choosing how to train"
    if balanced and not taken.is_classes:
        raise InputError(doing, f"--balanced for numbers ({taken.why})", "leave --balanced out")
    if linear and taken.is_classes:
        raise InputError(doing, f"--linear for classes ({taken.why})", "leave --linear out")
    if linear and not oblique:
        raise InputError(doing, "--linear without --oblique", "give --oblique, too")


def _refuse_criterion(criterion: str | None, quantile: float, taken: TargetKind) -> None:
    from ..train.axis.criteria import OF_CLASSES, OF_NUMBERS

    doing = "choosing how to train"
    known = OF_CLASSES if taken.is_classes else OF_NUMBERS
    if criterion is not None and criterion not in known:
        raise InputError(
            doing,
            f"--criterion {criterion} ({taken.why})",
            f"use {', '.join(known[:-1])} or {known[-1]}",
        )
    if quantile != 0.5 and criterion != "quantile":
        raise InputError(
            doing, "--quantile without --criterion quantile", "give --criterion quantile, too"
        )
    if not 0 < quantile < 1:
        raise InputError(doing, f"--quantile {quantile:g}", "use a number between 0 and 1")


def _refuse_text(rows: LearningTable, output: Any) -> None:
    """Say before training, not after it, that other libraries' files hold no labels of ours."""
    from ..estimators.labels import label_columns

    text = [rows.features.column_names[i] for i in label_columns(rows.features)]
    if text:
        raise InputError(
            f"writing {output}",
            f"column {text[0]!r} holds text, whose labels only a .dm file keeps",
            "write a .dm file, or drop the text columns (--drop)",
        )


def _report(
    model: Any,
    rows: LearningTable,
    taken: TargetKind,
    own: LearningTable,
    held: LearningTable | None,
    judged: dict[str, float],
    seconds: float,
    output: Path | None,
) -> dict[str, Any]:
    machine = model.machine_
    names = rows.features.column_names
    importance = sorted(
        zip(names, model.feature_importances_.tolist(), strict=True), key=lambda pair: -pair[1]
    )
    return {
        "kind": "classification" if taken.is_classes else "regression",
        "why": taken.why,
        "rows": len(rows.y),
        "rows without a target": rows.dropped,
        "rows learned from": len(own.y),
        "rows kept apart": 0 if held is None else len(held.y),
        "classes": [str(c) for c in model.classes_] if taken.is_classes else None,
        "scores": judged,
        "trees": machine.n_trees,
        "leaves": machine.n_leaves,
        "depth": machine.depth,
        "importances": {name: value for name, value in importance if value > 0},
        "seconds": seconds,
        "output": None if output is None else str(output),
    }


def _print(
    model: Any,
    judged: dict[str, float],
    report: dict[str, Any],
    output: Path | None,
    integers: list[str],
) -> None:
    console = Console()
    machine = model.machine_
    if judged:
        said = ", ".join(f"{name} {value:.4g}" for name, value in judged.items())
        kept = report["rows kept apart"]
        console.print(Text(f"on {kept} rows kept apart: {said}", "bold"), soft_wrap=True)
        for name, (low, high) in report.get("intervals", {}).items():
            said = f"{name} of new rows is between {low:.4g} and {high:.4g}, 95 times in 100"
            console.print(Text(said), soft_wrap=True)
        if report.get("scores of CART"):
            said = ", ".join(f"{k} {v:.4g}" for k, v in report["scores of CART"].items())
            console.print(Text(f"CART of the same size: {said}"), soft_wrap=True)
    else:
        console.print(Text("no rows were kept apart: no score", "yellow"))
    if "proof" in report:
        console.print(Text(report["proof"]["words"]), soft_wrap=True)
    if "sizes" in report:
        console.print(Text(f"sizes by cross-validation:\n{model.path_!r}"), soft_wrap=True)
    if "tried" in report:
        console.print(Text(str(model.report_)), soft_wrap=True)
    top = list(report["importances"].items())[:5]
    if top:
        said = ", ".join(f"{name} {value:.0%}" for name, value in top)
        console.print(Text(f"what counts: {said}"), soft_wrap=True)
    console.print(Text(f"{machine!r}; {report['seconds']:.1f} s"), soft_wrap=True)
    is_readable = not machine.is_oblique or machine.n_features <= MOST_TERMS
    if machine.n_trees == 1 and machine.n_leaves <= MOST_RULES and is_readable:
        console.print(Text(str(machine.rules(integers=integers))), soft_wrap=True)
    if output is not None:
        console.print(Text(f"written to {output}"), soft_wrap=True)
