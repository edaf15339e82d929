"""How soft each test of a trained machine may start: thresholds within a gap, and widths measured.

A library puts a threshold anywhere between two values of its training data, often right at one of
them (LightGBM at 1e-35, XGBoost at the upper value): a soft gate there would answer one half for
rows that the tree sends one way. So every threshold is first moved to the middle of its gap, which
changes no answer on the rows measured. Then the test's width w is a quantile of |S z - t| over the
rows that reach it, and its slope 4 / w: few rows stand where the gate is unsure. Where more rows
than that stand at the values next to the gap (flags, counts, categories), w is half the gap and the
slope 9.3 / w, so that even those get a gate of .9999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...machine import Rule
from ...machine.coded import coded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxtyping import Float, Int

    from ...machine import DecisionMachine

ROWS = 50_000
"""Rows measured at most; the gaps of more are no wider."""
VALUES = 4096
"""Values of a test whose quantile is taken at most."""
SMOOTH, LUMPY = 4.0, 9.3
"""Slope times width: a gate of .982 at one width, or of .9999 at half the gap."""
STEEPEST = 1e290


@dataclass(frozen=True)
class Widths:
    """What was measured of each test."""

    t: Float[np.ndarray, "J"]
    """Thresholds in the middle of their gaps."""
    half_gap: Float[np.ndarray, "J"]
    """From t to the nearest value on either side."""
    quantiles: dict[float, Float[np.ndarray, "J"]]
    """α → the α-quantile of |S z - t| over the rows that reach the test."""

    def width(self, alpha: float) -> Float[np.ndarray, "J"]:
        """The unit of each test's threshold."""
        found: np.ndarray = np.maximum(self.quantiles[alpha], self.half_gap)
        return found

    def slope(self, alpha: float) -> Float[np.ndarray, "J"]:
        """How steep each test starts."""
        is_lumpy = self.quantiles[alpha] <= self.half_gap * (1 + 1e-9)
        with np.errstate(over="ignore"):
            slope = np.where(is_lumpy, LUMPY, SMOOTH) / self.width(alpha)
        found: np.ndarray = np.clip(slope, 1 / STEEPEST, STEEPEST)
        return found


def measure(
    machine: DecisionMachine,
    x: Float[np.ndarray, "m n_features"],
    alphas: Sequence[float],
    *,
    seed: int = 0,
    n_threads: int | None = None,
) -> Widths:
    """Gaps and widths of every test of the machine on rows x (`machine.features(X)`).

    Examples
    --------
    >>> import decision_machines as dm
    >>> x = np.array([[0.0, 0, 0, 0], [1, 4, 2, 2], [3, 4, 2, 3]])
    >>> found = measure(dm.figure_one(), x, [0.1])
    >>> len(found.t), bool(np.all(found.width(0.1) > 0))
    (5, True)
    """
    if len(x) > ROWS:
        x = x[np.sort(np.random.default_rng(seed).choice(len(x), ROWS, replace=False))]
    columns = machine.columns
    z = np.asarray(columns.read(x), np.float64)
    t = np.array(machine.t, np.float64)
    half = np.ones(len(t))
    quantiles = {alpha: np.ones(len(t)) for alpha in alphas}
    whole: dict[int, np.ndarray] = {}
    is_member = columns.rule == Rule.MEMBER
    for j, rows in _reaching(machine, x, n_threads):
        if not np.isfinite(t[j]):
            continue
        here, key = _values(machine, z, j, rows)
        low, high = _neighbours(here, t[j])
        if np.isnan(low) or np.isnan(high):
            # No row on one side: the gap in the whole column, where one is.
            if key not in whole:
                whole[key] = _values(machine, z, j, None)[0]
            low, high = _neighbours(whole[key], t[j])
        if key >= 0 and is_member[key]:
            low, high = 0.0, 1.0
        t[j], half[j] = _middle(low, high, t[j], whole.get(key, here))
        if len(here) > VALUES:
            here = here[:: -(-len(here) // VALUES)]
        distance = np.sort(np.abs(here - t[j]))
        for alpha, found in quantiles.items():
            found[j] = distance[int(alpha * (len(distance) - 1))] if len(distance) else half[j]
    most = np.finfo(np.float64).max
    return Widths(
        t,
        np.clip(half, 1 / STEEPEST, STEEPEST),
        {alpha: np.nan_to_num(found, posinf=most) for alpha, found in quantiles.items()},
    )


def _reaching(
    machine: DecisionMachine, x: np.ndarray, n_threads: int | None
) -> Iterator[tuple[int, Int[np.ndarray, "r"]]]:
    """Each test and the rows that reach it: leaves below a test follow one another."""
    exits = coded(machine).apply(x, n_threads=n_threads)
    structure, trees = machine.structure, machine.trees
    for tree in range(machine.n_trees):
        leaves = trees.leaves(tree)
        order = np.argsort(exits[:, tree], kind="stable")
        counts = np.bincount(exits[:, tree], minlength=leaves.stop - leaves.start)
        start = np.concatenate([[0], np.cumsum(counts)])
        tests = trees.tests(tree)
        for j in range(tests.start, tests.stop):
            low = structure.first_leaf[j] - leaves.start
            yield j, order[start[low] : start[low + structure.n_leaves[j]]]


def _values(
    machine: DecisionMachine, z: np.ndarray, j: int, rows: np.ndarray | None
) -> tuple[np.ndarray, int]:
    """The finite values of S z at a test, and a key under which its column's are kept."""
    taken = z if rows is None else z[rows]
    if machine.is_oblique:
        weights = machine.selection[[j]].toarray()[0].astype(np.float64)
        used = weights != 0
        with np.errstate(invalid="ignore", over="ignore"):
            found, key = taken[:, used] @ weights[used], -1 - j
    else:
        key = int(machine.selection[j])
        found = z[:, key] if rows is None else z[rows, key]
    return found[np.isfinite(found)], key


def _neighbours(values: np.ndarray, t: float) -> tuple[float, float]:
    """The largest value that goes left and the smallest that goes right; NaN for none."""
    is_left = values <= t
    low = values[is_left].max() if is_left.any() else np.nan
    high = values[~is_left].min() if not is_left.all() else np.nan
    return float(low), float(high)


def _middle(low: float, high: float, t: float, values: np.ndarray) -> tuple[float, float]:
    """The threshold in its gap, and half the gap; a gap open on one side is as wide as the rest."""
    if not np.isnan(low) and not np.isnan(high):
        middle = low / 2 + high / 2
        middle = middle if low <= middle < high else low
        return middle, max(high / 2 - low / 2, np.spacing(max(abs(low), abs(high))))
    spread = float(np.std(values / 2) * 2) if len(values) else 0.0
    unit = spread if 0 < spread < STEEPEST else max(abs(t), 1.0)
    if not np.isnan(high):
        return t, min(high - t, unit) or unit
    if not np.isnan(low):
        # Rows right at the threshold go left: it is moved off them, to where no row is.
        return (t, t - low) if t - low > 0 else (t + unit, unit)
    return t, unit
