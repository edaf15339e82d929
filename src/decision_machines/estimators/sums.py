"""``n_trees="auto"``: a weighted sum of machines behind an estimator, and its intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, MissingLibraryError
from ..train.sums.goal import OF_NUMBERS, SumGoal
from .base import MachineClassifier
from .importance import feature_importances
from .labels import with_label_sets
from .soft_answers import frozen_soft

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine

ALONE: dict[str, Any] = {
    **{"oblique": False, "leaves": "constant", "warm_start": False},
    **{"leaf_cost": 0.0, "feature_costs": None, "monotone": None},
}
"""Parameters of one kind of tree, which a sum of many kinds does not take."""
OBJECTIVES = {"squared_error": "squared", "absolute_error": "absolute"}
"""What `tune` calls criteria that have another name there."""


def fit_sum(estimator: Any, X: Any, y: Any, sample_weight: Any, validation: Any) -> None:
    """Learn the sum and keep it, soft and hard, with its report."""
    from ..train.sums import sum_of_machines

    doing = f"fitting a {type(estimator).__name__}"
    is_classes = isinstance(estimator, MachineClassifier)
    for name, only in (ALONE | ({"criterion": "accuracy"} if is_classes else {})).items():
        asked = getattr(estimator, name)
        if asked is not only and (only is None or asked != only):
            raise InputError(
                doing,
                f"n_trees='auto' with {name}={getattr(estimator, name)!r}",
                f"leave {name} out, or give n_trees as a number",
            )
    _check_torch(doing)
    rows = estimator._read(X, y, sample_weight)
    if is_classes:
        goal = SumGoal.of_classes(len(estimator.classes_))
    else:
        goal = _goal_of_numbers(estimator, doing)
        _check_targets(rows.y, goal, doing)
    judge = None if validation is None else estimator._read_validation(validation)
    labels = estimator.labels_
    found = sum_of_machines(
        rows,
        goal,
        judge=judge,
        finish=lambda machine: _with_labels(machine, labels),
        labels=tuple(labels),
        time_limit=estimator.time_limit,
        seed=estimator._seed,
        n_threads=estimator.n_threads,
        verbose=estimator.verbose,
        keep_best_on_interrupt=estimator.keep_best_on_interrupt,
    )
    estimator._keep(found.machine)
    estimator.learned_ = None
    estimator.soft_ = found.soft if estimator.soft else None
    estimator.soft_machine_ = (
        frozen_soft(found.soft, estimator.machine_) if estimator.soft else None
    )
    estimator.history_, estimator.report_ = found.history, found.report
    estimator.feature_importances_ = feature_importances(estimator.machine_, rows.X, rows.w)


def _with_labels(machine: DecisionMachine, labels: dict[int, tuple[Any, ...]]) -> DecisionMachine:
    """The machine that reads labels; oblique tests of a sum read numbers alone."""
    if machine.is_oblique:
        return replace(machine, columns=replace(machine.columns, categories=labels))
    return with_label_sets(machine, labels)


def refuse_interval(estimator: Any) -> None:
    """Only a sum holds rows out that intervals can be calibrated by."""
    if getattr(estimator, "interval", None) is not None:
        raise InputError(
            f"fitting a {type(estimator).__name__}",
            f"interval={estimator.interval!r} with n_trees={estimator.n_trees}",
            "use n_trees='auto', or leave interval out",
        )


def _goal_of_numbers(estimator: Any, doing: str) -> SumGoal:
    name = OBJECTIVES.get(estimator.criterion, estimator.criterion)
    return SumGoal.of_numbers(
        f"quantile:{estimator.quantile}" if name == "quantile" else name,
        doing=doing,
        asked=f"criterion={estimator.criterion!r} with n_trees='auto'",
        known=[*OBJECTIVES, *(n for n in OF_NUMBERS if n not in OBJECTIVES.values())],
    )


def _check_torch(doing: str) -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingLibraryError(
            doing,
            "n_trees='auto' tunes by torch, which is not installed",
            "pip install 'decision-machines[torch]', or give n_trees as a number",
        ) from None


def _check_targets(y: np.ndarray, goal: SumGoal, doing: str) -> None:
    if y.ndim == 2 and y.shape[1] > 1:
        raise InputError(
            doing,
            f"y has {y.shape[1]} columns with n_trees='auto'",
            "fit one estimator for each column, or give n_trees as a number",
        )
    least = float(y.min())
    if (goal.kind in ("poisson", "tweedie") and least < 0) or (goal.kind == "gamma" and least <= 0):
        need = "above 0" if goal.kind == "gamma" else "of at least 0"
        raise InputError(
            doing, f"criterion={goal.objective!r} and a target of {least:g}", f"give targets {need}"
        )


def interval_of(estimator: Any, answers: Float[np.ndarray, "m"]) -> Float[np.ndarray, "m 2"]:
    """Answers with the errors that the rows judged allow on both sides."""
    doing = "predicting an interval"
    if getattr(estimator, "interval", None) is None or estimator.n_trees != "auto":
        raise InputError(
            doing,
            f"interval={getattr(estimator, 'interval', None)!r}, n_trees={estimator.n_trees!r}",
            "fit with n_trees='auto' and an interval, such as 0.9",
        )
    report = estimator.report_
    low, high = -np.inf, np.inf
    if report["judged"]:
        margins = report["margins" if estimator.soft else "hard margins"]
        errors = np.sort(np.ravel(report["targets"]) - estimator.machine_.decide(margins))
        n, outside = len(errors), (1 - estimator.interval) / 2
        below, above = int(np.floor((n + 1) * outside)), int(np.ceil((n + 1) * (1 - outside)))
        low = errors[below - 1] if below >= 1 else -np.inf
        high = errors[above - 1] if above <= n else np.inf
    return np.stack([answers + low, answers + high], axis=1)
