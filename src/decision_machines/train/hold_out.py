"""Rows that are held out to choose by: which of them, for a seed.

All draws are here. Solvers that learn from all rows in the end take every n-th row of a
shuffle; shares that a user names are drawn exactly. Of classes each gives its share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Int, Num

    from .rows import Rows

FEWEST_HELD_OUT = 5
"""Fewer rows than this judge nothing: then all rows are learned from, and judge."""


def every_nth(
    n_rows: int, n: int, seed: int, classes: Num[np.ndarray, "m"] | None = None
) -> Bool[np.ndarray, "m"]:
    """Whether each row is held out: one in n, of each class alike.

    Examples
    --------
    >>> held = every_nth(20, 5, seed=0, classes=np.repeat([0, 1], 10))
    >>> held[:10].sum(), held[10:].sum()
    (np.int64(2), np.int64(2))
    """
    order = by_class(np.random.default_rng(seed), n_rows, classes)
    is_held = np.zeros(n_rows, bool)
    is_held[order[n // 2 :: n]] = True
    return is_held


def first_share(n_rows: int, share: float, seed: int) -> Bool[np.ndarray, "m"]:
    """Whether each row is held out: this share of all, at random."""
    order = np.random.default_rng(seed).permutation(n_rows)
    is_held = np.zeros(n_rows, bool)
    is_held[order[: round(share * n_rows)]] = True
    return is_held


def spread_share(
    n_rows: int, share: float, seed: Any, classes: Num[np.ndarray, "m"] | None
) -> Int[np.ndarray, "k"]:
    """The rows held out, ascending: this share of all, of each class alike."""
    order = by_class(np.random.default_rng(seed), n_rows, classes)
    n = min(max(1, round(share * n_rows)), max(n_rows - 1, 0))
    return np.sort(order[(np.arange(n) * n_rows) // max(n, 1)]) if n else np.empty(0, np.int64)


def whole_groups(group: Int[np.ndarray, "m"], share: float, seed: Any) -> Int[np.ndarray, "k"]:
    """The rows held out: all rows of this share of the groups."""
    n = int(group.max()) + 1 if len(group) else 0
    chosen = np.random.default_rng(seed).permutation(n)[: max(1, round(share * n))]
    return np.flatnonzero(np.isin(group, chosen))


def folds(
    n_rows: int, n: int, seed: int, classes: Num[np.ndarray, "m"] | None = None
) -> Int[np.ndarray, "m"]:
    """The fold of each row, 0 to n - 1: as many rows in each, of each class alike.

    Examples
    --------
    >>> fold = folds(20, 5, seed=0, classes=np.repeat([0, 1], 10))
    >>> np.bincount(fold[:10]).tolist(), np.bincount(fold[10:]).tolist()
    ([2, 2, 2, 2, 2], [2, 2, 2, 2, 2])
    """
    fold = np.empty(n_rows, np.int64)
    fold[by_class(np.random.default_rng(seed), n_rows, classes)] = np.arange(n_rows) % n
    return fold


def hold_out(
    rows: Rows, fraction: float, seed: int, *, is_classes: bool
) -> tuple[Rows, Rows | None]:
    """The rows to learn from and those to judge by; None where too few could be held out.

    Every class gives its share, and keeps at least one row to be learned from.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    if fraction * len(rows) < FEWEST_HELD_OUT:
        return rows, None
    if not is_classes:
        cut = int(fraction * len(rows))
        return rows.take(order[cut:]), rows.take(order[:cut])
    held = []
    for code in np.unique(rows.y):
        own = order[rows.y[order] == code]
        held.append(own[: min(int(fraction * len(own) + rng.random()), len(own) - 1)])
    out = np.concatenate(held)
    if len(out) < FEWEST_HELD_OUT:
        return rows, None
    is_out = np.zeros(len(rows), bool)
    is_out[out] = True
    return rows.take(order[~is_out[order]]), rows.take(out)


def by_class(
    rng: np.random.Generator, n_rows: int, classes: Num[np.ndarray, "m"] | None
) -> Int[np.ndarray, "m"]:
    """Rows in a random order, those of a class one after the other."""
    order = rng.permutation(n_rows)
    return order if classes is None else order[np.argsort(classes[order], kind="stable")]
