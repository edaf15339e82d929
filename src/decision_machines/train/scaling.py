"""Features brought to one scale for training, and tests brought back to the features as they are.

Training sees x̃ = (x - centre) / spread. A test w · x̃ > t is the test (w / spread) · x > t + w ·
(centre / spread) of the raw features, so that the machine needs no scaler beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

LEAST_SPREAD = 1e-10
"""Of a feature, relative to its size: what varies less is noise of its own rounding."""


@dataclass(frozen=True)
class Scaling:
    """Centre and spread of each feature, and which features vary at all."""

    centre: Float[np.ndarray, "n"]
    spread: Float[np.ndarray, "n"]
    varies: Bool[np.ndarray, "n"]

    @classmethod
    def of(cls, X: Float[np.ndarray, "m n"], least_of_indicators: float = 0.0) -> Scaling:
        """Mean and standard deviation of what is there; NaN is left out.

        An indicator, a feature of 0 and 1, has a spread of `least_of_indicators` at least: divided
        by its own deviation a rare one would be the largest of all features in the few rows that
        have it, and could tell each of them from the rest.

        Values are divided by the largest first: the squares of 1e200 and of 1e-200 are not numbers.
        """
        is_there = ~np.isnan(X)
        count = np.maximum(is_there.sum(0), 1)
        known = np.where(is_there, X, 0.0)
        largest = np.abs(known).max(0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        shrunk = known / unit
        mean = shrunk.sum(0) / count
        deviation = np.sqrt((np.where(is_there, shrunk - mean, 0.0) ** 2).sum(0) / count)
        with np.errstate(over="ignore", divide="ignore"):
            is_usable = np.isfinite(1.0 / (deviation * unit)) & (deviation * unit > 0)
        varies = (deviation > LEAST_SPREAD) & is_usable
        spread = np.where(varies, deviation * unit, 1.0)
        if least_of_indicators > 0:
            is_indicator = ((known == 0) | (known == 1)).all(0)
            spread = np.where(is_indicator, np.maximum(spread, least_of_indicators), spread)
        return cls(mean * unit, spread, varies)

    def __call__(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m v"]:
        """The features that vary, scaled."""
        varies = self.varies
        found: np.ndarray = (X[:, varies] - self.centre[varies]) / self.spread[varies]
        return found

    def raw_tests(
        self, W: Float[np.ndarray, "J v"], t: Float[np.ndarray, "J"]
    ) -> tuple[Float[np.ndarray, "J n"], Float[np.ndarray, "J"]]:
        """The same tests for features as they are, in two arrays."""
        S = np.zeros((len(W), len(self.centre)))
        S[:, self.varies] = W / self.spread[self.varies]
        return S, t + W @ (self.centre[self.varies] / self.spread[self.varies])
