"""Orders of the rows: every test of an optimal tree is a cut of one of them.

A feature without gaps gives one order. One with gaps gives two: missing values before all others,
and behind them. A feature of labels gives an order of two ranks for every set of its labels that
holds the first one and is not all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ... import _native
from ...errors import InputError
from ..axis.ranks import between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int

MOST_LABELS = 6
"""Of a feature whose sets are all tried: 31 of them; one more label doubles their number."""


@dataclass(frozen=True)
class Order:
    """One way to put the rows in order."""

    feature: int
    values: Float[np.ndarray, "r"]
    """Of each rank, missing values left out."""
    missing: str = "none"
    """Where missing values stand: "none" if there are none, "before" or "behind" the others."""
    labels: int | None = None
    """Of a feature of labels: the codes of rank 0, as bits."""

    def test(self, below: int, above: int) -> tuple[float, bool | None, bool]:
        """Threshold, whether missing values go left (None: none are known), whether sides swap.

        A set's threshold is its bits.
        """
        shift = 1 if self.missing == "before" else 0
        goes_left = None if self.missing == "none" else self.missing == "before"
        if shift and below == 0:  # missing values alone go left; said as "known values go left"
            return float("inf"), False, True
        if above - shift >= len(self.values):  # missing values alone go right
            return float("inf"), False, False
        if self.labels is not None:
            return float(self.labels), goes_left, False
        low, high = self.values[below - shift], self.values[above - shift]
        return between(float(low), float(high)), goes_left, False


def orders_of(
    X: Float[np.ndarray, "m n"], label_features: Sequence[int], names: Sequence[str], doing: str
) -> tuple[list[Order], Int[np.ndarray, "o m"]]:
    """The orders of all features, and the rank of every row in each.

    Raises
    ------
    InputError
        Where a feature of labels has more of them than all sets can be tried of.

    Examples
    --------
    >>> orders, rank = orders_of(np.array([[3.0], [1.0], [np.nan]]), [], [], "ordering rows")
    >>> [order.missing for order in orders], rank.tolist()
    (['before', 'behind'], [[2, 1, 0], [1, 0, 2]])
    """
    orders: list[Order] = []
    ranks: list[np.ndarray] = []
    known_rank = np.empty(X.shape[::-1], np.int32)
    of_all, start = _native.column_ranks(np.ascontiguousarray(X), known_rank)
    has_gaps = np.logical_or.reduce(known_rank < 0, axis=1).tolist()
    is_plain = not any(has_gaps) and not len(label_features)
    for feature in range(X.shape[1]):
        values = of_all[start[feature] : start[feature + 1]]
        if is_plain:
            orders.append(Order(feature, values))
            continue
        is_missing = known_rank[feature] < 0
        rank = known_rank[feature][~is_missing]
        made: list[tuple[np.ndarray, np.ndarray, int | None]] = [(values, rank, None)]
        if feature in label_features:
            if len(values) > MOST_LABELS:
                name = str(names[feature]) if len(names) else str(feature)
                raise InputError(
                    doing,
                    f"column {name!r} has {len(values)} labels, whose sets are too many to try",
                    f"merge labels to at most {MOST_LABELS}, make numbers of them, drop the column,"
                    " or use DecisionMachineClassifier or DecisionMachineRegressor",
                )
            # One label is a number among gaps: all that can be asked is whether it is there.
            if len(values) != 1:
                made = [
                    (np.arange(2.0), np.isin(rank, chosen, invert=True).astype(np.int64), bits)
                    for chosen, bits in _sets(values.astype(np.int64))
                ]
        for of_rank, known, bits in made:
            if not has_gaps[feature]:
                orders.append(Order(feature, of_rank, labels=bits))
                ranks.append(known)
                continue
            for missing in ("before", "behind") if len(of_rank) else ("behind",):
                whole = np.full(len(X), 0 if missing == "before" else len(of_rank))
                whole[~is_missing] = known + (missing == "before")
                orders.append(Order(feature, of_rank, missing, bits))
                ranks.append(whole)
    if is_plain:
        return orders, known_rank
    return orders, np.ascontiguousarray(np.array(ranks, np.int32).reshape(len(orders), len(X)))


def _sets(codes: Int[np.ndarray, "c"]) -> list[tuple[list[int], int]]:
    """Sets with the first code and without some other: places among the codes, and bits."""
    found = []
    for others in range(2 ** (len(codes) - 1) - 1 if len(codes) else 0):
        places = [0, *(i for i in range(1, len(codes)) if others >> (i - 1) & 1)]
        found.append((places, sum(1 << int(codes[i]) for i in places)))
    return found
