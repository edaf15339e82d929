"""What is seen of training: a progress bar, the learning curve, and what comes out."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..machine import DecisionMachine


@dataclass(frozen=True)
class Fit:
    """What training gives."""

    machine: DecisionMachine
    """The hard machine: an ordinary one, which the engine predicts and the writers export."""
    soft: Any = None
    """The `SoftMachine` it was hardened from, where training went by gradients."""
    report: dict[str, Any] = field(default_factory=dict)
    """What was tried, chosen and changed, in plain numbers and words."""
    history: list[dict[str, float]] = field(default_factory=list)
    """The learning curve: one row for each call of `Watch.step`."""


class Watch:
    """A progress bar with the latest numbers, the curve behind it, and a clean interruption.

    Training loops run inside it and call `step` once for each unit of work. `KeyboardInterrupt`
    ends the ``with`` block quietly and sets `interrupted`: the caller goes on with the best so far.

    Parameters
    ----------
    what
        What the bar says it is doing.
    total
        How many steps there will be.
    show
        Whether to draw the bar; None draws it where standard error is a terminal.

    Examples
    --------
    >>> with Watch("training", total=3, show=False) as watch:
    ...     for epoch in range(3):
    ...         watch.step(loss=1.0 / (epoch + 1))
    >>> [round(row["loss"], 2) for row in watch.history]
    [1.0, 0.5, 0.33]
    """

    def __init__(self, what: str, total: int | None = None, show: bool | None = None) -> None:
        self.what, self.total = what, total
        self.show = sys.stderr.isatty() if show is None else show
        self.history: list[dict[str, float]] = []
        self.interrupted = False
        self._bar: Any = None

    def __enter__(self) -> Watch:
        self._start = time.perf_counter()
        if self.show:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[numbers]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=self.total, numbers="")
        return self

    def step(self, **numbers: float) -> None:
        """One unit of work is done; `numbers` (loss, valid, ...) join the curve and the bar."""
        seconds = time.perf_counter() - self._start
        self.history.append({"step": len(self.history) + 1, "seconds": seconds, **numbers})
        if self._bar is not None:
            shown = "  ".join(f"{name} {value:.4g}" for name, value in numbers.items())
            self._bar.update(self._task, advance=1, numbers=shown)

    def __exit__(self, kind, error, trace) -> bool:
        if self._bar is not None:
            self._bar.stop()
        self.interrupted = kind is KeyboardInterrupt
        return self.interrupted
