"""Encoders of categories: OrdinalEncoder, OneHotEncoder, TargetEncoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .handlers import Handler, around

if TYPE_CHECKING:
    from collections.abc import Iterable


class Encoder(Handler):
    """Every category that was seen has a code of its own; all others have one, or are refused."""

    computes = False

    def labels(self, step: Any, i: int) -> Iterable[Any] | None:
        categories = np.asarray(step.categories_[i])
        return None if categories.dtype.kind in "biuf" else categories.tolist()

    def boundaries(self, step: Any, i: int) -> np.ndarray:
        categories = np.asarray(step.categories_[i])
        if categories.dtype.kind not in "biuf":
            return np.empty(0)
        known = categories[categories == categories].astype(np.float64)
        return np.concatenate([around(known, np.float32), around(known)])

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        categories = np.asarray(step.categories_[i])
        if column.dtype.kind in "biuf" and categories.dtype.kind in "biuf":
            wrong = refused = np.isinf(column.astype(np.float64))
            unknown = ~np.isin(column, categories)
            if np.any(categories != categories):
                unknown &= column == column
        else:
            known, has_nan = _known(categories)
            values = column.tolist()
            unknown = np.array([not _is_known(v, known, has_nan) for v in values], bool)
            refused = np.array([isinstance(v, float) and np.isinf(v) for v in values], bool)
        wrong = unknown & (step.handle_unknown == "error")
        return np.asarray(wrong | refused)

    def benign(self, step: Any, i: int) -> Any:
        return np.asarray(step.categories_[i]).tolist()[0]


def _known(categories: np.ndarray) -> tuple[set[Any], bool]:
    values = categories.tolist()
    return {v for v in values if v is None or v == v}, any(v is not None and v != v for v in values)


def _is_known(value: Any, known: set[Any], has_nan: bool) -> bool:
    if value is None or value == value:
        return value in known
    return has_nan


class OneHot(Encoder):
    def sources(self, step: Any, n: int) -> list[int]:
        widths = getattr(step, "_n_features_outs", None)
        if widths is None:
            widths = step._compute_n_features_outs()
        return np.repeat(np.arange(n), widths).tolist()


class Target(Encoder):
    def sources(self, step: Any, n: int) -> list[int]:
        return np.repeat(np.arange(n), len(step.encodings_) // n).tolist()

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        if column.dtype.kind in "biuf":
            return np.isinf(column.astype(np.float64))
        return np.zeros(len(column), bool)


HANDLERS: dict[str, Handler] = {
    "OrdinalEncoder": Encoder(),
    "OneHotEncoder": OneHot(),
    "TargetEncoder": Target(),
}
