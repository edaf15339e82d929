"""Which learner of the train room fits what was asked for, called with what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..train.fit import Fit
from ..train.hold_out import hold_out
from ..train.rows import Rows
from .labels import one_hot, with_label_sets, with_one_hot_sets

if TYPE_CHECKING:
    from ..machine import DecisionMachine

FEWEST_TO_TUNE = 20
"""Rows; with fewer none could be held out to judge a soft machine by."""


def learn(estimator: Any, rows: Rows, held: Rows | None, n_classes: int | None, seed: int) -> Fit:
    """Fit what the estimator's parameters ask for; `held` chooses, where it is given."""
    is_many = estimator.n_trees > 1
    if estimator.oblique:
        return _oblique(estimator, rows, held, n_classes, seed, is_many)
    if estimator.leaves == "linear":
        raise InputError(
            f"fitting a {type(estimator).__name__}",
            "leaves = 'linear' with oblique = False",
            "use oblique=True for linear leaves, or leaves='constant'",
        )
    is_soft = estimator.soft and len(rows) >= FEWEST_TO_TUNE
    own = rows
    if is_soft and held is None:
        # The source must not know the rows that judge how it was tuned.
        own, held = hold_out(rows, 0.2, seed, is_classes=n_classes is not None)
    found = (_boosted if is_many else _searched)(estimator, own, held, n_classes, seed)
    machine = with_label_sets(found.machine, estimator.labels_)
    found = replace(found, machine=machine)
    if not is_soft or held is None or found.is_interrupted:
        return found
    return _tuned(estimator, found, own, held, seed)


def _given(held: Rows | None) -> tuple[Any, ...] | None:
    return None if held is None else (held.X, held.y, held.w)


def _searched(
    estimator: Any, rows: Rows, held: Rows | None, n_classes: int | None, seed: int
) -> Fit:
    from ..train.axis import axis_tree

    options = {} if n_classes is not None else {"quantile": estimator.quantile}
    return axis_tree(
        rows.X,
        rows.y,
        n_classes=n_classes,
        max_leaves=estimator.max_leaves,
        max_depth=estimator.max_depth,
        min_samples_leaf=estimator.min_samples_leaf or 1,
        criterion=estimator.criterion,
        leaf_cost=estimator.leaf_cost,
        feature_costs=by_feature(estimator, "feature_costs"),
        monotone=by_feature(estimator, "monotone"),
        sample_weight=rows.w,
        validation=_given(held),
        n_iterations=estimator.n_iterations,
        time_limit=estimator.time_limit,
        seed=seed,
        n_threads=estimator.n_threads,
        verbose=estimator.verbose,
        keep_best_on_interrupt=estimator.keep_best_on_interrupt,
        **options,
    )


def by_feature(estimator: Any, name: str) -> Any:
    """What is asked of single features, by their numbers where it was said by their names."""
    given = getattr(estimator, name)
    names = [str(each) for each in getattr(estimator, "feature_names_in_", ())]
    doing = f"fitting a {type(estimator).__name__}"
    if isinstance(given, Mapping):
        found = {}
        for feature, value in given.items():
            if isinstance(feature, str) and feature not in names:
                known = f"use a column's name: {', '.join(names[:12])}" if names else "use numbers"
                raise InputError(doing, f"{name} for {feature!r}, which X does not have", known)
            found[names.index(feature) if isinstance(feature, str) else feature] = value
        given = found
    if name == "monotone" and given is not None:
        asked = given if isinstance(given, Mapping) else dict(enumerate(given))
        for feature in (f for f in estimator.labels_ if asked.get(f, 0)):
            raise InputError(
                doing,
                f"monotone for column {names[feature]!r}, which holds text",
                "leave it out: labels have no order",
            )
    return given


def _boosted(
    estimator: Any, rows: Rows, held: Rows | None, n_classes: int | None, seed: int
) -> Fit:
    from ..train.forests import boosted_trees

    start = _start(estimator, rows, n_classes)
    return boosted_trees(
        rows.X,
        rows.y,
        n_classes=n_classes,
        n_trees=estimator.n_trees - (0 if start is None else _rounds(start)),
        max_leaves=estimator.max_leaves,
        max_depth=estimator.max_depth,
        min_samples_leaf=estimator.min_samples_leaf,
        learning_rate=estimator.learning_rate,
        sample_weight=rows.w,
        validation=_given(held),
        patience=estimator.patience if estimator.early_stopping else None,
        n_iterations=estimator.n_iterations,
        start=start,
        seed=seed + (0 if start is None else start.n_trees),
        n_threads=estimator.n_threads,
        verbose=estimator.verbose,
        keep_best_on_interrupt=estimator.keep_best_on_interrupt,
    )


