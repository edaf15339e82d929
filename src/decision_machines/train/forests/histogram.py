"""Boosted trees grown by scikit-learn's histograms, for data too large to search exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...progress import Watch


@dataclass(frozen=True)
class Histograms:
    """scikit-learn's histogram boosting, read as it is."""

    max_leaves: int
    max_depth: int | None
    least: int
    learning_rate: float
    seed: int
    how: str = "histograms"

    def __call__(
        self,
        X: Any,
        goal: Any,
        w: Any,
        n_rounds: int,
        judge: Any,
        patience: Any,
        _: Any,
        watch: Watch,
    ) -> tuple[Any, int]:
        """The machine of all trees, and after how many rounds it ended.

        scikit-learn does not say what it is doing, so the bar stands still meanwhile.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        from ...libraries import convert

        kind = HistGradientBoostingClassifier if goal.is_classes else HistGradientBoostingRegressor
        model = kind(
            max_iter=max(n_rounds, 1),
            learning_rate=self.learning_rate,
            max_leaf_nodes=max(self.max_leaves, 2),
            max_depth=self.max_depth,
            min_samples_leaf=max(self.least, 1),
            early_stopping=judge is not None,
            n_iter_no_change=patience or 10,
            tol=0.0,
            random_state=self.seed,
        )
        y = goal.code if goal.is_classes else goal.Y[:, 0]
        given = {}
        if judge is not None:
            y_held = judge[1].code if goal.is_classes else judge[1].Y[:, 0]
            given = {"X_val": judge[0], "y_val": y_held, "sample_weight_val": judge[2]}
        with watch:
            model.fit(X, y, sample_weight=w, **given)
            for loss in model.train_score_ if judge is not None else ():
                watch.step(loss=float(-loss))
        if watch.interrupted:
            best = _whole_rounds(model, judge is not None)
        else:
            # Where it ended early the last rounds did not help.
            ended_early = judge is not None and model.n_iter_ < n_rounds
            best = max(model.n_iter_ - (patience or 0) * ended_early, 1)
        machine = convert(model)
        per_round = machine.n_trees // model.n_iter_
        kept = machine.mask(range(best * per_round, machine.n_trees))
        return replace(kept, source="boosted trees"), best


def _whole_rounds(model: Any, is_judged: bool) -> int:
    """Leave an interrupted model its whole rounds; after how many of them it was best."""
    rounds = getattr(model, "_predictors", [])
    model._predictors = [r for r in rounds if len(r) == model.n_trees_per_iteration_]
    if not model._predictors:
        raise KeyboardInterrupt  # nothing is there to be kept
    n = len(model._predictors)
    # The first score is that of no trees.
    return max(int(np.argmax(model.validation_score_[: n + 1])), 1) if is_judged else n
