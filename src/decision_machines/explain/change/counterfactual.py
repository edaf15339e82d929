"""What would have changed the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.digits import digits, rounded
from ...machine.words import words_of_value
from ...run.inputs.given_rows import given_row
from ..given import with_labels_of
from ..space.cells import Cells
from .goals import goal, predicted
from .moves import moves
from .nearest_answer import ForestSearch, nearest_in_tree

if TYPE_CHECKING:
    from jaxtyping import Float

    from ...machine import DecisionMachine

DOING = "searching for a counterfactual"


@dataclass(frozen=True, repr=False)
class Counterfactual:
    """The nearest input found with another answer, and how near any other could be."""

    machine: DecisionMachine
    x: Float[np.ndarray, "n"]
    """The input, as the machine reads it."""
    row: Float[np.ndarray, "n"] | None
    """The counterfactual: the machine's own `predict` gives `after` for it. None: none found."""
    before: Any
    after: Any
    distance: float
    """L∞, scaled: the largest change of one feature. Infinite where none was found."""
    n_changed: int
    metric: str
    lower: float
    """Certified: no counterfactual has a smaller distance (or, by "count", fewer changes)."""
    exact: bool
    """Whether it is proven nearest; without a row, that no input has another answer."""
    boxes: int
    """How many boxes of inputs the search looked at."""

    def __bool__(self) -> bool:
        return self.row is not None

    @property
    def changes(self) -> dict[int, tuple[float, float]]:
        """Feature → (value before, value after), for those that change."""
        if self.row is None:
            return {}
        return {
            int(f): (float(self.x[f]), float(self.row[f]))
            for f in np.flatnonzero(_differs(self.x, self.row))
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        what = "distance" if self.metric == "linf" else "number of changes"
        if self.row is None:
            if self.exact:
                return f"no input that may be reached has another answer than {self.before}"
            return f"no other answer found; its {what} is at least {_exactly(self.lower)}"
        columns = self.machine.columns
        lines = [f"{self.before} → {self.after} if"]
        for feature, (old, new) in self.changes.items():
            before, after = (words_of_value(columns, feature, value) for value in (old, new))
            lines.append(f"  {columns.feature_name(feature)}: {before} → {after}")
        count = f"{self.n_changed} feature{'' if self.n_changed == 1 else 's'} changed"
        bound = f"{what} at least {_exactly(self.lower)}, certified"
        how = "proven nearest" if self.exact else bound
        lines.append(f"distance {rounded(self.distance)}, {count}, {how}")
        return "\n".join(lines)


def counterfactual(
    machine: DecisionMachine,
    x: Any,
    target: Any = None,
    *,
    metric: str = "linf",
    fixed: Any = (),
    ranges: Any = None,
    integers: Any = (),
    scale: Any = None,
    missing_distance: float = np.inf,
    budget: int = 4000,
) -> Counterfactual:
    """See `DecisionMachine.counterfactual`."""
    if metric not in ("linf", "count"):
        raise InputError(DOING, f"metric={metric!r}", "use 'linf' or 'count'")
    if not isinstance(budget, (int, np.integer)) or budget < 1:
        raise InputError(DOING, f"budget={budget!r}", "give a whole number of boxes from 1 on")
    machine, _ = with_labels_of(machine, x)
    cells = Cells(machine, DOING)
    row = given_row(x, machine.columns, DOING)
    found = goal(machine, row, target)
    ways = moves(
        cells,
        row,
        fixed=fixed,
        ranges=ranges,
        integers=integers,
        scale=scale,
        missing_distance=missing_distance,
    )
    if found.met(row[None])[0]:
        return Counterfactual(
            machine, row, row.copy(), found.before, found.before, 0.0, 0, metric, 0.0, True, 0
        )
    if machine.n_trees <= 1:
        best = nearest_in_tree(cells, ways, found, metric)
    else:
        best = ForestSearch(cells, ways, found, int(budget)).nearest(metric)
    if best.row is None:
        return Counterfactual(
            machine,
            row,
            None,
            found.before,
            None,
            np.inf,
            0,
            metric,
            best.lower,
            best.exact,
            best.boxes,
        )
    after = predicted(machine, best.row[None])
    assert found.answers(after)[0], "a counterfactual that the machine does not confirm"
    changed = np.flatnonzero(_differs(row, best.row))
    far = [
        ways.distance[int(cells.start[f]) + int(cells.cell(int(f), best.row[f]))] for f in changed
    ]
    return Counterfactual(
        machine,
        row,
        best.row,
        found.before,
        after[0],
        float(max(far, default=0.0)),
        len(changed),
        metric,
        float(best.lower),
        best.exact,
        best.boxes,
    )


def _exactly(distance: float) -> str:
    return digits(distance, np.dtype(np.float64))


def _differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    differs: np.ndarray = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return differs
