"""What would have changed the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.digits import digits, rounded
from ...run.inputs.given_rows import given_row
from ..space.cells import Cells
from .goals import goal, predicted
from .labels import KnownLabels, known_labels
from .moves import moves
from .nearest_answer import ForestSearch, Nearest, nearest_in_tree

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
    labels: KnownLabels
    """What labels are called."""
    left_alone: tuple[int, ...] = ()
    """Features some of whose labels were not tried, because only their hashes are known."""

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

    @property
    def new_values(self) -> dict[str, Any]:
        """Feature's name → what to write into the row: a label, a number, None for missing."""
        return {
            self.machine.columns.feature_name(f): self.labels.value(f, after)
            for f, (_, after) in self.changes.items()
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        what = "distance" if self.metric == "linf" else "number of changes"
        if self.row is None:
            found = f"no other answer found; its {what} is at least {_exactly(self.lower)}"
            if self.exact:
                found = f"no input that may be reached has another answer than {self.before}"
            return "\n".join([found, *self._of_hashes()])
        name = self.machine.columns.feature_name
        lines = [f"{self.before} → {self.after} if"]
        for feature, (old, new) in self.changes.items():
            before, after = (self.labels.words(feature, value) for value in (old, new))
            lines.append(f"  {name(feature)}: {before} → {after}")
        count = f"{self.n_changed} feature{'' if self.n_changed == 1 else 's'} changed"
        bound = f"{what} at least {_exactly(self.lower)}, certified"
        how = "proven nearest" if self.exact else bound
        lines.append(f"distance {rounded(self.distance)}, {count}, {how}")
        return "\n".join([*lines, *self._of_hashes()])

    def _of_hashes(self) -> list[str]:
        """A line about labels that were not tried."""
        if not self.left_alone:
            return []
        names = [self.machine.columns.feature_name(f) for f in self.left_alone]
        return [f"not tried: labels of {', '.join(names)} kept as hashes only (data=X names them)"]


def counterfactual(
    machine: DecisionMachine,
    x: Any,
    target: Any = None,
    *,
    metric: str = "linf",
    fixed: Any = (),
    ranges: Any = None,
    integers: Any = None,
    scale: Any = None,
    missing_distance: float = np.inf,
    budget: int = 4000,
    data: Any = None,
) -> Counterfactual:
    """See `DecisionMachine.counterfactual`."""
    if metric not in ("linf", "count"):
        raise InputError(DOING, f"metric={metric!r}", "use 'linf' or 'count'")
    if not isinstance(budget, (int, np.integer)) or budget < 1:
        raise InputError(DOING, f"budget={budget!r}", "give a whole number of boxes from 1 on")
    labels = known_labels(machine, x, ranges, data)
    machine = labels.machine
    cells = Cells(machine, DOING)
    row = given_row(x, machine.columns, DOING)
    found = goal(machine, row, target)
    ways = moves(
        cells,
        row,
        labels,
        fixed=fixed,
        ranges=ranges,
        integers=labels.whole if integers is None else integers,
        scale=scale,
        missing_distance=missing_distance,
    )
    if found.met(row[None])[0]:
        best = Nearest(row.copy(), 0.0, True)
    elif machine.n_trees <= 1:
        best = nearest_in_tree(cells, ways, found, metric)
    else:
        best = ForestSearch(cells, ways, found, int(budget)).nearest(metric)
    after, distance, changed = None, np.inf, np.array([], np.int64)
    if best.row is not None:
        answers = predicted(machine, best.row[None])
        after, changed = answers[0], np.flatnonzero(_differs(row, best.row))
        assert not len(changed) or found.answers(answers)[0], "not confirmed by the machine"
        place = [int(cells.start[f]) + int(cells.cell(f, best.row[f])) for f in changed.tolist()]
        distance = float(ways.distance[place].max(initial=0.0))
    return Counterfactual(
        machine,
        row,
        best.row,
        found.before,
        after,
        distance,
        len(changed),
        metric,
        float(best.lower),
        best.exact,
        best.boxes,
        labels,
        ways.left_alone,
    )


def _exactly(distance: float) -> str:
    return digits(distance, np.dtype(np.float64))


def _differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    differs: np.ndarray = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return differs
