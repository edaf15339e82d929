"""`max_leaves="auto"`: the size of a tree, chosen before it is learned from all rows."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

from ..train.sizes import N_FOLDS, SIZES, size_path, sizes_for
from .row_scores import row_scores

if TYPE_CHECKING:
    from ..machine import DecisionMachine
    from ..train.rows import Rows
    from ..train.sizes import Scores

QUICK: dict[str, Any] = {"n_iterations": 50, "n_epochs": 10}
"""What a size is judged with: fewer moves than the tree itself is given, to save time."""
ENDED: dict[str, Any] = {"n_iterations": 0, "n_epochs": 0, "time_limit": 1e-3}
"""What is learned with after an interruption."""
FOR_SIZES = 0.5
"""The part of a time limit in which the size is chosen."""


def with_size(estimator: Any, rows: Rows, seed: int, *, complete: bool = False) -> tuple[Any, bool]:
    """The estimator itself, or one whose size is chosen, and whether the choice was interrupted.

    The estimator's `path_` says how the size was chosen.

    Parameters
    ----------
    estimator
        With `_learned(rows, seed)`, which gives a `Fit` and reads nothing but parameters.
    complete
        Whether its trees are complete, so that sizes double.
    """
    estimator.__dict__.pop("path_", None)
    if estimator.max_leaves != "auto":
        return estimator, False
    begin = time.perf_counter()
    is_classes = hasattr(estimator, "classes_")
    sizes = sizes_for(len(rows), _most(estimator.max_depth), complete=complete)
    limit = getattr(estimator, "time_limit", None)
    left = [len(sizes) * N_FOLDS]

    def learn(own: Rows, size: int) -> DecisionMachine:
        probe = _variant(estimator, max_leaves=size, verbose=False, keep_best_on_interrupt=False)
        for name, value in QUICK.items():
            if hasattr(probe, name):
                own_value = getattr(probe, name)
                setattr(probe, name, value if own_value is None else min(value, own_value))
        if limit is not None:
            spent = time.perf_counter() - begin
            probe.time_limit = max(1e-3, (FOR_SIZES * limit - spent) / max(1, left[0]))
        left[0] -= 1
        found: DecisionMachine = probe._learned(own, seed).machine
        return found

    name, scores = scores_of(estimator, rows)
    path, interrupted = size_path(
        learn,
        rows,
        sizes,
        scores,
        name=name,
        is_classes=is_classes,
        seed=seed,
        seconds=None if limit is None else FOR_SIZES * limit,
        verbose=estimator.verbose,
        keep_best_on_interrupt=estimator.keep_best_on_interrupt,
    )
    estimator.path_ = path
    changes: dict[str, Any] = {"max_leaves": path.chosen}
    if limit is not None:
        changes["time_limit"] = max(1e-3, limit - (time.perf_counter() - begin))
    if interrupted:
        changes |= {name: value for name, value in ENDED.items() if hasattr(estimator, name)}
    return _variant(estimator, **changes), interrupted


def _variant(estimator: Any, **changes: Any) -> Any:
    """A shallow copy with other parameters, and all that was read from the data."""
    found = copy.copy(estimator)
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def _most(max_depth: int | None) -> int:
    return SIZES[-1] if max_depth is None else min(SIZES[-1], 2 ** min(max_depth, 30))


def scores_of(estimator: Any, rows: Rows) -> tuple[str, Scores]:
    """The name of what the estimator looks for, and the score of each row in it."""
    default = "accuracy" if hasattr(estimator, "classes_") else "squared_error"
    criterion = getattr(estimator, "criterion", default)
    return row_scores(criterion, rows, getattr(estimator, "quantile", 0.5))
