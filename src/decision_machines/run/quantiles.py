"""Quantiles of the training targets in the leaves that a row reaches, as quantile-forest has them.

A leaf knows targets by their places among all targets, sorted. What the source adds up over every
training row is added up here over the rows in the leaves alone, in the same order: the others
weigh 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine.assembly import Assembly
    from .assemblies import Asked

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
CERTIFIED = (0.05, 0.5, 0.95)
"""The quantiles that a certificate compares, besides a model's own."""
MOST_ENTRIES = 2_000_000
"""Targets that are looked at together."""
DOING = "predicting quantiles"


@dataclass(frozen=True)
class How:
    """How quantiles are made of targets: the options of the source's `predict`."""

    quantiles: tuple[float, ...]
    """() for the mean."""
    interpolation: str = "linear"
    weighted_quantile: bool = True
    weighted_leaves: bool = False
    aggregate_leaves_first: bool = True


def how_of(assembly: Assembly, quantiles: Any, **options: Any) -> How:
    """The options, checked; None for `quantiles` stands for the model's own."""
    if quantiles is None:
        given = tuple(assembly.numbers["defaults"].tolist())
    elif isinstance(quantiles, str) and quantiles == "mean":
        given = ()
    else:
        try:
            given = tuple(np.atleast_1d(np.asarray(quantiles, np.float64)).tolist())
        except (TypeError, ValueError):
            given = (np.nan,)
        if not given or not all(0 <= q <= 1 for q in given):
            raise InputError(
                DOING, f"quantiles = {quantiles!r:.80}", "give numbers from 0 to 1, or 'mean'"
            )
    how = How(given, **options)
    if how.interpolation not in INTERPOLATIONS:
        raise InputError(
            DOING,
            f"interpolation = {how.interpolation!r:.60}",
            f"use one of {', '.join(INTERPOLATIONS)}",
        )
    return how


def default_quantiles(asked: Asked) -> np.ndarray:
    """What the source's `predict` gives."""
    return quantiles(asked, how_of(asked.assembly, None))


def quantiles(asked: Asked, how: How) -> np.ndarray:
    """(m,), (m, quantiles) or (m, targets, quantiles): the axes of one are left out."""
    machine: Any = asked.assembly.members[0]
    # Leaves are numbered through all trees, as the leaves' targets are.
    first = machine.trees.leaf_start[:-1]
    leaves = machine.apply(asked.X, **asked.how) + first
    every = np.asarray(asked.numbers("targets"))
    found = np.empty((len(leaves), len(every), max(len(how.quantiles), 1)))
    for target in range(len(every)):
        held = _Held(
            every[target], asked.numbers("starts"), asked.numbers("places")[target],
            asked.assembly.numbers.get("bounds"),
        )  # fmt: skip
        if bool(asked.numbers("one_each")):
            found[:, target] = held.of_single_targets(leaves, how)
            continue
        size = np.diff(held.starts)[leaves].sum(axis=1)
        for rows in _blocks(size):
            found[rows, target] = held.of_leaves(leaves[rows], how)
    if found.shape[2] == 1:
        found = found[:, :, 0]
    return found[:, 0] if found.shape[1] == 1 else found


def _blocks(size: np.ndarray) -> list[slice]:
    """Rows one after the other, as many as hold `MOST_ENTRIES` targets, but at least one."""
    ends = np.cumsum(size)
    blocks, low = [], 0
    while low < len(size):
        done = ends[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(ends, done + MOST_ENTRIES, side="right")))
        blocks.append(slice(low, high))
        low = high
    return blocks


@dataclass(frozen=True)
class _Held:
    """The sorted targets, and for every leaf the places of those in it."""

    targets: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    bounds: np.ndarray | None

    def of_single_targets(self, leaves: np.ndarray, how: How) -> np.ndarray:
        """Every leaf holds one target: what NumPy makes of one target for each tree."""
        values: Any = np.empty(leaves.shape)
        values[:] = self.targets[self.places[self.starts[leaves]]]
        if self.bounds is not None:
            values = np.clip(values, self.bounds[leaves, 0], self.bounds[leaves, 1])
        if not how.quantiles:
            return np.asarray(np.mean(values, axis=1))[:, None]
        method: Any = how.interpolation
        found: np.ndarray = np.quantile(values, list(how.quantiles), method=method, axis=1).T
        return found

    def of_leaves(self, leaves: np.ndarray, how: How) -> np.ndarray:
        """(rows, quantiles), from all the leaves of a row together or from one leaf at a time."""
        m, n_trees = leaves.shape
        groups = leaves if how.aggregate_leaves_first else leaves.reshape(-1, 1)
        weights = self._weights(leaves, how).reshape(groups.shape)
        found = self._of_groups(groups, weights, how)
        if how.aggregate_leaves_first:
            return found
        parts = found.reshape(m, n_trees, -1)
        total = np.zeros((m, parts.shape[2]))
        for tree in range(n_trees):
            total += parts[:, tree]
        return total / n_trees if n_trees > 1 else parts[:, 0]

    def _weights(self, leaves: np.ndarray, how: How) -> np.ndarray:
        """What a target of a leaf weighs."""
        if not how.weighted_leaves or not how.weighted_quantile:
            return np.ones(leaves.shape)
        size = np.diff(self.starts)[leaves].astype(np.float64)
        found: np.ndarray = 1.0 / size
        found = found * size.sum(axis=1, keepdims=True)
        return found / float(leaves.shape[1])

    def _of_groups(self, groups: np.ndarray, weights: np.ndarray, how: How) -> np.ndarray:
        """(groups, quantiles) of the targets in several leaves together."""
        n, width = groups.shape
        flat = groups.ravel()
        size = np.diff(self.starts)[flat]
        ends = np.cumsum(size)
        inside = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - size, size)
        places = self.places[np.repeat(self.starts[flat], size) + inside]
        owner = np.repeat(np.repeat(np.arange(n), width), size)
        if not how.weighted_quantile:
            values = self.targets[places]
            if not how.quantiles:
                counts = np.bincount(owner, minlength=n)
                # bincount adds one after the other, as the source does.
                return (np.bincount(owner, values, minlength=n) / counts)[:, None]
            return _quantiles(values, owner, n, how)
        weight = np.repeat(weights.ravel(), size)
        key, where = np.unique(owner * len(self.targets) + places, return_inverse=True)
        weight = np.bincount(where, weight, minlength=len(key))
        owner, places = np.divmod(key, len(self.targets))
        if not how.quantiles:
            total = np.bincount(owner, self.targets[places] * weight, minlength=n)
            return (total / np.bincount(owner, weight, minlength=n))[:, None]
        return _weighted_quantiles(self.targets, places, weight, owner, n, how)


