"""Boosted trees by other libraries, stopped early, as machines over float64 columns.

Every function takes rows to learn from, rows to stop by, the goal, a seed, threads and the time
that is left, and gives the library's model; what a library cannot do it says by None.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..rows import Rows
    from .goal import SumGoal

MOST_ROUNDS, PATIENCE = 1000, 50

Booster = Callable[["Rows", "Rows", "SumGoal", int, int, float], Any]


def _late(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() > end


def lightgbm(rows: Rows, stop: Rows, goal: SumGoal, seed: int, threads: int, left: float) -> Any:
    import lightgbm as library

    names = {
        "squared": "regression",
        "absolute": "regression_l1",
        "logistic": "binary",
        "softmax": "multiclass",
    }
    options: dict[str, Any] = {"objective": names.get(goal.kind, goal.kind)}
    if goal.kind in ("huber", "quantile"):
        options["alpha"] = goal.parameter
    if goal.kind == "tweedie":
        options["tweedie_variance_power"] = goal.parameter
    make = library.LGBMClassifier if goal.is_classes else library.LGBMRegressor
    late = _late(left)

    def in_time(env: Any) -> None:
        if late():
            raise library.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    model = make(
        n_estimators=MOST_ROUNDS,
        learning_rate=0.06,
        num_leaves=31,
        min_child_samples=max(1, min(20, len(rows) // 40)),
        colsample_bytree=0.8,
        subsample=0.8,
        subsample_freq=1,
        n_jobs=threads,
        random_state=seed,
        verbose=-1,
        **options,
    )
    return model.fit(
        rows.X,
        rows.y,
        sample_weight=rows.w,
        eval_set=[(stop.X, stop.y)],
        eval_sample_weight=[stop.w],
        callbacks=[library.early_stopping(PATIENCE, verbose=False), in_time],
    )


def xgboost(rows: Rows, stop: Rows, goal: SumGoal, seed: int, threads: int, left: float) -> Any:
    import xgboost as library

    names = {
        "squared": "reg:squarederror",
        "absolute": "reg:absoluteerror",
        "huber": "reg:pseudohubererror",
        "quantile": "reg:quantileerror",
        "poisson": "count:poisson",
        "gamma": "reg:gamma",
        "tweedie": "reg:tweedie",
        "logistic": "binary:logistic",
        "softmax": "multi:softprob",
    }
    options: dict[str, Any] = {"objective": names[goal.kind]}
    if goal.kind == "quantile":
        options["quantile_alpha"] = goal.parameter
    if goal.kind == "huber":
        options["huber_slope"] = goal.parameter
    if goal.kind == "tweedie":
        options["tweedie_variance_power"] = goal.parameter
    late = _late(left)

    class InTime(library.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            return late()

    make = library.XGBClassifier if goal.is_classes else library.XGBRegressor
    model = make(
        n_estimators=MOST_ROUNDS,
        learning_rate=0.06,
        max_depth=6,
        subsample=0.8,
        colsample_bytree=0.8,
        min_child_weight=2,
        tree_method="hist",
        early_stopping_rounds=PATIENCE,
        callbacks=[InTime()],
        n_jobs=threads,
        random_state=seed,
        **options,
    )
    return model.fit(
        rows.X,
        rows.y,
        sample_weight=rows.w,
        eval_set=[(stop.X, stop.y)],
        sample_weight_eval_set=[stop.w],
        verbose=False,
    )


def catboost(rows: Rows, stop: Rows, goal: SumGoal, seed: int, threads: int, left: float) -> Any:
    import catboost as library

    number = goal.parameter
    names = {
        "squared": "RMSE",
        "absolute": "MAE",
        "huber": f"Huber:delta={number}",
        "quantile": f"Quantile:alpha={number}",
        "poisson": "Poisson",
        "tweedie": f"Tweedie:variance_power={number}",
        "logistic": "Logloss",
        "softmax": "MultiClass",
    }
    if goal.kind not in names:
        return None
    late = _late(left)

    class InTime:
        def after_iteration(self, info: Any) -> bool:
            return not late()

    make = library.CatBoostClassifier if goal.is_classes else library.CatBoostRegressor
    model = make(
        iterations=MOST_ROUNDS,
        loss_function=names[goal.kind],
        depth=6,
        random_seed=seed,
        thread_count=threads,
        verbose=False,
        allow_writing_files=False,
    )
    pool = library.Pool(rows.X, rows.y, weight=rows.w)
    held = library.Pool(stop.X, stop.y, weight=stop.w)
    return model.fit(pool, eval_set=held, early_stopping_rounds=PATIENCE, callbacks=[InTime()])


def histograms(rows: Rows, stop: Rows, goal: SumGoal, seed: int, threads: int, left: float) -> Any:
    """scikit-learn's, which is always there; it does not look at the time."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    names = {
        "squared": "squared_error",
        "absolute": "absolute_error",
        "quantile": "quantile",
        "poisson": "poisson",
        "gamma": "gamma",
        "logistic": "log_loss",
        "softmax": "log_loss",
    }
    if goal.kind not in names:
        return None
    options: dict[str, Any] = {"loss": names[goal.kind]}
    if goal.kind == "quantile":
        options["quantile"] = goal.parameter
    make = HistGradientBoostingClassifier if goal.is_classes else HistGradientBoostingRegressor
    model = make(
        max_iter=400,
        learning_rate=0.08,
        min_samples_leaf=max(1, min(20, len(rows) // 40)),
        early_stopping=True,
        n_iter_no_change=30,
        random_state=seed,
        **options,
    )
    held = {"X_val": stop.X, "y_val": stop.y, "sample_weight_val": stop.w}
    return model.fit(rows.X, rows.y, sample_weight=rows.w, **held)


BOOSTERS: dict[str, tuple[str, Booster]] = {
    "LightGBM": ("lightgbm", lightgbm),
    "CatBoost": ("catboost", catboost),
    "XGBoost": ("xgboost", xgboost),
    "scikit-learn histograms": ("sklearn", histograms),
}
"""Name → the package it needs, and what trains it."""


def boosted_by(
    name: str, rows: Rows, stop: Rows, goal: SumGoal, seed: int, threads: int, left: float
) -> Any:
    """The machine of a library's boosted trees; None where the library cannot train for this."""
    from ...libraries import convert
    from ...machine import single
    from ..rows import Rows

    y = rows.y if goal.is_classes else rows.y.reshape(len(rows), -1)[:, 0]
    held = stop.y if goal.is_classes else stop.y.reshape(len(stop), -1)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weight = rows.w / rows.w.mean()
        model = BOOSTERS[name][1](
            Rows(rows.X, np.ascontiguousarray(y), weight),
            Rows(stop.X, np.ascontiguousarray(held), stop.w / stop.w.mean()),
            goal,
            seed,
            threads,
            left,
        )
        return None if model is None else goal.alike(single(convert(model), "reading a member"))
