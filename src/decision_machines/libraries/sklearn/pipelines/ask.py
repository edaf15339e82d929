"""Asking a pipeline: rows of codes as raw tables, through the pipeline's own steps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ....machine import DecisionMachine
from ... import convert
from ...oracles import UNSEEN, Oracle, oracle_of
from ..read_trees import is_active
from .floats import Ordered
from .stage import dense

SPREAD = 48
"""Numbers of each feature that are tried besides those at thresholds."""
MOST_BETWEEN = 400


class PipelineOracle(Oracle):
    """A pipeline whose last step is a model that can be asked."""

    compared = "leaves, and the pipeline's own answers"

    def __init__(self, model: Any, machine: DecisionMachine) -> None:
        super().__init__(model, machine)
        self.whole_machine = machine
        self.columns = machine.columns
        for feature, edges in machine.columns.edges.items():
            above = np.nextafter(edges[-1], np.inf) if edges else 0.0
            self.labels[feature] = dict(enumerate([*edges, above]))
        self.last = _last(model)
        self.inner, self.is_part = _inner(self.last, machine)
        self.asked = oracle_of(self.last, self.inner)
        self.compared = f"{self.asked.compared}, and the pipeline's own answers"  # type: ignore[misc]
        accepted = machine.columns.accepted
        self.single = {
            f for block, dtype in (accepted.blocks if accepted else ()) for f in block
            if dtype == "float32"
        }  # fmt: skip

    @property
    def takes_nan(self) -> bool:  # type: ignore[override]
        accepted = self.columns.accepted
        return accepted is None or bool(np.any(accepted.missing))

    @property
    def codes(self) -> dict[int, list[float]]:
        accepted = self.columns.accepted
        found = {}
        for f, known in self.labels.items():
            refused = accepted.refused.get(f, ()) if accepted is not None else ()
            codes = [] if f in self.columns.edges or -1 in refused else [-1.0]
            codes += [float(code) for code in known if code not in refused]
            if accepted is None or accepted.missing[f]:
                codes.append(float("nan"))
            found[f] = codes
        return found

    @property
    def resting(self) -> dict[int, float]:
        """A number that each feature may have."""
        accepted = self.columns.accepted
        if accepted is None:
            return {}
        return {
            f: float(np.clip(0.0, accepted.low[f], accepted.high[f]))
            for f in range(self.machine.n_features)
            if f not in self.labels
        }

    def askable(self, X: np.ndarray) -> np.ndarray:
        """Rows that the pipeline does not refuse."""
        accepted = self.columns.accepted
        if accepted is None:
            return np.ones(len(X), bool)
        taken = np.ones(X.shape, bool)
        taken[:, ~accepted.missing] &= ~np.isnan(X[:, ~accepted.missing])
        for f in range(X.shape[1]):
            if f not in self.labels:
                taken[:, f] &= ~((X[:, f] < accepted.low[f]) | (X[:, f] > accepted.high[f]))
            taken[:, f] &= ~np.isin(X[:, f], accepted.refused.get(f, ()))
        return np.asarray(taken.all(axis=1))

    def as_given(self, X: np.ndarray) -> np.ndarray:
        """Rows whose numbers can be given: those of float32 columns are rounded up to float32."""
        if not self.single:
            return X
        X = X.copy()
        for f in self.single - self.labels.keys():
            with np.errstate(over="ignore"):
                single = X[:, f].astype(np.float32)
                up = np.nextafter(single, np.float32(np.inf))
            X[:, f] = np.where(single < X[:, f], up, single)
        return X

    def more_rows(self) -> np.ndarray:
        """Rows with numbers between thresholds, where a step that is not monotone shows itself."""
        machine, n = self.machine, self.machine.n_features
        rows = []
        start = np.zeros(n)
        for f, x in self.resting.items():
            start[f] = x
        for f, codes in self.codes.items():
            start[f] = codes[0] if codes else np.nan
        feature = machine.columns.feature[machine.selection]
        for f in self.resting:
            t = np.unique(machine.t[feature == f])
            t = t[np.isfinite(t)]
            between = (t[1:] + t[:-1]) / 2
            between = between[:: max(1, len(between) // MOST_BETWEEN)]
            keys = Ordered(np.dtype(np.float64))
            accepted = self.columns.accepted
            low, high = (-1e300, 1e300) if accepted is None else (accepted.low[f], accepted.high[f])
            ends = keys.keys(np.array([max(low, -1e300), min(high, 1e300)]))
            spread = keys.values(np.linspace(ends[0], ends[1], SPREAD).astype(np.int64))
            around = np.linspace(t[0], t[-1], SPREAD) if len(t) else np.empty(0)
            for values in (between, spread, around):
                some = np.repeat(start[None], len(values), axis=0)
                some[:, f] = values
                rows.append(some)
        found = np.concatenate(rows) if rows else np.empty((0, n))
        return self.as_given(found[self.askable(found)])

    # -------------------------------------------------------------- the pipeline's answers

    def table(self, X: np.ndarray) -> Any:
        """Rows of codes as a table, or an array, that the pipeline reads."""
        columns = [self._column(X[:, f], f) for f in range(X.shape[1])]
        if self.columns.names is not None:
            import pandas

            held = {
                i: pandas.Series(c, dtype=object) if c.dtype == object else c
                for i, c in enumerate(columns)
            }
            return pandas.DataFrame(held).set_axis(list(self.columns.names), axis=1)
        if any(c.dtype == object for c in columns):
            found = np.empty(X.shape, object)
            for f, c in enumerate(columns):
                found[:, f] = c
            return found
        return np.stack(columns, axis=1)

    def _column(self, codes: np.ndarray, feature: int) -> np.ndarray:
        known = self.labels.get(feature)
        if known is None:
            return codes.astype(np.float32 if feature in self.single else np.float64)
        values = [
            float("nan") if c != c else known[int(c)] if c >= 0 else UNSEEN for c in codes.tolist()
        ]
        if feature in self.columns.edges:
            return np.array(values, np.float32 if feature in self.single else np.float64)
        found = np.empty(len(values), object)
        found[:] = values
        return found

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        """What the pipeline's steps make of rows, as the inner machine reads it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given: Any = self.table(X)
            for step in _steps_before(self.model):
                given = step.transform(given)
        return self.inner.features(dense(given), dtype=np.float64)

    @property
    def n_trees(self) -> int | None:
        return self.asked.n_trees

    def leaves(self, X: np.ndarray, tree: int) -> Any:
        return self.asked.leaves(self._transformed(X), tree)

    def compare_tree(self, X: np.ndarray, tree: int) -> Any:
        found = self.asked.compare_tree(self._transformed(X), tree)
        if found is None:
            return None
        output = self.asked.output_of_tree(self.machine.output)
        from dataclasses import replace

        ours = replace(self.machine.tree(tree), output=output).margin(X)
        return ours, found[1]

    def whole(self, X: np.ndarray) -> tuple[str, np.ndarray, np.ndarray]:
        if self.is_part:
            what, inner, theirs = self.asked.whole(self._transformed(X))
            return what, self.machine.margin(X).reshape(inner.shape), theirs
        table = self.table(X)
        machine = self.whole_machine
        ours: Any
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if machine.output.classes is not None and hasattr(self.model, "predict_proba"):
                ours, theirs = machine.predict_proba(table), self.model.predict_proba(table)
                if isinstance(ours, list):
                    ours, theirs = np.hstack(ours), np.hstack(theirs)
                return "probability", ours, np.asarray(theirs).reshape(ours.shape)
            ours = machine.predict(table)
            return "prediction", ours, np.asarray(self.model.predict(table)).reshape(ours.shape)


