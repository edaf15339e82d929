"""How a machine was learned: losses against steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .display import CLASSES, Display

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LearningCurveDisplay(Display):
    """The numbers of a training history against its steps, or its seconds.

    Parameters
    ----------
    history
        What training gives: `Fit.history`, or an estimator's `history_`.
    names
        Which of its numbers; all by default.
    against
        "step" or "seconds".

    Examples
    --------
    >>> curve = LearningCurveDisplay([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}])
    >>> curve.curves["loss"][1].tolist()
    [2.0, 1.0]
    """

    size = (7.0, 4.2)

    def __init__(
        self,
        history: Sequence[Mapping[str, float]],
        *,
        names: Sequence[str] | None = None,
        against: str = "step",
    ) -> None:
        found = dict.fromkeys(
            key for row in history for key in row if key not in ("step", "seconds")
        )
        names = list(found) if names is None else list(names)
        unknown = [name for name in names if name not in found]
        if unknown or not names or against not in ("step", "seconds"):
            raise InputError(
                "drawing a learning curve",
                f"no {unknown[0]!r} in the history"
                if unknown
                else ("a history without numbers" if not names else f"against = {against!r}"),
                f"use {', '.join(found) or 'the history of a training run'}; "
                "against 'step' or 'seconds'",
            )
        self.against = against
        self.curves = {name: self._curve(history, name) for name in names}

    def _curve(self, history: Sequence[Mapping[str, float]], name: str) -> tuple[np.ndarray, ...]:
        rows = [
            (row.get(self.against, i + 1), row[name])
            for i, row in enumerate(history)
            if isinstance(row.get(name), int | float)
        ]
        return tuple(np.array(rows, float).reshape(-1, 2).T)

    def _draw(self, ax: Any) -> None:
        styles = ("-", "--", "-.", ":")
        for i, (name, (at, values)) in enumerate(self.curves.items()):
            ax.plot(at, values, styles[i % 4], color=CLASSES[i % len(CLASSES)], lw=2, label=name)
        everything = np.concatenate([values for _, values in self.curves.values()])
        finite = everything[np.isfinite(everything)]
        if len(finite) and finite.min() > 0 and finite.max() > 30 * finite.min():
            ax.set_yscale("log")
        ax.set_xlabel(self.against)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="0.92")
        ax.legend(frameon=False)
        ax.set_title("Learning curve")
