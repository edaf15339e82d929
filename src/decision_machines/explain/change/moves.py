"""What may be changed in an input, and how far each change takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine import Rule
from ...machine.label_words import labels_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from ...machine import DecisionMachine
    from ..space.cells import Cells

DOING = "searching for a counterfactual"


@dataclass(frozen=True)
class Moves:
    """For every cell of every feature, the nearest value to x in it and its distance from x.

    All cells stand in one array, feature after feature (`Cells.start`). A cell that x may not
    move to has an infinite distance; x's own cells have the distance 0 and x's own values.
    """

    x: Float[np.ndarray, "n"]
    value: Float[np.ndarray, "C"]
    distance: Float[np.ndarray, "C"]
    own: np.ndarray
    """The cell of every feature in which x lies."""

    @property
    def allowed(self) -> Bool[np.ndarray, "C"]:
        return np.isfinite(self.distance)


def moves(
    cells: Cells,
    x: Float[np.ndarray, "n"],
    *,
    fixed: Any = (),
    ranges: Mapping[Any, tuple[float, float]] | None = None,
    integers: Any = (),
    scale: Any = None,
    missing_distance: float = np.inf,
) -> Moves:
    """The moves from x that a search may make; see `DecisionMachine.counterfactual`."""
    machine = cells.machine
    n = machine.n_features
    is_fixed = np.zeros(n, bool)
    is_fixed[feature_numbers(machine, fixed, "fixed")] = True
    is_whole = np.zeros(n, bool)
    is_whole[feature_numbers(machine, integers, "integers")] = True
    limits = _ranges(machine, ranges)
    weight = _scale(machine, scale)
    if not missing_distance > 0:
        raise InputError(
            DOING,
            f"missing_distance={missing_distance!r}",
            "give a distance above 0, or numpy.inf to leave missing values alone",
        )
    value, distance = np.empty(cells.n_cells), np.full(cells.n_cells, np.inf)
    own = np.empty(n, np.int64)
    for feature in range(n):
        at = slice(int(cells.start[feature]), int(cells.start[feature + 1]))
        own[feature] = at.start + int(cells.cell(feature, x[feature]))
        if not is_fixed[feature] and feature in cells.tests:
            value[at], distance[at] = _cell_moves(
                cells,
                feature,
                x[feature],
                limits.get(feature, (-np.inf, np.inf)),
                bool(is_whole[feature]),
                weight[feature],
                missing_distance,
            )
        value[own[feature]], distance[own[feature]] = x[feature], 0.0
    return Moves(x, value, distance, own)


def is_categorical(cells: Cells, feature: int) -> bool:
    """Whether every test of a feature looks its categories up."""
    return bool(np.all(cells.rule[cells.tests[feature]] == Rule.MEMBER))


def _cell_moves(cells, feature, x, limits, is_whole, weight, missing_distance):
    low, high = cells.low(feature).astype(float), cells.ends[feature].astype(float)
    categorical = is_categorical(cells, feature)
    labels = labels_of(cells.machine.columns, feature)
    if categorical and labels is not None:
        limits = (max(limits[0], 0), min(limits[1], len(labels) - 1))
    low, high = np.maximum(low, limits[0]), np.minimum(high, limits[1])
    # A range may be given in values that the columns' dtype does not have.
    low, high = _inside(low, cells.dtype, up=True), _inside(high, cells.dtype, up=False)
    if is_whole or categorical:
        with np.errstate(invalid="ignore"):
            low, high = np.ceil(low), np.floor(high)
    start = 0.0 if np.isnan(x) else x
    nearest = np.where(low <= high, np.clip(start, low, high), np.nan)
    nearest = _not_missing(cells, nearest, low, high)
    ok = ~np.isnan(nearest) & np.isfinite(nearest)
    if np.isnan(x):
        distance = np.where(ok, missing_distance, np.inf)
    elif categorical:
        distance = np.where(ok, weight, np.inf)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.where(ok, np.abs(nearest - x) * weight, np.inf)
        # A move so small, or so little weighed, that its distance rounds to 0 is still a move.
        distance = np.where(distance == 0, np.nextafter(0.0, 1.0), distance)
    return np.append(nearest, np.nan), np.append(distance, missing_distance)


def _inside(values: np.ndarray, dtype: np.dtype, *, up: bool) -> np.ndarray:
    """The nearest numbers of a dtype that are not below (not above) the given ones."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    wrong = cast.astype(float) < values if up else cast.astype(float) > values
    end = dtype.type(np.inf if up else -np.inf)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(wrong, np.nextafter(cast, end), cast).astype(float)


def _not_missing(cells: Cells, nearest, low, high):
    """No value that the machine reads as missing; its cell holds nothing else."""
    value = cells.machine.columns.missing_value
    if np.isnan(value):
        return nearest
    return np.where(nearest == float(cells.dtype.type(value)), np.nan, nearest)


def feature_numbers(machine: DecisionMachine, given: Any, what: str) -> np.ndarray:
    """Features named by name or number, as numbers."""
    if isinstance(given, (str, int, np.integer)):
        given = [given]
    return np.array([feature_number(machine, one, what) for one in given], np.int64)


def feature_number(machine: DecisionMachine, feature: Any, what: str = "feature") -> int:
    """A feature named by name or number, as a number."""
    names = machine.columns.names
    n = machine.n_features
    if isinstance(feature, str):
        if names is not None and feature in names:
            return names.index(feature)
        known = "the machine knows no names" if names is None else f"names are {_some(names)}"
        raise InputError(f"finding the {what}", f"{feature!r}; {known}", "use a name or a number")
    is_number = isinstance(feature, (int, np.integer)) and not isinstance(feature, bool)
    if not is_number or not -n <= feature < n:
        raise InputError(
            f"finding the {what}",
            f"{feature!r}, of {n} features",
            f"use a number from 0 to {n - 1}, or a name",
        )
    return int(feature) % n


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(repr(n) for n in names[:8]) + (" …" if len(names) > 8 else "")


def _ranges(machine: DecisionMachine, ranges: Any) -> dict[int, tuple[float, float]]:
    if ranges is None:
        return {}
    if not isinstance(ranges, Mapping):
        raise InputError(DOING, f"ranges={ranges!r}", "give a dictionary: feature → (low, high)")
    found = {}
    for feature, limits in ranges.items():
        try:
            low, high = (float(v) for v in limits)
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if not low <= high:
            raise InputError(
                DOING, f"the range {limits!r} of feature {feature!r}", "give (low, high), low first"
            )
        found[feature_number(machine, feature, "feature of a range")] = (low, high)
    return found


def _scale(machine: DecisionMachine, scale: Any) -> np.ndarray:
    """(n,) what a step of 1 counts in every feature."""
    n = machine.n_features
    found = np.ones(n)
    if scale is None:
        return found
    try:
        if isinstance(scale, Mapping):
            for feature, value in scale.items():
                found[feature_number(machine, feature, "feature of a scale")] = float(value)
        else:
            found = np.broadcast_to(np.asarray(scale, float), (n,)).copy()
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        found = np.array([np.nan])
    if not np.all(np.isfinite(found) & (found > 0)):
        raise InputError(
            DOING,
            f"scale={scale!r}",
            f"give one positive number, {n} of them, or a dictionary: feature → number",
        )
    return 1.0 / found
