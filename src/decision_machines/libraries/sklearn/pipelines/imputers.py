"""SimpleImputer and MissingIndicator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .handlers import Handler, around

if TYPE_CHECKING:
    from collections.abc import Iterable


def _marks_nan(step: Any) -> bool:
    mark = step.missing_values
    return mark is not None and (type(mark).__name__ == "NAType" or mark != mark)


class Marked(Handler):
    """Steps that know a value that means missing: NaN, a number or a label."""

    computes = False

    def takes_nan(self, step: Any) -> bool:
        return _marks_nan(step)

    def boundaries(self, step: Any, i: int) -> np.ndarray:
        mark = step.missing_values
        if _marks_nan(step) or isinstance(mark, (str, type(None))):
            return np.empty(0)
        return np.concatenate([around(np.array([mark], dtype)) for dtype in ("f4", "f8")])

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        if column.dtype == object and not _marks_nan(step):
            return np.array([isinstance(v, float) and v != v for v in column.tolist()], bool)
        return super().refuses(step, i, column)


class Imputer(Marked):
    """What takes the place of a missing value is of the dtype of the input."""

    computes = True

    def benign(self, step: Any, i: int) -> Any:
        statistic = step.statistics_[i]
        return 1.0 if _is_nan(statistic) else statistic

    def sources(self, step: Any, n: int) -> list[int]:
        found = list(range(n))
        if not getattr(step, "keep_empty_features", False):
            found = [i for i in found if not _is_nan(step.statistics_[i])]
        if step.indicator_ is not None:
            found += np.asarray(step.indicator_.features_).tolist()
        return found

    def labels(self, step: Any, i: int) -> Iterable[Any] | None:
        statistic = step.statistics_[i]
        mark = step.missing_values
        if not isinstance(statistic, str):
            return None
        return [statistic, *([mark] if isinstance(mark, str) else [])]


class Indicator(Marked):
    def sources(self, step: Any, n: int) -> list[int]:
        return [int(f) for f in step.features_]

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        """What is missing is refused, too, where nothing was when it was fitted."""
        refused = super().refuses(step, i, column)
        if step.features == "missing-only" and step.error_on_new and i not in step.features_:
            refused = refused | _is_marked(step, column)
        return refused


def _is_marked(step: Any, column: np.ndarray) -> np.ndarray:
    """Which entries mean missing to the step."""
    if _marks_nan(step):
        return np.array([_is_nan(v) and v is not None for v in column.tolist()], bool)
    return np.array([v == step.missing_values for v in column.tolist()], bool)


def _is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and value != value)


HANDLERS: dict[str, Handler] = {"SimpleImputer": Imputer(), "MissingIndicator": Indicator()}
