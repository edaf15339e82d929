"""Partial dependence and individual curves, by delta scoring."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.coded import coded
from ...machine.feature_names import feature_number
from ...machine.label_words import labels_of
from ...machine.words import words_of_value
from ...run.inputs.given_rows import with_labels_for
from ...run.inputs.given_values import feature_value, label_code
from ..given import features_of, with_labels_of
from .delta import ROWS_AT_ONCE, Delta, can_delta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float

    from ...machine import Columns, DecisionMachine

DOING = "computing partial dependence"


@dataclass(frozen=True, repr=False)
class PartialDependence:
    """The mean answer, and each row's own, with features set to the values of a grid."""

    features: tuple[int, ...]
    names: tuple[str, ...]
    grid: tuple[np.ndarray, ...]
    """The values of each feature."""
    average: Float[np.ndarray, "r ..."]
    """(r, grid, ...) the mean over rows, for each of r answers."""
    individual: Float[np.ndarray, "r m ..."] | None
    """(r, m, grid, ...) every row's own, where it was asked for."""
    labels: tuple[tuple[str, ...] | None, ...] = ()
    """Of each feature that is known by labels, the labels of its grid."""

    def __repr__(self) -> str:
        shape = " × ".join(str(len(g)) for g in self.grid)
        return f"PartialDependence({', '.join(self.names)}; {shape} values)"


def partial_dependence(
    machine: DecisionMachine,
    X: Any,
    features: Any,
    *,
    grid: Any = None,
    n_grid: int = 100,
    percentiles: tuple[float, float] = (0.05, 0.95),
    output: str = "response",
    individual: bool = False,
    sample_weight: Any = None,
    n_threads: int | None = None,
) -> PartialDependence:
    """See `DecisionMachine.partial_dependence`."""
    if output not in ("response", "margin"):
        raise InputError(DOING, f"output={output!r}", "use 'response' or 'margin'")
    x = features_of(machine, X)
    if not len(x):
        raise InputError(DOING, "no rows", "give at least one row")
    chosen = _features(machine, features)
    machine, _ = with_labels_of(machine, X)
    wide = features_of(machine, X, np.float64)
    axes = _axes(machine.columns, wide, chosen, grid, n_grid, percentiles)
    points = np.array(list(itertools.product(*axes)), np.float64).reshape(-1, len(chosen))
    weight = _weight(sample_weight, len(x))
    plain = output == "margin" or machine.output.link == "identity"
    if can_delta(machine) and plain and not individual:
        mean = _mean_by_delta(machine, x, chosen, points, weight, n_threads)
        curves = None
    else:
        answers = _answers(machine, x, chosen, points, output, n_threads)
        mean = np.zeros(0)
        parts = []
        for start, found in answers:
            own = weight[start : start + len(found)]
            mean = (mean if mean.size else 0.0) + np.einsum("m,mgr->gr", own, found)
            if individual:
                parts.append(found)
        curves = np.concatenate(parts) if individual else None
    shape = tuple(len(axis) for axis in axes)
    columns = machine.columns
    return PartialDependence(
        tuple(chosen),
        tuple(columns.feature_name(f) for f in chosen),
        tuple(axes),
        mean.T.reshape(-1, *shape),
        None if curves is None else curves.transpose(2, 0, 1).reshape(-1, len(x), *shape),
        tuple(
            None
            if labels_of(columns, f) is None
            else tuple(words_of_value(columns, f, v) for v in axis.tolist())
            for f, axis in zip(chosen, axes, strict=True)
        ),
    )


def ice(machine: DecisionMachine, X: Any, feature: Any, **options: Any) -> PartialDependence:
    """See `DecisionMachine.ice`."""
    return partial_dependence(machine, X, [feature], individual=True, **options)


def _mean_by_delta(
    machine: DecisionMachine,
    x: Float[np.ndarray, "m n"],
    chosen: list[int],
    points: Float[np.ndarray, "G f"],
    weight: Float[np.ndarray, "m"],
    n_threads: int | None,
) -> Float[np.ndarray, "G k"]:
    delta = Delta(machine, chosen, points, n_threads)
    total = np.zeros((len(points), machine.n_outputs))
    for start in range(0, len(x), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)
        total += delta.mean_margins(x[block], weight[block])
    return total


