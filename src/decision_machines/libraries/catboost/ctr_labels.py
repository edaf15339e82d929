"""The labels that CTR tables know of, found again in the tables' hashes.

A model keeps neither the labels of a feature with CTRs nor their hashes, only hashes of whole
combinations. A hash is linear in what it is taken of (see `ctr`), and the multiplier is odd: where
all but one label hash of a combination are known, the last one follows, and it must fit in 32 bits.
CatBoost combines a feature with others only after a statistic of fewer features was used, so that
one feature after the other can be found.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnsupportedModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Int, UInt64

    from .ctr import Combination, CtrBase, CtrTable

MOST_SUMS = 1 << 26
"""Sums of hashes that are tried for one table."""


def find_labels(
    tables: Mapping[CtrBase, CtrTable],
    known: Mapping[int, Int[np.ndarray, "v"]],
    names: Mapping[int, str],
    *,
    is_of_training_rows: bool,
    doing: str,
) -> dict[int, Int[np.ndarray, "v"]]:
    """The label hashes of every categorical feature of the tables.

    Parameters
    ----------
    known
        Label hashes known from elsewhere, by the number of the feature; they come first.
    is_of_training_rows
        Whether all tables were counted on the same rows, so that a label in one of them is in
        every other table of its feature.
    """
    keys: dict[Combination, UInt64[np.ndarray, "r"]] = {}
    for base, table in tables.items():
        had = keys.get(base.combination, table.keys)
        keys[base.combination] = np.union1d(had, table.keys)
    found: dict[int, Int[np.ndarray, "v"]] = {}
    waiting = sorted(keys, key=lambda c: len(c.cats))
    while waiting:
        later = []
        for combination in waiting:
            unknown = [cat for cat in combination.cats if cat not in found]
            n_cats = len(combination.cats)
            if len(unknown) == 1 or n_cats == 1:
                cat = unknown[0] if unknown else combination.cats[0]
                new = _solved(combination, cat, keys[combination], found)
                if new is not None:
                    found[cat] = np.union1d(found.get(cat, new[:0]), new)
                    continue
            if unknown:
                later.append(combination)
        if len(later) == len(waiting):
            said = ", ".join(repr(names[cat]) for cat in later[0].cats)
            raise UnsupportedModelError(
                doing,
                f"a statistic of the target over categories (CTR) of the features {said} together, "
                "whose labels cannot be found again",
                "train with max_ctr_complexity=1, or encode the features as numbers beforehand",
            )
        waiting = later
    for combination in keys:
        _check_all_found(combination, keys[combination], found, names, is_of_training_rows, doing)
    return {
        cat: np.concatenate([first, np.setdiff1d(labels, first)])
        for cat, labels in found.items()
        for first in [known.get(cat, labels[:0]).astype(np.int64)]
    }


def label_adds(factor: int, labels: Int[np.ndarray, "v"]) -> UInt64[np.ndarray, "v"]:
    """What each label adds to a hash in which its place has this factor."""
    return labels.astype(np.int64).astype(np.uint64) * np.uint64(factor)


def _solved(
    combination: Combination,
    cat: int,
    keys: UInt64[np.ndarray, "r"],
    found: Mapping[int, Int[np.ndarray, "v"]],
) -> Int[np.ndarray, "v"] | None:
    """The label hashes of one feature that give these keys with labels of all the others."""
    others = _sums(combination, found, without=cat)
    if others is None or len(others) * len(keys) > MOST_SUMS:
        return None
    factor = combination.factors()[combination.cats.index(cat)]
    inverse = np.uint64(pow(factor, -1, 1 << 64))
    new = []
    for sums in np.array_split(others, max(len(others) * len(keys) >> 20, 1)):
        v = ((keys[:, None] - sums) * inverse).astype(np.int64)
        new.append(np.unique(v[(v >= -(1 << 31)) & (v < 1 << 31)]))
    return np.unique(np.concatenate(new))


def _sums(
    combination: Combination,
    found: Mapping[int, Int[np.ndarray, "v"]],
    without: int | None = None,
) -> UInt64[np.ndarray, "s"] | None:
    """All that the terms but one feature's can add to a hash together; None where too many."""
    factors = combination.factors()
    n_cats = len(combination.cats)
    terms = [
        label_adds(factor, found[cat])
        for cat, factor in zip(combination.cats, factors, strict=False)
        if cat != without
    ]
    terms += [np.array([0, factor], np.uint64) for factor in factors[n_cats:]]
    if math.prod(map(len, terms)) > MOST_SUMS:
        return None
    sums = np.zeros(1, np.uint64)
    for adds in terms:
        sums = (sums[:, None] + adds).ravel()
    return sums


def _check_all_found(
    combination: Combination,
    keys: UInt64[np.ndarray, "r"],
    found: Mapping[int, Int[np.ndarray, "v"]],
    names: Mapping[int, str],
    is_of_training_rows: bool,
    doing: str,
) -> None:
    """Refuse a table with a key that no labels give: some label would be taken for unknown."""
    largest = max(combination.cats, key=lambda cat: len(found[cat]))
    others = _sums(combination, found, without=largest)
    labels = found[largest]
    if others is not None and len(others) * len(labels) <= MOST_SUMS:
        adds = label_adds(combination.factors()[combination.cats.index(largest)], labels)
        is_given = np.zeros(len(keys), bool)
        for some in np.array_split(adds, max(len(others) * len(adds) >> 20, 1)):
            sums = (others[:, None] + some).ravel()
            at = np.minimum(np.searchsorted(keys, sums), len(keys) - 1)
            is_given[at[keys[at] == sums]] = True
        if is_given.all():
            return
    elif is_of_training_rows:
        return
    said = ", ".join(repr(names[cat]) for cat in combination.cats)
    raise UnsupportedModelError(
        doing,
        f"a table of statistics (CTR) of the features {said} with labels that cannot be found "
        "again, as after counter_calc_method='Full' or a sum of models",
        "train one model with counter_calc_method='SkipTest'",
    )
