"""Progress of long work, the learning curve of training, and a clean interruption."""

from __future__ import annotations

import logging
import time
from types import TracebackType

from .displays import NOWHERE, Display, display_for

Verbosity = bool | int | None
"""False or 0: nothing is shown. True or 1: progress. None: not of quick work in a pipe."""

logger = logging.getLogger(__name__)


class Progress:
    """How far some work is, shown while the ``with`` block lasts.

    Parameters
    ----------
    what
        What is being done, in a word or two.
    total
        How much there is to do; None where nobody knows.
    verbose
        Whether to show it; see `displays.display_for`.

    Examples
    --------
    >>> with Progress("probing trees", total=2, verbose=False) as progress:
    ...     for tree in range(2):
    ...         progress.update(tree + 1)
    """

    def __init__(self, what: str, total: float | None = None, verbose: Verbosity = None) -> None:
        self.what, self.total, self.verbose = what, total, verbose
        self.display: Display = NOWHERE

    def __enter__(self) -> Progress:
        self.display = display_for(self.verbose)
        self.display.start(self.what, self.total)
        return self

    def update(self, done: float, **numbers: float) -> None:
        """So much of `total` is done; `numbers` are shown beside it."""
        if self.display is NOWHERE:
            return  # training steps are many, and text for nobody costs as much
        self.display.update(done, "  ".join(f"{k} {_short(v)}" for k, v in numbers.items()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.display.stop()


class Watch:
    """Progress of training, the learning curve behind it, and a clean interruption.

    Training loops run inside it and call `step` once for each unit of work. A `KeyboardInterrupt`
    ends training as it ends everything else, unless the user asked to keep the best so far: then
    the ``with`` block ends quietly, `interrupted` is set, and the caller goes on with what it has.

    Parameters
    ----------
    what, total, verbose
        As in `Progress`; `total` counts steps.
    keep_best
        Whether an interruption ends the block quietly.
    time_limit
        Seconds after which `is_late`; loops then end with what they have. None for no limit.

    Examples
    --------
    >>> with Watch("training", total=3, verbose=False) as watch:
    ...     for epoch in range(3):
    ...         watch.step(loss=1.0 / (epoch + 1))
    >>> [round(row["loss"], 2) for row in watch.history]
    [1.0, 0.5, 0.33]
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        verbose: Verbosity = None,
        *,
        keep_best: bool = False,
        time_limit: float | None = None,
    ) -> None:
        self.time_limit = time_limit
        self.progress = Progress(what, total, verbose)
        self.keep_best = keep_best
        self.history: list[dict[str, float]] = []
        self.interrupted = False
        self.done = 0
        self.begin = 0.0

    def __enter__(self) -> Watch:
        self.begin = time.perf_counter()
        self.progress.__enter__()
        return self

    @property
    def is_late(self) -> bool:
        """Whether the time limit is over."""
        return self.time_limit is not None and time.perf_counter() - self.begin > self.time_limit

    def step(self, **numbers: float) -> None:
        """One unit of work is done; `numbers` (loss, valid, ...) join the curve and the display."""
        seconds = time.perf_counter() - self.begin
        self.history.append({"step": len(self.history) + 1, "seconds": seconds, **numbers})
        self.done += 1
        self.progress.update(self.done, **numbers)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.progress.__exit__(kind, error, trace)
        if kind is None or not issubclass(kind, KeyboardInterrupt) or not self.keep_best:
            return False
        self.interrupted = True
        logger.warning(
            "%s was interrupted after %d steps; the best so far is kept",
            self.progress.what,
            self.done,
        )
        return True


def _short(number: float) -> str:
    """Four digits, and a letter for what is large."""
    for unit, size, least in (("G", 1e9, 1e9), ("M", 1e6, 1e6), ("k", 1e3, 1e4)):
        if abs(number) >= least:
            return f"{number / size:.4g} {unit}"
    return f"{number:.4g}"