def _answers(
    machine: DecisionMachine,
    x: Float[np.ndarray, "m n"],
    chosen: list[int],
    points: Float[np.ndarray, "G f"],
    output: str,
    n_threads: int | None,
) -> Iterator[tuple[int, Float[np.ndarray, "m G r"]]]:
    """(start, (m, G, r) answers) for blocks of rows."""
    delta = Delta(machine, chosen, points, n_threads) if can_delta(machine) else None
    wide = max(1, len(points) * max(machine.n_outputs, 1))
    rows = max(16, min(ROWS_AT_ONCE, 2**24 // wide))
    for start in range(0, len(x), rows):
        block = x[start : start + rows]
        if delta is not None:
            margins = delta.margins(block)
        else:
            margins = _redone(machine, block, chosen, points, n_threads)
        m, g, k = margins.shape
        if output == "response":
            flat = margins.reshape(m * g, k).astype(machine.output.dtype)
            margins = machine.respond(flat).astype(np.float64).reshape(m, g, -1)
        yield start, margins


def _redone(
    machine: DecisionMachine,
    x: Float[np.ndarray, "m n"],
    chosen: list[int],
    points: Float[np.ndarray, "G f"],
    n_threads: int | None,
) -> Float[np.ndarray, "m G k"]:
    """Every row scored again at every point, where sums of leaves do not say it all."""
    plain = coded(machine)
    found = np.empty((len(x), len(points), machine.n_outputs))
    for g, point in enumerate(points):
        changed = np.array(x)
        changed[:, chosen] = point
        found[:, g] = plain.margin(changed, n_threads=n_threads)
    return found


def _features(machine: DecisionMachine, features: Any) -> list[int]:
    many = [features] if isinstance(features, (str, int, np.integer)) else list(features)
    chosen = [feature_number(machine.columns, f) for f in many]
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) != len(chosen):
        raise InputError(DOING, f"features={features!r}", "give one feature, or two different ones")
    return chosen


def _axes(
    columns: Columns,
    x: Float[np.ndarray, "m n"],
    chosen: list[int],
    grid: Any,
    n_grid: int,
    percentiles: tuple[float, float],
) -> list[Float[np.ndarray, "g"]]:
    if grid is not None:
        many = [grid] if len(chosen) == 1 and np.ndim(grid[0]) == 0 else list(grid)
        axes = []
        if len(many) == len(chosen):
            columns = with_labels_for(dict(zip(chosen, many, strict=True)), columns)
            axes = [_given_axis(columns, f, axis) for f, axis in zip(chosen, many, strict=True)]
        if len(axes) != len(chosen) or any(a.ndim != 1 or not len(a) for a in axes):
            raise InputError(
                DOING,
                f"a grid of {type(grid).__name__} for {len(chosen)} feature(s)",
                "give a list of numbers, or of labels, for each feature",
            )
        return axes
    if not isinstance(n_grid, (int, np.integer)) or n_grid < 2:
        raise InputError(DOING, f"n_grid={n_grid!r}", "give a whole number of at least 2")
    low, high = percentiles
    if not 0 <= low < high <= 1:
        raise InputError(DOING, f"percentiles={percentiles!r}", "give 0 ≤ low < high ≤ 1")
    return [_axis(columns, x[:, f], f, int(n_grid), (low, high)) for f in chosen]


def _given_axis(columns: Columns, feature: int, axis: Any) -> Float[np.ndarray, "g"]:
    """The values of a grid as given: numbers, or labels."""
    try:
        return np.asarray(axis, np.float64)
    except (TypeError, ValueError):
        return np.array([_grid_value(columns, feature, value) for value in axis], np.float64)


def _grid_value(columns: Columns, feature: int, value: Any) -> float:
    if isinstance(value, str) and labels_of(columns, feature) is not None:
        return float(label_code(columns, feature, value))
    return feature_value(columns, feature, value)


def _axis(
    columns: Columns,
    column: Float[np.ndarray, "m"],
    feature: int,
    n_grid: int,
    percentiles: tuple[float, float],
) -> Float[np.ndarray, "g"]:
    """The distinct values where they are few, else equal steps between two quantiles."""
    labels = labels_of(columns, feature)
    # A model that knows labels by their hashes knows those alone that its tests ask for.
    if labels is not None and not columns.label_hash:
        return np.arange(len(labels), dtype=np.float64)
    values = np.unique(column[~np.isnan(column)]).astype(np.float64)
    if len(values) < n_grid:
        return values if len(values) else np.array([np.nan])
    from scipy.stats.mstats import mquantiles

    ends = mquantiles(column[~np.isnan(column)], prob=percentiles, axis=0)
    if np.allclose(ends[0], ends[1]):
        raise InputError(
            DOING,
            f"the quantiles {percentiles} of {columns.feature_name(feature)} are both {ends[0]}",
            "give wider percentiles, or the grid itself",
        )
    return np.linspace(ends[0], ends[1], num=n_grid, endpoint=True).astype(np.float64)


def _weight(given: Any, n: int) -> np.ndarray:
    if given is None:
        return np.full(n, 1.0 / n)
    weight = np.asarray(given, np.float64).reshape(-1)
    is_weight = np.isfinite(weight) & (weight >= 0)
    if len(weight) != n or not np.all(is_weight):
        raise InputError(
            DOING,
            f"{len(weight)} weights for {n} rows"
            if len(weight) != n
            else f"sample_weight[{np.argmin(is_weight)}] = {weight[np.argmin(is_weight)]}",
            "give one finite weight of at least 0 for each row",
        )
    if not np.any(weight > 0):
        raise InputError(
            DOING, f"all {n} rows have weight 0", "give at least one row a weight above 0"
        )
    return np.asarray(weight / weight.sum())
