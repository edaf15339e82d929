"""What tuning gives: the hard machine, the soft one, and a report that can be read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from ...relax.module import SoftMachine
    from .descent import Setting


@dataclass(frozen=True)
class Trial:
    """One setting that was tried: its best losses on validation, soft and hard."""

    setting: Setting
    soft: float
    hard: float
    epochs: int


@dataclass(frozen=True)
class Start:
    """How far the softened machine stood from its source before the first step."""

    alpha: float
    bound: float
    """No margin of the rows measured may differ by more: the sum over trees of the weight not on
    the exit leaf times the range of the tree's values."""
    largest: float
    mean: float


@dataclass(frozen=True)
class Report:
    """What was tried, chosen and changed. Losses are means on the validation rows."""

    objective: str
    n_train: int
    n_validation: int
    source: float
    """The source's loss on validation."""
    soft: float
    hard: float
    """Of what was chosen, before any refit: never above the source's."""
    leads: tuple[float, float]
    """How far the best soft and the best hard candidate were below the source, in standard errors;
    with too small a lead the source is chosen."""
    chosen_soft: str
    chosen_hard: str
    trials: list[Trial]
    start: Start | None
    thresholds_moved: int
    n_tests: int
    median_move: float
    """Of the hard machine's thresholds that moved, in widths of their tests."""
    value_change: float
    """Root mean square change of leaf values, relative to their spread."""
    slope_factor: float
    """The median factor by which the soft machine's slopes grew."""
    refit_soft: float | None = None
    refit_hard: float | None = None
    """After a refit, on validation rows that it was trained on: no measure of quality."""
    interrupted: bool = False
    seconds: float = 0.0
    validation_rows: np.ndarray | None = field(default=None, repr=False)
    """Which rows of X were held out; None where validation rows were given."""

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and words, for JSON."""
        found = asdict(self)
        rows = found.pop("validation_rows")
        found["validation_rows"] = None if rows is None else rows.tolist()
        return found

    def __str__(self) -> str:
        def change(loss: float) -> str:
            if not self.source:
                return ""
            return f" ({(loss / self.source - 1) * 100:+.1f} %)"

        lines = [
            f"Tuned for {self.objective} on {self.n_train} rows, judged on {self.n_validation}"
            + (", interrupted" if self.interrupted else "")
            + f"; {self.seconds:.1f} s",
            f"  validation loss   source {self.source:.6g}",
            f"                    soft   {self.soft:.6g}{change(self.soft)}: {self.chosen_soft}",
            f"                    hard   {self.hard:.6g}{change(self.hard)}: {self.chosen_hard}",
            f"  thresholds        {self.thresholds_moved} of {self.n_tests} moved, by "
            f"{self.median_move:.2g} widths in the median",
            f"  values            changed by {self.value_change:.2g} of their spread",
            f"  slopes            x {self.slope_factor:.2g} in the median",
        ]
        if self.start is not None:
            lines.append(
                f"  before step 1     margins within {self.start.largest:.3g} of the source's "
                f"(bound {self.start.bound:.3g}), {self.start.mean:.3g} on average"
            )
        unchanged = "the source, unchanged"
        if self.refit_soft is not None and {self.chosen_soft, self.chosen_hard} != {unchanged}:
            lines.append("  trained again     on training and validation rows with these settings")
        lines.append("  tried             soft      hard      epochs")
        lines += [
            f"    {trial.soft:<15.6g} {trial.hard:<15.6g} {trial.epochs:<3} {trial.setting}"
            for trial in self.trials
        ]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True)
class Tuned:
    """What `tune` gives."""

    machine: DecisionMachine
    """The hard machine: an ordinary one, which the engine predicts and the writers export."""
    soft: SoftMachine
    """The soft machine, a `torch.nn.Module`: ``soft(torch.from_numpy(machine.features(X)))``."""
    report: Report
    history: list[dict[str, float]]
    """The learning curves: a row for each epoch of each setting."""
    before_refit: Tuned | None = None
    """What was chosen, as it was judged on unseen validation rows; None without a refit."""

    def __repr__(self) -> str:
        return f"Tuned({self.machine!r})\n{self.report}"
