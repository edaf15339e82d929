"""What a model refuses of the columns that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .handlers import refuses_infinite
from .numbers import takes_nan_by_tag

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = float(np.finfo(np.float32).max)


def door_of(model: Any, is_sparse: bool) -> Callable[[int, np.ndarray], np.ndarray]:
    """A function of a column's number and its values: which of them the model refuses."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    package = type(model).__module__.split(".")[0]
    name = next((c.__name__ for c in type(model).__mro__ if c.__name__ in SKLEARN), "")
    if package in ("xgboost", "ngboost"):
        return lambda _, column: _too_large(column)
    if package != "sklearn" and not name:
        return lambda _, column: np.zeros(len(column), bool)
    if name.startswith("HistGradientBoosting"):
        return lambda _, column: np.zeros(len(column), bool)
    takes_nan = takes_nan_by_tag(model) and not is_sparse

    def refuses(_: int, column: np.ndarray) -> np.ndarray:
        wrong = _too_large(column)
        return wrong if takes_nan or column.dtype.kind != "f" else wrong | np.isnan(column)

    return refuses


SKLEARN = (
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "BaseDecisionTree",
    "BaseForest",
    "BaseGradientBoosting",
    "BaseEnsemble",
    "BaseEstimator",
)


def _too_large(column: np.ndarray) -> np.ndarray:
    """Infinite numbers, and those that are infinite in float32."""
    if column.dtype.kind != "f":
        return np.zeros(len(column), bool)
    with np.errstate(over="ignore"):
        return refuses_infinite(column.astype(np.float32))
