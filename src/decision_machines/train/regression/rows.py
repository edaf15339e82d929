"""Rows of a regression as training sees them: checked, scaled, and what is missing settled.

Every feature and every target is brought to mean 0 and deviation 1; the machine that comes out
reads and answers in the user's own units.

A dense test that meets a NaN can only give its missing answer, so rows with holes would all end in
one leaf. Features with a NaN among the training rows are therefore read as 0 there, by the
machine's own columns. A linear leaf answers its constant for a row with a NaN among its terms;
features that are missing often are no terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ..given import checked_weights, refuse_infinities
from ..scaling import Scaling

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

DOING = "training a regression tree"
HELD_OUT = 0.2
"""Share of the rows that is held out to choose by, where no validation rows are given."""
LEAST_TO_HOLD_OUT = 20
MOST_WITHOUT_TERMS = 0.05
"""Share of the rows that may fall back to a leaf's constant, for the sake of a feature as term."""


@dataclass(frozen=True)
class Rows:
    """Scaled rows."""

    Z: Float[np.ndarray, "m v"]
    """What tests weigh; NaN is missing."""
    U: Float[np.ndarray, "m p"]
    """What leaves weigh, and 1 in the last column; 0 where missing."""
    is_whole: Bool[np.ndarray, "m"]
    """Whether no term is missing: else a leaf answers its constant."""
    y: Float[np.ndarray, "m q"]
    weight: Float[np.ndarray, "m"]
    """1 on average."""

    def __len__(self) -> int:
        return len(self.Z)

    def loss(self, answer: Float[np.ndarray, "m q"]) -> float:
        """Mean squared error, in units of the targets' variance."""
        error = ((answer - self.y) ** 2).sum(1)
        return float((error * self.weight).sum() / self.weight.sum() / self.y.shape[1])

    def join(self, other: Rows) -> Rows:
        parts = ("Z", "U", "is_whole", "y", "weight")
        return Rows(*(np.concatenate([getattr(self, p), getattr(other, p)]) for p in parts))


@dataclass(frozen=True)
class Units:
    """The way from the user's units to training's, and what the machine needs for the way back."""

    features: Scaling
    nan_as_zero: Bool[np.ndarray, "n"]
    is_term: Bool[np.ndarray, "v"]
    """Which of the features that vary are terms of the leaves."""
    centre: Float[np.ndarray, "q"]
    spread: Float[np.ndarray, "q"]

    @classmethod
    def of(cls, X: Float[np.ndarray, "m n"], y: Float[np.ndarray, "m q"], *, linear: bool) -> Units:
        is_nan = np.isnan(X)
        nan_as_zero = is_nan.any(0)
        features = Scaling.of(np.where(is_nan, 0.0, X))
        targets = Scaling.of(y)
        is_term = np.zeros(len(features.varies), bool)
        if linear:
            lost = np.zeros(len(X), bool)
            for feature in np.argsort(is_nan.sum(0), kind="stable"):
                with_it = lost | is_nan[:, feature]
                if with_it.mean() > MOST_WITHOUT_TERMS:
                    break
                lost, is_term[feature] = with_it, True
        return cls(
            features,
            nan_as_zero,
            is_term[features.varies],
            targets.centre,
            np.where(targets.varies, targets.spread, 0.0),
        )

    def rows(
        self, X: Float[np.ndarray, "m n"], y: Float[np.ndarray, "m q"], weight: np.ndarray
    ) -> Rows:
        Z = self.features(np.where(np.isnan(X) & self.nan_as_zero, 0.0, X))
        terms = self.features(X)[:, self.is_term]
        is_nan = np.isnan(terms)
        U = np.concatenate([np.where(is_nan, 0.0, terms), np.ones((len(X), 1))], axis=1)
        scale = np.where(self.spread > 0, self.spread, np.inf)
        mean = weight.mean() if len(weight) else 1.0
        return Rows(
            Z, U, ~is_nan.any(1), (y - self.centre) / scale, weight / (mean if mean > 0 else 1.0)
        )


Given = tuple[np.ndarray, np.ndarray, np.ndarray]
"""X float64 (m, n), y float64 (m, q), weights; rows of weight 0 left out."""


def checked(X: Any, y: Any, weight: Any, name: str = "X") -> Given:
    """Rows as float64, or an error that says what is wrong with them."""
    X, y = _numbers(X, name), _numbers(y, "y")
    y = y[:, None] if y.ndim == 1 else y
    if X.ndim != 2 or y.ndim != 2 or len(X) != len(y) or not len(X):
        raise InputError(
            DOING,
            f"{name} of shape {X.shape} with y of shape {y.shape}",
            "give X the shape (rows, features) and y a number, or several, for each row",
        )
    if not X.shape[1] or not y.shape[1]:
        raise InputError(
            DOING,
            f"{name} has {X.shape[1]} features and y {y.shape[1]} targets",
            "give at least one of each",
        )
    refuse_infinities(X, name, DOING)
    if not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0][0])
        raise InputError(
            DOING, f"y of row {row} is {y[row].tolist()}", "leave out rows without a finite target"
        )
    weight = None if weight is None else _numbers(weight, "sample_weight")
    weight = checked_weights(weight, len(X), DOING)
    is_there = weight > 0
    if not is_there.any():
        raise InputError(DOING, f"all {len(X)} rows have weight 0", "give some row a weight")
    return X[is_there], y[is_there], weight[is_there] / weight.max()


def _numbers(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            DOING, f"{name} of type {type(values).__name__} is no array of numbers", "pass numbers"
        ) from None


def hold_out(given: Given, seed: int) -> tuple[Given, Given]:
    """Rows to train on and rows to choose by; few rows serve as both."""
    n_rows = len(given[0])
    if n_rows < LEAST_TO_HOLD_OUT:
        return given, given
    order = np.random.default_rng(seed).permutation(n_rows)
    cut = round(HELD_OUT * n_rows)
    held, kept = np.sort(order[:cut]), np.sort(order[cut:])
    return (
        (given[0][kept], given[1][kept], given[2][kept]),
        (given[0][held], given[1][held], given[2][held]),
    )
