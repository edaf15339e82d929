"""What may be changed in an input, and how far each change takes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine import Rule
from ...machine.feature_names import feature_number, feature_numbers
from ...machine.label_words import labels_of
from ...run.inputs.given_rows import named_values, with_labels_for
from ..given import Limits, limits_of, numbers_for_features

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from ...machine import Columns
    from ..space.cells import Cells
    from .labels import KnownLabels

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
    left_alone: tuple[int, ...] = ()
    """Features some of whose labels may not be moved to, because only their hashes are known."""

    @property
    def allowed(self) -> Bool[np.ndarray, "C"]:
        return np.asarray(np.isfinite(self.distance))


def moves(
    cells: Cells,
    x: Float[np.ndarray, "n"],
    labels: KnownLabels,
    *,
    fixed: Any = (),
    ranges: Any = None,
    integers: Any = (),
    scale: Any = None,
    missing_distance: float = np.inf,
) -> Moves:
    """The moves from x that a search may make; see `DecisionMachine.counterfactual`."""
    columns = cells.machine.columns
    n = columns.n_features
    is_fixed = np.zeros(n, bool)
    is_fixed[feature_numbers(columns, fixed, "fixed")] = True
    is_whole = np.zeros(n, bool)
    is_whole[feature_numbers(columns, integers, "integers")] = True
    limits = _limits(columns, ranges)
    weight = _weights(columns, scale)
    if not missing_distance > 0:
        raise InputError(
            DOING,
            f"missing_distance={missing_distance!r}",
            "give a distance above 0, or numpy.inf to leave missing values alone",
        )
    value, distance = np.empty(cells.n_cells), np.full(cells.n_cells, np.inf)
    own, left_alone = np.empty(n, np.int64), []
    for feature in range(n):
        at = slice(int(cells.start[feature]), int(cells.start[feature + 1]))
        own[feature] = at.start + int(cells.cell(feature, x[feature]))
        if not is_fixed[feature] and feature in cells.tests:
            limit = limits.get(feature) or Limits(codes=labels.codes(feature))
            if feature not in limits and labels.has_unnamed(feature):
                left_alone.append(feature)
            value[at], distance[at] = _cell_moves(
                cells,
                feature,
                x[feature],
                limit,
                bool(is_whole[feature]),
                float(weight[feature]),
                missing_distance,
            )
        value[own[feature]], distance[own[feature]] = x[feature], 0.0
    return Moves(x, value, distance, own, tuple(left_alone))


def is_categorical(cells: Cells, feature: int) -> bool:
    """Whether a feature has labels, or every test of it looks its categories up."""
    is_looked_up = cells.rule[cells.tests[feature]] == Rule.MEMBER
    return feature in cells.machine.columns.categories or bool(np.all(is_looked_up))


def _cell_moves(
    cells: Cells,
    feature: int,
    x: float,
    limits: Limits,
    is_whole: bool,
    weight: float,
    missing_distance: float,
) -> tuple[Float[np.ndarray, "c"], Float[np.ndarray, "c"]]:
    """The nearest value in each cell of a feature, and its distance; the last cell is NaN."""
    low, high = cells.low(feature).astype(float), cells.ends[feature].astype(float)
    columns = cells.machine.columns
    labels, accepted = labels_of(columns, feature), columns.accepted
    may_miss = accepted is None or bool(accepted.missing[feature])
    # A number between two labels' codes is none of them, also where tests compare codes.
    categorical = labels is not None or is_categorical(cells, feature)
    if labels is not None:
        low_code, high_code = max(limits.low, 0), min(limits.high, len(labels) - 1)
        limits = replace(limits, low=low_code, high=high_code)
        refused = () if accepted is None else accepted.refused.get(feature, ())
        if refused:
            asked = range(len(labels)) if limits.codes is None else limits.codes
            limits = replace(limits, codes=tuple(code for code in asked if code not in refused))
    elif accepted is not None:
        low = np.maximum(low, accepted.low[feature])
        high = np.minimum(high, accepted.high[feature])
    low, high = np.maximum(low, limits.low), np.minimum(high, limits.high)
    # A range may be given in values that the columns' dtype does not have.
    low, high = _inside(low, cells.dtype, up=True), _inside(high, cells.dtype, up=False)
    if is_whole or categorical:
        with np.errstate(invalid="ignore"):
            low, high = np.ceil(low), np.floor(high)
    start = 0.0 if np.isnan(x) else x
    nearest = np.where(low <= high, np.clip(start, low, high), np.nan)
    if limits.codes is not None:
        nearest = _nearest_codes(cells, feature, limits.codes, start)
    nearest = _not_missing(cells, nearest)
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
    return np.append(nearest, np.nan), np.append(distance, missing_distance if may_miss else np.inf)


def _inside(values: np.ndarray, dtype: np.dtype, *, up: bool) -> np.ndarray:
    """The nearest numbers of a dtype that are not below (not above) the given ones."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    wrong = cast.astype(float) < values if up else cast.astype(float) > values
    end = dtype.type(np.inf if up else -np.inf)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(wrong, np.nextafter(cast, end), cast).astype(float)


def _nearest_codes(
    cells: Cells, feature: int, codes: tuple[int, ...], start: float
) -> Float[np.ndarray, "c"]:
    """The code nearest to a number in each cell of numbers; NaN in cells that hold none of them."""
    nearest = np.full(len(cells.ends[feature]), np.nan)
    for code in sorted(codes, key=lambda code: -abs(code - start)):  # the nearest one last
        nearest[int(cells.cell(feature, code))] = code
    return nearest


def _not_missing(cells: Cells, nearest: Float[np.ndarray, "c"]) -> Float[np.ndarray, "c"]:
    """No value that the machine reads as missing; its cell holds nothing else."""
    value = cells.machine.columns.missing_value
    if np.isnan(value):
        return nearest
    return np.where(nearest == float(cells.dtype.type(value)), np.nan, nearest)


def _limits(columns: Columns, ranges: Any) -> dict[int, Limits]:
    """feature → what it may change to."""
    named = {} if ranges is None else named_values(ranges)
    if named is None:
        raise InputError(
            DOING, f"ranges={ranges!r}", "give a dictionary: feature → (low, high), or → labels"
        )
    given = {feature_number(columns, f, "feature of a range"): v for f, v in named.items()}
    columns = with_labels_for(given, columns)
    return {f: limits_of(columns, f, value, DOING) for f, value in given.items()}


def _weights(columns: Columns, scale: Any) -> Float[np.ndarray, "n"]:
    """(n,) what a step of 1 counts in every feature."""
    if scale is None:
        return np.ones(columns.n_features)
    found = numbers_for_features(columns, scale, 1.0, DOING)
    if not np.all(np.isfinite(found) & (found > 0)):
        wrong = int(np.argmin(np.isfinite(found) & (found > 0)))
        raise InputError(
            DOING,
            f"scale={scale!r}: {found[wrong]} for {columns.feature_name(wrong)}",
            f"give one positive number, {len(found)} of them, or a dictionary: feature → number",
        )
    return 1.0 / found
