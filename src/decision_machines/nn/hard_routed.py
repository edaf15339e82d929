"""`HardRouted`: a routed layer for inference, one path for each row."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import _native
from ..errors import InputError
from ..run.engines.processor import target

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

DOING = "running a hardened routed layer"


@dataclass(frozen=True, eq=False)
class HardRouted:
    """What `RoutedFeedForward.harden` gives: arrays, and a kernel that runs one path for each row.

    Called with (m, n) rows, a float32 array or a tensor, it gives (m, k) answers of the same kind.
    One thread; equal to the layer within float32's rounding of sums of n products, except rows
    that a test puts within that of its threshold, or an expert of its certainty.

    Attributes
    ----------
    tests (J, n), thresholds (J,)
        Of the tree, in level order: right where tests · x > thresholds.
    first (E, n, h), first_bias (E, h), second (E, h, k), second_bias (E, k)
        The experts.
    dense_first (1, n, H), …
        The network for rows of which the expert is not certain, or None.
    """

    tests: Float[np.ndarray, "J n"]
    thresholds: Float[np.ndarray, "J"]
    first: Float[np.ndarray, "E n h"]
    first_bias: Float[np.ndarray, "E h"]
    second: Float[np.ndarray, "E h k"]
    second_bias: Float[np.ndarray, "E k"]
    dense_first: Float[np.ndarray, "1 n H"] | None = None
    dense_first_bias: Float[np.ndarray, "1 H"] | None = None
    dense_second: Float[np.ndarray, "1 H k"] | None = None
    dense_second_bias: Float[np.ndarray, "1 k"] | None = None
    certainty: float = 1.0
    is_classes: bool = True

    @functools.cached_property
    def _plan(self) -> Any:
        # The kernel copies what it is given, into its own layout.
        dense = (
            self.dense_first,
            self.dense_first_bias,
            self.dense_second,
            self.dense_second_bias,
        )
        return _native.RoutedPlan(
            target(),
            self.tests,
            self.thresholds,
            (self.first, self.first_bias, self.second, self.second_bias),
            None if self.dense_first is None else dense,
            float(self.certainty),
            self.is_classes,
        )

    def __call__(self, x: Any) -> Any:
        """(m, k) log-probabilities of classes, or values."""
        if isinstance(x, torch.Tensor):
            return torch.from_numpy(self._run(x.detach().numpy()))
        return self._run(x)

    def _run(self, x: Any) -> Float[np.ndarray, "m k"]:
        try:
            found: np.ndarray = self._plan.run(x)
        except (TypeError, ValueError):
            found = self._plan.run(self._rows(x))
        return found

    def _rows(self, x: Any) -> Float[np.ndarray, "m n"]:
        """Rows in the kernel's dtype and order; no more is asked of what is so already."""
        rows = np.ascontiguousarray(x, np.float32)
        n = self.first.shape[1]
        if rows.ndim != 2 or rows.shape[1] != n:
            raise InputError(
                DOING, f"rows of shape {rows.shape}", f"give an array of shape (m, {n})"
            )
        return rows

    def route(self, x: Any) -> tuple[Int[np.ndarray, "m"], Bool[np.ndarray, "m"]]:
        """The expert of each row, and whether its answer was deferred."""
        expert, is_deferred = self._plan.route(self._rows(x))
        return expert, is_deferred.astype(bool)

    def multiply_adds(self, x: Any = None) -> float:
        """How many multiply-adds a row takes, on average over rows x where some are deferred."""
        J, n = self.tests.shape
        depth = (J + 1).bit_length() - 1
        h, k = self.second.shape[1:]
        found = float(depth * n + n * h + h * k)
        if self.dense_first is None:
            return found
        if x is None:
            raise InputError(
                "counting multiply-adds", "no rows, where some may be deferred", "give rows"
            )
        H = self.dense_first.shape[2]
        return found + float(self.route(x)[1].mean()) * (n * H + H * k)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_plan"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
