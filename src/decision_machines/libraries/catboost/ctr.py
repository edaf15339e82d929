"""CatBoost's CTRs: statistics of the target, or counts, over combinations of features.

A table holds counts for every combination of labels, and of answers to tests, that the training
data had; it finds them by a hash of 64 bits. The hash takes the label hashes first (signed, 32
bits), then the answers of float tests, then those of one-hot tests: h ← M·(h + M·v) for each. That
is linear, so each label and each answer adds its own number to the hash, whatever the others are:
the keys of `machine.look_ups`.

A CTR is (good + prior) / (total + prior's denominator), shifted and scaled, in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .parts import refuse

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt64

MULTIPLIER = 0x4906BA494954CB65
WORD = (1 << 64) - 1
EMPTY = np.uint64(WORD)
"""The hash of a place in CatBoost's table that holds nothing."""
BORDERS, BUCKETS, BINARIZED_MEAN, FLOAT_MEAN, COUNTER, FREQUENCY = range(6)
TYPES = {
    "Borders": BORDERS,
    "Buckets": BUCKETS,
    "BinarizedTargetMeanValue": BINARIZED_MEAN,
    "FloatTargetMeanValue": FLOAT_MEAN,
    "Counter": COUNTER,
    "FeatureFreq": FREQUENCY,
}
MEAN = np.dtype([("sum", "<f4"), ("count", "<i4")])
MEANS, COUNTS = (BINARIZED_MEAN, FLOAT_MEAN), (COUNTER, FREQUENCY)


@dataclass(frozen=True)
class Combination:
    """What the hash is taken of, by the numbers that CatBoost gives its features of each kind."""

    cats: tuple[int, ...]
    above: tuple[tuple[int, float], ...]
    """Float features and their borders."""
    equals: tuple[tuple[int, int], ...]
    """Categorical features and the hash of a label."""

    def factors(self) -> list[int]:
        """What multiplies the label hash, or the answer, of each term."""
        n = len(self.cats) + len(self.above) + len(self.equals)
        return [pow(MULTIPLIER, n - i + 1, 1 << 64) for i in range(n)]


@dataclass(frozen=True)
class CtrBase:
    """What names a table: the combination, the kind of statistic, and how targets were divided."""

    combination: Combination
    kind: int
    classifier: int


@dataclass(frozen=True)
class Ctr:
    """One statistic of a table; x > border goes right, for each of its float32 borders."""

    base: CtrBase
    target_border: int
    prior: float
    denominator: float
    shift: float
    scale: float
    borders: Float[np.ndarray, "b"]


@dataclass(frozen=True)
class CtrTable:
    """The counts that a hash finds."""

    keys: UInt64[np.ndarray, "r"]
    """Ascending."""
    rows: Int[np.ndarray, "r c"] | np.ndarray
    """Counts of classes or of all; of means, records of `MEAN`."""
    counter_denominator: int

    @classmethod
    def sorted(
        cls, keys: np.ndarray, rows: np.ndarray, counter_denominator: int, doing: str
    ) -> CtrTable:
        """A table from keys in any order."""
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if np.any(keys[1:] == keys[:-1]):
            refuse(doing, "a table of a CTR that holds one hash twice")
        return cls(keys, rows[order], counter_denominator)


def statistic(ctr: Ctr, table: CtrTable, doing: str) -> Float[np.ndarray, "r+1"]:
    """The CTR of each row of its table, and of a combination that the table does not hold."""
    kind = ctr.base.kind
    if kind in MEANS:
        good = np.append(table.rows["sum"], np.float32(0))
        total = np.append(table.rows["count"], 0)
    elif kind in COUNTS:
        good = np.append(table.rows[:, 0], 0)
        total = np.full(len(good), table.counter_denominator)
    else:
        n_classes = table.rows.shape[1]
        most = n_classes if kind == BUCKETS else max(n_classes - 1, 1)
        if not 0 <= ctr.target_border < most:
            refuse(doing, f"a CTR of class {ctr.target_border} of {n_classes}")
        is_good = np.zeros(n_classes, bool)
        if kind == BUCKETS:
            is_good[ctr.target_border] = True
        else:
            is_good[ctr.target_border + 1 :] = True
        good = np.append(table.rows[:, is_good].sum(axis=1), 0)
        total = np.append(table.rows.sum(axis=1), 0)
    f = np.float32
    with np.errstate(all="ignore"):
        ratio = (good.astype(f) + f(ctr.prior)) / (total.astype(f) + f(ctr.denominator))
        return (ratio + f(ctr.shift)) * f(ctr.scale)