def _between(low: np.ndarray, high: np.ndarray, part: np.ndarray, how: How) -> np.ndarray:
    """Between two targets, by the interpolation; "nearest" is left to the caller at halves."""
    if how.interpolation == "lower":
        return low
    if how.interpolation == "higher":
        return high
    if how.interpolation == "midpoint":
        return np.asarray(0.5 * (low + high))
    if how.interpolation == "nearest":
        return np.where(part < 0.5, low, high)
    return np.asarray(low + part * (high - low))


def _is_half(part: np.ndarray) -> np.ndarray:
    return np.abs(part - 0.5) < 1e-16


def _quantiles(values: np.ndarray, owner: np.ndarray, n: int, how: How) -> Float[np.ndarray, "n q"]:
    """Of the values of every owner, which come in the owners' order."""
    values = values[np.lexsort((values, owner))]
    count = np.bincount(owner, minlength=n)
    start = np.cumsum(count) - count
    found = np.empty((n, len(how.quantiles)))
    for at, q in enumerate(how.quantiles):
        rank = q * (count - 1.0) + 1.0 - 1.0
        rank = np.clip(rank, 0, count - 1)
        floor = np.floor(rank)
        part = rank - floor
        low = values[start + floor.astype(np.intp)]
        high = values[start + np.ceil(rank).astype(np.intp)]
        value = _between(low, high, part, how)
        if how.interpolation == "nearest":
            even = np.clip(np.floor(rank / 2 + 0.5) * 2, 0, count - 1).astype(np.intp)
            value = np.where(_is_half(part), values[start + even], value)
        found[:, at] = np.where(low == high, low, value)
    return found


def _weighted_quantiles(
    targets: np.ndarray,
    places: np.ndarray,
    weight: np.ndarray,
    owner: np.ndarray,
    n: int,
    how: How,
) -> Float[np.ndarray, "n q"]:
    """Of weighted targets; the places of every owner rise.

    Below the first weight that a quantile exceeds, the source starts from the smallest of all
    targets, whether an owner has it or not.
    """
    count = np.bincount(owner, minlength=n)
    start = np.cumsum(count) - count
    # Sums of every owner's own weights, one after the other: those of all together would round
    # otherwise.
    width = int(count.max()) if n else 0
    inside = np.arange(len(owner)) - start[owner]
    table = np.zeros((n, width))
    table[owner, inside] = weight
    sums = np.cumsum(table, axis=1)
    total = sums[np.arange(n), count - 1]
    beyond = np.arange(width) >= count[:, None]
    sums[beyond] = np.inf
    f = total + 1.0 - 2.0
    found = np.empty((n, len(how.quantiles)))
    rows = np.arange(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        for at, q in enumerate(how.quantiles):
            floor = np.sum(q * f[:, None] + 1.0 >= sums, axis=1) - 1
            is_below = floor < 0
            first = places[start]
            # From below all weights: place 0, which weighs nothing unless the owner holds it.
            holds_first = is_below & (first == 0)
            ceil = np.where(is_below, np.where(holds_first, 1, 0), floor + 1)
            is_last = ceil >= count
            ceil = np.minimum(ceil, count - 1)
            low = np.where(is_below, targets[0], targets[places[start + np.maximum(floor, 0)]])
            high = np.where(is_last, low, targets[places[start + ceil]])
            sum_low = np.where(
                is_below, np.where(holds_first, sums[:, 0], 0.0), sums[rows, np.maximum(floor, 0)]
            )
            p_low = np.minimum(q, (sum_low - 1.0) / f)
            p_high = np.maximum(q, (sums[rows, ceil] - 1.0) / f)
            p_high = p_low + (p_high - p_low) / table[rows, ceil]
            part = (q - p_low) / (p_high - p_low)
            value = _between(low, high, part, how)
            if how.interpolation == "nearest":
                value = np.where(_is_half(part), np.where(sum_low % 2 != 0, low, high), value)
            value = np.where(part <= 0, low, np.where(part >= 1, high, value))
            value = np.where(q >= p_high, high, value)
            found[:, at] = np.where(low == high, low, value)
    return found
