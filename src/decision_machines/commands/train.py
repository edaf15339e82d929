"""`dm train`: a tree, or many, from a file of rows."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..errors import InputError, MissingLibraryError
from .options import AsJson, Quiet

MOST_RULES = 16
"""Leaves up to which a tree is printed as rules."""
MOST_CLASSES = 20
"""Different whole numbers up to which a target is taken for classes."""


def train(
    data: Annotated[Path, typer.Argument(help="Rows: a CSV, Parquet or Arrow file.")],
    target: Annotated[str, typer.Option("--target", help="The column to predict.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .dm, .onnx, .json or .ubj (XGBoost), .txt (LightGBM).",
        ),
    ] = None,
    leaves: Annotated[int, typer.Option("--leaves", min=1, help="Leaves of a tree.")] = 16,
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
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", help="A column to leave out, such as an id. Repeat for more."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", help="A column with the weight of each row.")
    ] = None,
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
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", min=0, help="Moves of a search; more find more."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    n_threads: Annotated[
        int | None, typer.Option("--n-threads", min=1, help="By default all processors.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn a tree from a file, score it on rows kept apart, and show it.

    One tree is searched for rather than grown; --trees N boosts, --oblique --trees N bags. Empty
    cells are missing values, columns of text are categories. The file is written whole or not at
    all. With --soft the file holds the hard machine: a soft one is a torch module.

    [bold]Examples[/]

    dm train rows.csv --target price -o model.dm

    dm train rows.parquet --target churned --leaves 8 --drop customer_id

    dm train rows.csv --target species --trees 100 --json

    [bold]Exit codes[/]  0 done; 2 the call or the data is wrong; 130 interrupted.
    """
    try:
        from ..estimators import DecisionMachineClassifier, DecisionMachineRegressor
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "sklearn":
            raise
        raise MissingLibraryError(
            "training a tree",
            "scikit-learn is not installed",
            "pip install 'decision-machines[sklearn,data]'",
        ) from None
    from ..write import target_of
    from .output import check_output, write_model

    written_as = None
    if output is not None:
        written_as = target_of(output, None)
        check_output(output)
    rows = read_rows(data, target, kind, drop or [], weight)
    if written_as not in (None, "dm"):
        _refuse_text(rows, output)
    _refuse_contradictions(rows, oblique=oblique, linear=linear, balanced=balanced)
    options: dict[str, Any] = {
        "n_trees": trees,
        "max_leaves": leaves,
        "max_depth": depth,
        "oblique": oblique,
        "leaves": "linear" if linear else "constant",
        "soft": soft,
        "n_iterations": iterations,
        "random_state": seed,
        "n_threads": n_threads,
        "verbose": False if quiet or as_json else None,
    }
    if rows.is_classes:
        model: Any = DecisionMachineClassifier(
            **options, class_weight="balanced" if balanced else None
        )
    else:
        model = DecisionMachineRegressor(**options)
    if not (quiet or as_json):
        Console(stderr=True).print(Text(f"{rows.why}; {rows.words()}"), soft_wrap=True)
    own, held = rows.split(validation, seed)
    start = time.perf_counter()
    try:
        own.fit(model)
        scores = {} if held is None else held.scores(model)
        if refit and held is not None:
            rows.fit(model)
    except KeyboardInterrupt:
        typer.echo("interrupted; no file is written", err=True)
        sys.exit(130)
    seconds = time.perf_counter() - start
    if output is not None:
        write_model(model.machine_, output, written_as or "dm")
    report = _report(model, rows, own, held, scores, seconds, output)
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False, default=str))
        return
    _print(model, rows, scores, report, output)


