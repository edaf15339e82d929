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
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


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
    experts
        (E, n, h), (E, h), (E, h, k), (E, k): weights and biases of both layers.
    dense
        The same of the network for rows of which the expert is not certain, E = 1; or None.
    """

    tests: Float[np.ndarray, "J n"]
    thresholds: Float[np.ndarray, "J"]
    experts: Arrays
    dense: Arrays | None = None
    certainty: float = 1.0
    is_classes: bool = True

    @functools.cached_property
    def _plan(self) -> Any:
        # The kernel copies what it is given, into its own layout.
        return _native.RoutedPlan(
            target(),
            self.tests,
            self.thresholds,
            self.experts,
            self.dense,
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
        n = self.tests.shape[1]
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
        found = float(depth * n + _size(self.experts))
        if self.dense is None:
            return found
        if x is None:
            raise InputError(
                "counting multiply-adds", "no rows, where some may be deferred", "give rows"
            )
        return found + float(self.route(x)[1].mean()) * _size(self.dense)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_plan"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _size(network: Arrays) -> int:
    """Multiply-adds of one network."""
    first, _, second, _ = network
    return int(first[0].size + second[0].size)
