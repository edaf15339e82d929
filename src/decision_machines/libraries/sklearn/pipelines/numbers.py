"""Steps on numbers: scalers, power and quantile transforms, bins, known functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .handlers import Handler, around, refuses_all_but_finite

if TYPE_CHECKING:
    from collections.abc import Callable


class Scaler(Handler):
    """A product and a sum: rounding keeps the order."""


class Rounded(Handler):
    """Powers, logarithms, interpolation: monotone but for the last bit."""

    is_rounded = True


class Power(Rounded):
    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        wrong = super().refuses(step, i, column)
        # Box-Cox takes numbers above 0 alone.
        return wrong | (column <= 0) if step.method == "box-cox" else wrong

    def boundaries(self, step: Any, i: int) -> np.ndarray:
        return np.array([np.nextafter(0.0, -1.0), 0.0])


class Threshold(Handler):
    """Binarizer, which compares in the dtype of its input."""

    def takes_nan(self, step: Any) -> bool:
        return False


class Bins(Handler):
    """KBinsDiscretizer: the number of a bin, or a column for each bin."""

    computes = False

    def sources(self, step: Any, n: int) -> list[int]:
        if step.encode == "ordinal":
            return list(range(n))
        return np.repeat(np.arange(n), step.n_bins_).tolist()

    def boundaries(self, step: Any, i: int) -> np.ndarray:
        if step.encode == "ordinal":
            return np.empty(0)
        edges = np.asarray(step.bin_edges_[i], np.float64)[1:-1]
        # An edge belongs to the bin above it, in float32 as in float64.
        return np.unique(np.concatenate([_below(edges, np.float32), _below(edges, np.float64)]))

    def takes_nan(self, step: Any) -> bool:
        return False


def _below(edges: np.ndarray, dtype: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        cast = edges.astype(dtype)
    return np.asarray(np.nextafter(cast, np.array(-np.inf, cast.dtype)).astype(np.float64))


KNOWN: dict[Callable[..., Any], tuple[float, ...]] = {
    np.log: (0.0,),
    np.log2: (0.0,),
    np.log10: (0.0,),
    np.log1p: (-1.0,),
    np.sqrt: (0.0,),
    np.cbrt: (),
    np.exp: (),
    np.exp2: (),
    np.expm1: (),
    np.tanh: (),
    np.arctan: (),
    np.arcsinh: (),
    np.sinh: (),
    np.abs: (0.0,),
    np.fabs: (0.0,),
    np.square: (0.0,),
    np.negative: (),
    np.positive: (),
    np.sign: (),
    np.floor: (),
    np.ceil: (),
    np.rint: (),
    np.trunc: (),
    np.float64: (),
    np.float32: (),
}
"""Functions that are monotone on both sides of the numbers named."""


class Function(Handler):
    """FunctionTransformer with a function that is known, or declared, to be monotone."""

    is_rounded = True

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        if getattr(step, "validate", False):
            return refuses_all_but_finite(column)
        return np.zeros(len(column), bool)

    def boundaries(self, step: Any, i: int) -> np.ndarray:
        func = getattr(step, "func", None)
        known = KNOWN.get(func, ()) if func is not None else ()
        return around(np.array(known)) if known else np.empty(0)


class Passed(Handler):
    """What passes columns on as they are."""

    computes = False

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        if getattr(step, "validate", False):
            return refuses_all_but_finite(column)
        return np.zeros(len(column), bool)


class Selector(Handler):
    """A feature selector."""

    computes = False

    def sources(self, step: Any, n: int) -> list[int]:
        chosen_by = getattr(step, "estimator_", None)
        if type(step).__name__ == "SelectFromModel" and (
            hasattr(chosen_by, "tree_") or hasattr(chosen_by, "estimators_")
        ):
            from ... import convert

            convert(chosen_by)  # scikit-learn walks its trees unchecked; a file may say anything
        return [int(f) for f in step.get_support(indices=True)]

    def refuses(self, step: Any, i: int, column: np.ndarray) -> np.ndarray:
        """What takes NaN is not checked at all, and takes infinite numbers too."""
        if self.takes_nan(step):
            return np.zeros(len(column), bool)
        return refuses_all_but_finite(column)

    def takes_nan(self, step: Any) -> bool:
        return takes_nan_by_tag(step)


def takes_nan_by_tag(step: Any) -> bool:
    """Whether a scikit-learn estimator says that it takes NaN."""
    if hasattr(step, "__sklearn_tags__"):
        return bool(step.__sklearn_tags__().input_tags.allow_nan)
    return bool(step._get_tags()["allow_nan"])


HANDLERS: dict[str, Handler] = {
    "StandardScaler": Scaler(),
    "MinMaxScaler": Scaler(),
    "MaxAbsScaler": Scaler(),
    "RobustScaler": Scaler(),
    "QuantileTransformer": Rounded(),
    "PowerTransformer": Power(),
    "Binarizer": Threshold(),
    "KBinsDiscretizer": Bins(),
    "SelectorMixin": Selector(),
}