def _start(estimator: Any, rows: Rows, n_classes: int | None) -> DecisionMachine | None:
    """The boosted trees to go on from, where `warm_start` asks for it and they fit."""
    if not estimator.warm_start or getattr(estimator, "learned_", None) is None:
        return None
    before: DecisionMachine = estimator.learned_.machine
    k = 1 if n_classes == 2 else n_classes or rows.y.reshape(len(rows), -1).shape[1]
    fits = before.source == "boosted trees" and before.n_outputs == k
    fits = fits and before.n_features == rows.X.shape[1] and not estimator.labels_
    if not fits or _rounds(before) >= estimator.n_trees:
        return None
    return before


def _rounds(machine: DecisionMachine) -> int:
    """Rounds of boosting: narrow trees come one for each output."""
    is_narrow = machine.is_narrow and machine.n_outputs > 1
    return machine.n_trees // (machine.n_outputs if is_narrow else 1)


def _oblique(
    estimator: Any, rows: Rows, held: Rows | None, n_classes: int | None, seed: int, is_many: bool
) -> Fit:
    from ..train.forests import average, bagged_trees
    from ..train.oblique import oblique_tree

    labels, n = estimator.labels_, rows.X.shape[1]
    place: list[tuple[int, int]] = []
    if labels:
        if estimator.leaves == "linear":
            raise InputError(
                f"fitting a {type(estimator).__name__}",
                "leaves = 'linear' for a table with text columns",
                "use leaves='constant', or make numbers of the text (OneHotEncoder)",
            )
        X, place = one_hot(rows.X, labels)
        rows = replace(rows, X=X)
        if held is not None:
            columns = [
                held.X[:, f]
                if r < 0
                else np.where(np.isnan(held.X[:, f]), np.nan, held.X[:, f] == r)
                for f, r in place
            ]
            held = replace(held, X=np.stack(columns, axis=1))
    options: dict[str, Any] = {
        "n_classes": n_classes,
        "depth": _depth(estimator),
        "leaves": estimator.leaves,
        "sample_weight": rows.w,
        "seed": seed,
        "n_threads": estimator.n_threads,
        "verbose": estimator.verbose,
        "keep_best_on_interrupt": estimator.keep_best_on_interrupt,
    }
    if estimator.n_iterations is not None:
        options["effort"] = _effort(estimator, n_classes)
    if not is_many:
        found = oblique_tree(rows.X, rows.y, validation=_given(held), **options)
        return _renamed(found, place, n, labels) if labels else found
    start = getattr(estimator, "learned_", None) if estimator.warm_start else None
    if start is not None and "fits" not in start.report:
        start = None
    found = bagged_trees(rows.X, rows.y, n_trees=estimator.n_trees, start=start, **options)
    if not labels:
        return found
    parts = [_renamed(fit, place, n, labels) for fit in found.report["fits"]]
    machine = average([part.machine for part in parts])
    return replace(found, machine=machine, soft=[part.soft for part in parts])


def _renamed(
    found: Fit, place: list[tuple[int, int]], n: int, labels: dict[int, tuple[Any, ...]]
) -> Fit:
    """The tree over the table's own features, and soft again with the same slopes."""
    machine = with_one_hot_sets(found.machine, place, n, labels)
    slope = found.soft.slopes().detach().numpy()
    return replace(found, machine=machine, soft=machine.soften("soft_tree", slope=slope))


def _effort(estimator: Any, n_classes: int | None) -> Any:
    """A few trees of each recipe, for so many steps of training."""
    steps = {
        "n_first": 2,
        "n_second": 3,
        "first_steps": max(1, estimator.n_iterations // 3),
        "second_steps": max(1, estimator.n_iterations),
    }
    if n_classes is None:
        from ..train.regression.search import RegressionEffort

        return RegressionEffort(**steps)
    from ..train.oblique.search import Effort

    return Effort(**steps)


def _depth(estimator: Any) -> int:
    """Of the largest complete tree within `max_leaves` and `max_depth`."""
    depth = int(np.floor(np.log2(max(estimator.max_leaves, 1))))
    return depth if estimator.max_depth is None else min(depth, estimator.max_depth)


def _tuned(estimator: Any, found: Fit, rows: Rows, held: Rows, seed: int) -> Fit:
    """The machine fine-tuned end to end: soft and hard answers no worse on the rows held out."""
    from ..train.tune import tune

    if not found.machine.n_tests:
        return found
    tuned = tune(
        found.machine,
        rows.X,
        rows.y,
        validation=_given(held),
        sample_weight=rows.w,
        refit=True,
        seed=seed,
        n_threads=estimator.n_threads,
        verbose=estimator.verbose,
        keep_best_on_interrupt=estimator.keep_best_on_interrupt,
    )
    interrupted = tuned.report.interrupted
    report = {**found.report, "tuning": tuned.report, "interrupted": interrupted}
    return Fit(tuned.machine, tuned.soft, report, [*found.history, *tuned.history])
