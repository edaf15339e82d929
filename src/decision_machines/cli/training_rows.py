"""Rows of a file to learn from: what the target is, what is kept apart, and scores on that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST_CLASSES = 20
"""Different whole numbers up to which a target is taken for classes."""


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

    from ..files.tables import read_table

    doing = f"reading {data}"
    if kind not in ("auto", "classification", "regression"):
        raise InputError(doing, f"--kind {kind}", "use classification or regression")
    table = read_table(data)
    taken = list(dict.fromkeys([target, *drop, *([weight] if weight else [])]))
    require_columns(table, taken, doing)
    if target in drop:
        raise InputError(doing, f"--drop {target}, which is the target", "drop other columns")
    table = _without_empty_text(table)
    is_there = np.asarray(table[target].is_valid())
    dropped = int(np.count_nonzero(~is_there))
    if dropped:
        table = table.filter(table[target].is_valid())
    if not table.num_rows:
        raise InputError(doing, f"no row with a value in {target!r}", "give rows with a target")
    y = np.array(table[target].to_pylist())
    w = None if weight is None else _weights(table, weight, doing)
    features = table.drop_columns(taken)
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


def require_columns(table: Any, names: Iterable[str], doing: str) -> None:
    """Say which column is not there, and which are."""
    for name in names:
        if name not in table.column_names:
            shown = ", ".join(table.column_names[:12])
            more = " …" if table.num_columns > 12 else ""
            raise InputError(
                doing, f"no column {name!r}", f"choose one of its columns: {shown}{more}"
            )


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