def _inner(last: Any, machine: DecisionMachine) -> tuple[DecisionMachine, bool]:
    """The machine of the last step that was folded into `machine`; whether it is one of several."""
    read = convert(last)
    if isinstance(read, DecisionMachine):
        return read, False
    found = next(one for one in read.machines if machine.source.endswith(one.source))
    return found, True


def _last(model: Any) -> Any:
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif type(model).__name__ == "Pipeline":
            model = model.steps[-1][1]
        elif type(model).__name__ == "FrozenEstimator":
            model = model.estimator
        else:
            return model


def _steps_before(model: Any) -> list[Any]:
    """Every step before the model, those of pipelines inside it too."""
    if hasattr(model, "best_estimator_"):
        return _steps_before(model.best_estimator_)
    if type(model).__name__ == "FrozenEstimator":
        return _steps_before(model.estimator)
    if type(model).__name__ != "Pipeline":
        return []
    before = [step for _, step in model.steps[:-1] if is_active(step)]
    return [*before, *_steps_before(model.steps[-1][1])]


def members_of(model: Any) -> list[Any]:
    """The models that an assembly's members were read from, with the steps before each."""
    from sklearn.pipeline import Pipeline

    from ...oracles import members_of as members_of_any
    from ..read_chains import is_boosted_from_a_model
    from ..read_meta import reader_of

    if hasattr(model, "best_estimator_"):
        return members_of(model.best_estimator_)
    if type(model).__name__ == "Pipeline":
        before, (name, last) = list(model.steps[:-1]), model.steps[-1]
        return [Pipeline([*before, (name, one)]) for one in members_of_any(last)]
    found: list[Any] = []
    reader = reader_of(model)
    assert reader is not None

    def member(one: Any) -> Any:
        found.append(one)
        return convert(one)

    reader(model, member)
    return [*found, model] if is_boosted_from_a_model(model) else found
