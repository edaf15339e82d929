"""Rows of a regression as training sees them: checked, scaled, and what is missing settled.

Every feature and every target is brought to mean 0 and deviation 1; the machine that comes out
reads and answers in the user's own units.

A dense test that meets a NaN can only give its missing answer, so rows with holes would all end in
one leaf. Features with a NaN among the training rows are therefore read as 0 there, by the
machine's own columns. A linear leaf answers its constant for a row with a NaN among its terms;
features that are missing often are not terms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..hold_out import first_share
from ..rows import Rows, read_rows, read_validation
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
class ScaledRows:
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

    def join(self, other: ScaledRows) -> ScaledRows:
        parts = ("Z", "U", "is_whole", "y", "weight")
        return ScaledRows(*(np.concatenate([getattr(self, p), getattr(other, p)]) for p in parts))


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

    def rows(self, given: Rows) -> ScaledRows:
        """Rows in training's units."""
        X, y, weight = given.X, given.y, given.w
        Z = self.features(np.where(np.isnan(X) & self.nan_as_zero, 0.0, X))
        terms = self.features(X)[:, self.is_term]
        is_nan = np.isnan(terms)
        U = np.concatenate([np.where(is_nan, 0.0, terms), np.ones((len(X), 1))], axis=1)
        scale = np.where(self.spread > 0, self.spread, np.inf)
        mean = weight.mean() if len(weight) else 1.0
        return ScaledRows(
            Z, U, ~is_nan.any(1), (y - self.centre) / scale, weight / (mean if mean > 0 else 1.0)
        )


def number_rows(X: Any, y: Any, weight: Any) -> Rows:
    """Rows with targets; those of weight 0 left out, the largest weight 1."""
    return _at_most_1(read_rows(X, y, weight, None, doing=DOING).weighted(DOING))


def number_validation(given: Any, like: Rows) -> Rows:
    """The same of rows to choose by."""
    return _at_most_1(read_validation(given, None, like, doing=DOING).weighted(DOING))


def number_hold_out(given: Rows, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on and a fifth to choose by; few rows serve as both."""
    if len(given) < LEAST_TO_HOLD_OUT:
        return given, given
    is_held = first_share(len(given), HELD_OUT, seed)
    return given.take(~is_held), given.take(is_held)


def _at_most_1(rows: Rows) -> Rows:
    return replace(rows, w=rows.w / rows.w.max())