@dataclass(frozen=True)
class TrainingRows:
    """A table of features, its target and weights, and what the target was taken for."""

    table: Any
    y: Any
    w: Any
    is_classes: bool
    why: str
    dropped: int

    def words(self) -> str:
        lost = f", {self.dropped} without a target left out" if self.dropped else ""
        return f"{len(self.y)} rows of {self.table.num_columns} features{lost}"

    def take(self, which: Any) -> TrainingRows:
        w = None if self.w is None else self.w[which]
        return TrainingRows(
            self.table.take(which), self.y[which], w, self.is_classes, self.why, self.dropped
        )

    def split(self, share: float, seed: int) -> tuple[TrainingRows, TrainingRows | None]:
        """The rows to learn from, and those kept apart, of each class alike; None if too few."""
        import numpy as np

        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.y))
        if self.is_classes:
            codes = np.unique(self.y, return_inverse=True)[1]
            order = order[np.argsort(codes[order], kind="stable")]
        n = int(share * len(order))
        if n < 1 or n >= len(order):
            return self, None
        # Evenly spread over the order: each class gives its share.
        out = order[(np.arange(n) * len(order)) // n]
        own = np.setdiff1d(order, out)
        if self.is_classes:
            # A label that is nowhere learned could not be answered.
            learned = np.isin(self.y[out], self.y[own])
            own, out = np.concatenate([own, out[~learned]]), out[learned]
        return self.take(np.sort(own)), self.take(np.sort(out)) if len(out) else None

    def fit(self, model: Any) -> None:
        model.fit(self.table, self.y, self.w)

    def scores(self, model: Any) -> dict[str, float]:
        """What the model does on these rows, and what a constant would."""
        if not self.is_classes:
            return self._errors(model)
        from sklearn.metrics import accuracy_score, f1_score, log_loss

        predicted = model.predict(self.table)
        found = {
            "accuracy": accuracy_score(self.y, predicted, sample_weight=self.w),
            "macro F1": f1_score(
                self.y, predicted, average="macro", sample_weight=self.w, zero_division=0.0
            ),
            "log-loss": 0.0,
        }
        if len(model.classes_) > 1:
            shares = model.predict_proba(self.table).clip(1e-6)
            shares /= shares.sum(axis=1, keepdims=True)
            found["log-loss"] = log_loss(
                self.y, shares, labels=model.classes_, sample_weight=self.w
            )
        if model.soft_ is not None:
            hard = model.machine_.predict(model._rows(self.table))
            found["accuracy of the hard machine"] = accuracy_score(
                self.y, hard, sample_weight=self.w
            )
        import numpy as np

        counts = np.unique(self.y, return_counts=True)[1]
        found["accuracy of the commonest class"] = counts.max() / counts.sum()
        return {name: float(value) for name, value in found.items()}

    def _errors(self, model: Any) -> dict[str, float]:
        from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

        predicted = model.predict(self.table)
        found = {
            "R²": r2_score(self.y, predicted, sample_weight=self.w) if len(self.y) > 1 else 0.0,
            "RMSE": root_mean_squared_error(self.y, predicted, sample_weight=self.w),
            "mean absolute error": mean_absolute_error(self.y, predicted, sample_weight=self.w),
        }
        if model.soft_ is not None:
            hard = model.machine_.predict(model._rows(self.table))
            found["RMSE of the hard machine"] = root_mean_squared_error(
                self.y, hard, sample_weight=self.w
            )
        found["RMSE of the mean"] = root_mean_squared_error(
            self.y, self.y * 0.0 + self.y.mean(), sample_weight=self.w
        )
        return {name: float(value) for name, value in found.items()}


def read_rows(
    data: Path, target: str, kind: str, drop: list[str], weight: str | None
) -> TrainingRows:
    """The file's rows: features, target, weights; rows without a target left out."""
    import numpy as np

    from ..run.files import read_table

    doing = f"reading {data}"
    if kind not in ("auto", "classification", "regression"):
        raise InputError(doing, f"--kind {kind}", "use classification or regression")
    table = read_table(data)
    names = table.column_names
    for column in [target, *drop, *([weight] if weight else [])]:
        if column not in names:
            shown = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
            raise InputError(doing, f"no column {column!r}", f"choose one of its columns: {shown}")
    table = _without_empty_text(table)
    is_there = np.asarray(table[target].is_valid())
    dropped = int(np.count_nonzero(~is_there))
    if dropped:
        table = table.filter(table[target].is_valid())
    if not table.num_rows:
        raise InputError(doing, f"no row with a value in {target!r}", "give rows with a target")
    y = np.array(table[target].to_pylist())
    w = None if weight is None else _weights(table, weight, doing)
    features = table.drop_columns(
        list(dict.fromkeys([target, *drop, *([weight] if weight else [])]))
    )
    if not features.num_columns:
        raise InputError(doing, "no column is left to learn from", "drop fewer columns")
    _refuse_infinities(features, doing)
    is_classes, why = _guess(y, target, kind, doing)
    if not is_classes:
        y = y.astype(np.float64)
    elif y.dtype.kind == "f" and np.all(y == np.floor(y)):
        y = y.astype(np.int64)
    elif y.dtype.kind == "f":
        # Classes may be numbers; scikit-learn takes fractions for a mistake, so they become text.
        y = y.astype(str)
    return TrainingRows(features, y, w, is_classes, why, dropped)


def _weights(table: Any, name: str, doing: str) -> Any:
    """The column as finite weights from 0, some of them above."""
    import numpy as np

    remedy = "name a column of finite numbers from 0, some of them above 0"
    try:
        w = np.array(
            [np.nan if value is None else value for value in table[name].to_pylist()], np.float64
        )
    except (TypeError, ValueError):
        raise InputError(doing, f"--weight {name} holds no numbers", remedy) from None
    is_good = np.isfinite(w) & (w >= 0)
    if not np.all(is_good):
        row = int(np.argmin(is_good))
        raise InputError(doing, f"--weight {name} is {w[row]} in row {row}", remedy)
    if not np.any(w > 0):
        raise InputError(doing, f"--weight {name} is 0 in every row", remedy)
    return w


def _refuse_infinities(table: Any, doing: str) -> None:
    """Name the column before the rows are divided: their numbers would be no help afterwards."""
    import numpy as np
    import pyarrow

    for i, field in enumerate(table.schema):
        if not pyarrow.types.is_floating(field.type):
            continue
        n = int(np.count_nonzero(np.isinf(table.column(i).to_numpy())))
        if n:
            raise InputError(
                doing,
                f"column {field.name!r} contains infinity in {n} row{'' if n == 1 else 's'}",
                "leave the cells empty, which means missing, or put a bound there",
            )


def _refuse_contradictions(
    rows: TrainingRows, *, oblique: bool, linear: bool, balanced: bool
) -> None:
    """Say in the command's own words which options do not go together."""
    doing = "choosing how to train"
    if balanced and not rows.is_classes:
        raise InputError(doing, f"--balanced for numbers ({rows.why})", "leave --balanced out")
    if linear and rows.is_classes:
        raise InputError(doing, f"--linear for classes ({rows.why})", "leave --linear out")
    if linear and not oblique:
        raise InputError(doing, "--linear without --oblique", "give --oblique, too")


def _refuse_text(rows: TrainingRows, output: Any) -> None:
    """Say before training, not after it, that other libraries' files hold no labels of ours."""
    from ..estimators.labels import label_columns

    text = [rows.table.column_names[i] for i in label_columns(rows.table)]
    if text:
        raise InputError(
            f"writing {output}",
            f"column {text[0]!r} holds text, whose labels only a .dm file keeps",
            "write a .dm file, or drop the text columns (--drop)",
        )


def _without_empty_text(table: Any) -> Any:
    """The table with null for empty text: in a CSV file an empty cell is both."""
    import pyarrow
    import pyarrow.compute

    for i, field in enumerate(table.schema):
        if pyarrow.types.is_string(field.type) or pyarrow.types.is_large_string(field.type):
            column = table.column(i)
            null = pyarrow.scalar(None, field.type)
            kept = pyarrow.compute.if_else(pyarrow.compute.equal(column, ""), null, column)
            table = table.set_column(i, field.name, kept)
    return table


def _guess(y: Any, target: str, kind: str, doing: str) -> tuple[bool, str]:
    """Whether the target is classes, and why we think so."""
    import numpy as np

    if y.dtype.kind not in "biufUO" or (y.dtype == object and not _is_text(y)):
        raise InputError(
            doing,
            f"{target!r} holds {y.dtype} values such as {y[0]!r}",
            "use a target of numbers or text",
        )
    is_text = y.dtype.kind in "OU"
    if kind == "regression" and (is_text or y.dtype.kind == "b"):
        raise InputError(
            doing, f"{target!r} holds {y[0]!r} and is no number", "use --kind classification"
        )
    different = len(np.unique(y))
    if kind != "auto":
        return kind == "classification", f"{kind} of {target!r}, as asked"
    values = f"{target!r} has {different} different value{'' if different == 1 else 's'}"
    if is_text or y.dtype.kind == "b":
        return True, f"{values}, no numbers: classification"
    is_whole = bool(np.all(y == np.floor(y)))
    if is_whole and (different <= 2 or (different <= MOST_CLASSES and different < len(y) / 5)):
        return True, f"{values}, whole numbers: classification (else --kind regression)"
    return False, f"{values}, numbers: regression (else --kind classification)"


def _is_text(y: Any) -> bool:
    return all(isinstance(value, str) for value in y)


def _report(model, rows, own, held, scores, seconds, output) -> dict[str, Any]:
    machine = model.machine_
    names = rows.table.column_names
    importance = sorted(
        zip(names, model.feature_importances_.tolist(), strict=True), key=lambda pair: -pair[1]
    )
    return {
        "kind": "classification" if rows.is_classes else "regression",
        "why": rows.why,
        "rows": len(rows.y),
        "rows without a target": rows.dropped,
        "rows learned from": len(own.y),
        "rows kept apart": 0 if held is None else len(held.y),
        "classes": [str(c) for c in model.classes_] if rows.is_classes else None,
        "scores": scores,
        "trees": machine.n_trees,
        "leaves": machine.n_leaves,
        "depth": machine.depth,
        "importances": {name: value for name, value in importance if value > 0},
        "seconds": seconds,
        "output": None if output is None else str(output),
    }


def _print(model, rows, scores, report, output) -> None:
    console = Console()
    machine = model.machine_
    if scores:
        said = ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
        kept = report["rows kept apart"]
        console.print(Text(f"on {kept} rows kept apart: {said}", "bold"), soft_wrap=True)
    else:
        console.print(Text("no rows were kept apart: no score", "yellow"))
    top = list(report["importances"].items())[:5]
    if top:
        said = ", ".join(f"{name} {value:.0%}" for name, value in top)
        console.print(Text(f"what counts: {said}"), soft_wrap=True)
    console.print(Text(f"{machine!r}; {report['seconds']:.1f} s"), soft_wrap=True)
    if machine.n_trees == 1 and machine.n_leaves <= MOST_RULES:
        console.print(Text(str(machine.rules())), soft_wrap=True)
    if output is not None:
        console.print(Text(f"written to {output}"), soft_wrap=True)
