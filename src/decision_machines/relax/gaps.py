"""Where a soft threshold stands: between the values on its two sides.

A test z ≤ t answers alike wherever t stands between the largest value that goes left and the
smallest that goes right. A library puts t anywhere in that gap, often at its very end (LightGBM
separates 0 from the rest at 1e-35, XGBoost puts t just below the upper value). There a soft gate is
one half at any temperature that people use. So soft thresholds stand in the middle of their gaps.

With rows of data the gap lies between neighbouring values of the column. Without rows, it lies
between neighbouring numbers that the column can hold. More is known in two cases: a category's
column holds 0 and 1; and in a test at 0, what is nearer to 0 than float32 can tell at the scale of
the column's other thresholds counts as 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..machine import Rule
from ..machine.columns import ZERO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float, Int

    from ..machine import DecisionMachine

ZERO_TEST = 2 * ZERO
"""Thresholds up to here, LightGBM's ±1e-35 among them, tell 0 from one side of it."""
RESOLUTION = float(np.finfo(np.float32).eps)
"""What is nearer to 0 than this, times the column's smallest other threshold, counts as 0."""
BLOCK = 1 << 24
"""Products S z of an oblique machine that are held at a time."""


@dataclass(frozen=True)
class Gaps:
    """The values next to every threshold: `low` goes left, `high` goes right.

    Examples
    --------
    >>> import decision_machines as dm
    >>> machine = dm.figure_one()
    >>> rows = np.array([[0.0, 1, 2, 4], [2, 5, 4, 6]])
    >>> gaps = Gaps.of(machine, rows)
    >>> machine.selection.tolist(), machine.t.tolist()
    ([0, 1, 2, 1, 3], [1.0, 4.0, 3.0, 2.0, 5.0])
    >>> (gaps.low / 2 + gaps.high / 2).tolist()
    [1.0, 3.0, 3.0, 3.0, 5.0]
    """

    t: Float[np.ndarray, "J"]
    """The machine's own thresholds."""
    low: Float[np.ndarray, "J"]
    high: Float[np.ndarray, "J"]

    @classmethod
    def of(cls, machine: DecisionMachine, data: Any = None) -> Gaps:
        """Gaps of every test, by rows of data or by what the columns can hold."""
        t = np.array(machine.t, np.float64)
        low, high = _representable(machine)
        if data is not None:
            for tests, values in _values(machine, _columns(machine, data)):
                tests = tests[np.isfinite(t[tests])]  # the others ask what is missing
                if len(values):
                    low[tests], high[tests] = _neighbours(values, t[tests])
        return cls(t, low, high)

    def thresholds(self, dtype: torch.dtype) -> Thresholds:
        """Where the tests stand in modules of this dtype."""
        t, low, high = (torch.from_numpy(part) for part in (self.t, self.low, self.high))
        hard, low = _rounded_down(t, dtype), _rounded_down(low, dtype)
        high = -_rounded_down(-high, dtype)
        middle = (low.double() / 2 + high.double() / 2).to(dtype)
        is_between = (low < middle) & (middle < high) & t.isfinite()
        # Neighbouring numbers have no middle of their dtype: t is the lower, nudge the rest.
        width = torch.where(high.isinf(), _spacing(low), high.double() - low.double())
        nudge = torch.where(is_between | ~low.isfinite(), 0.0, width / 2).to(dtype)
        return Thresholds(hard, torch.where(is_between, middle, low), nudge)


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a module at its start."""

    hard: Float[torch.Tensor, "J"]
    """The machine's t, rounded down: z ≤ t stays true of the same numbers z of that dtype."""
    soft: Float[torch.Tensor, "J"]
    """The middle of the gap, or the lower number of two neighbouring ones."""
    nudge: Float[torch.Tensor, "J"]
    """From `soft` to the middle where no number of the dtype is there; else 0."""


def _representable(machine: DecisionMachine) -> tuple[np.ndarray, np.ndarray]:
    """The numbers next to each threshold that its column can hold."""
    own = machine.t.astype(machine.columns.dtype)
    low = np.array(own, np.float64)
    high = np.nextafter(own, own.dtype.type(np.inf)).astype(np.float64)
    if machine.is_oblique or not len(own):
        return low, high
    is_member = (machine.columns.rule[machine.selection] == Rule.MEMBER) & (low >= 0) & (low < 1)
    size = np.abs(low)
    counts = np.where((size > ZERO_TEST) & np.isfinite(size), size, np.inf)
    scale = np.full(len(machine.columns), np.inf)
    np.minimum.at(scale, machine.selection, counts)
    near = RESOLUTION * np.where(np.isfinite(scale), scale, 1.0)[machine.selection]
    is_zero_test = (size <= ZERO_TEST) & ~is_member
    goes_left = low >= 0  # where 0 itself goes
    high = np.where(is_zero_test, np.where(goes_left, near, 0.0), high)
    low = np.where(is_zero_test, np.where(goes_left, 0.0, -near), low)
    return np.where(is_member, 0.0, low), np.where(is_member, 1.0, high)


def _columns(machine: DecisionMachine, data: Any) -> Float[np.ndarray, "m n"]:
    if isinstance(data, torch.Tensor):
        data = data.detach().cpu().numpy()
    return np.asarray(machine.columns.read(machine.features(data)), np.float64)


def _values(
    machine: DecisionMachine, z: Float[np.ndarray, "m n"]
) -> Iterator[tuple[Int[np.ndarray, "j"], Float[np.ndarray, "v"]]]:
    """Tests that read the same, and the distinct finite values that they read, ascending."""
    if machine.is_oblique:
        step = max(1, BLOCK // max(len(z), 1))
        for first in range(0, machine.n_tests, step):
            block = np.arange(first, min(first + step, machine.n_tests))
            with np.errstate(invalid="ignore", over="ignore"):
                products = np.asarray(z @ machine.S[block].toarray().astype(np.float64).T)
            for j, values in zip(block, products.T, strict=True):
                yield np.array([j]), np.unique(values[np.isfinite(values)])
        return
    for column in np.unique(machine.selection):
        values = z[:, column]
        yield np.flatnonzero(machine.selection == column), np.unique(values[np.isfinite(values)])


def _neighbours(
    values: Float[np.ndarray, "v"], t: Float[np.ndarray, "j"]
) -> tuple[np.ndarray, np.ndarray]:
    """The values next to each t; where there is none on a side, one as far away as they stand."""
    at = np.searchsorted(values, t, side="right")
    low = values[np.maximum(at - 1, 0)]
    high = values[np.minimum(at, len(values) - 1)]
    step = np.diff(values).min() if len(values) > 1 else max(abs(float(values[0])), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        low = np.where(at > 0, low, high - np.maximum(step, 2 * (high - t)))
        high = np.where(at < len(values), high, low + np.maximum(step, 2 * (t - low)))
    # A step may be lost in the rounding of large values: t lies between all the same.
    return np.minimum(low, t), np.maximum(high, np.nextafter(t, np.inf))


def _rounded_down(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    found = t.to(dtype)
    down = torch.nextafter(found, torch.full_like(found, -torch.inf))
    return torch.where(found.double() > t, down, found)


def _spacing(low: torch.Tensor) -> torch.Tensor:
    """From each number down to the one below it, for the largest, which have none above."""
    down = torch.nextafter(low, torch.full_like(low, -torch.inf))
    return low.double() - down.double()
