"""Where progress is shown: a terminal, a notebook, a pipe, or nowhere.

A display is told when work starts, how much of it is done, with the latest numbers as text, and
when it stops. It decides by itself how often it draws.
"""

from __future__ import annotations

import html
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

LINE_SECONDS = 10.0
"""Before the first line in a pipe, and between lines at first; later a quarter of the time so far,
so that an hour of work is some thirty lines."""
DRAW_SECONDS = 0.2
"""Between two drawings in a notebook, each of which is a message to the browser."""


class Display(Protocol):
    """Shows how far one piece of work is."""

    def start(self, what: str, total: float | None) -> None:
        """Work begins; `total` is None where nobody knows how much it is."""

    def update(self, done: float, numbers: str) -> None:
        """So much of `total` is done."""

    def stop(self) -> None:
        """The work is over, finished or not."""


def display_for(verbose: bool | int | None) -> Display:
    """The display that fits where this runs.

    Parameters
    ----------
    verbose
        False or 0 shows nothing. None shows a bar on a terminal and in a notebook, and in a pipe
        lines about work that takes long. True or 1 also tells a pipe the end of quick work.
        A terminal's bar is drawn by rich, of the extra `cli`: without it a terminal is as a pipe.
    """
    if verbose is not None and not verbose:
        return NOWHERE
    if in_notebook():
        return NotebookBar()
    if sys.stderr.isatty() and find_spec("rich") is not None:
        return TerminalBar()
    return Lines(tells_end=verbose is not None)


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel; IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class Nowhere:
    """Shows nothing."""

    def start(self, what: str, total: float | None) -> None:
        pass

    def update(self, done: float, numbers: str) -> None:
        pass

    def stop(self) -> None:
        pass


NOWHERE = Nowhere()


class Lines:
    """A plain line on standard error now and then, for logs and pipes.

    Parameters
    ----------
    tells_end
        Whether the end is told even where no line was written before.
    clock
        Seconds that only grow.

    Examples
    --------
    >>> import io, contextlib
    >>> seconds = iter([0.0, 1.0, 12.0, 13.0])
    >>> with contextlib.redirect_stderr(io.StringIO()) as written:
    ...     lines = Lines(tells_end=True, clock=lambda: next(seconds))
    ...     lines.start("scoring", 1.0)
    ...     lines.update(0.1, "rows 10")
    ...     lines.update(0.5, "rows 50")
    ...     lines.stop()
    >>> print(written.getvalue(), end="")
    scoring: 50 %, rows 50, 12 s so far, about 12 s left
    scoring: ended after 13 s, rows 50
    """

    def __init__(self, *, tells_end: bool, clock: Callable[[], float] = time.perf_counter) -> None:
        self.tells_end, self.clock = tells_end, clock
        self.what, self.numbers = "", ""
        self.total: float | None = None
        self.begin = self.next = 0.0

    def start(self, what: str, total: float | None) -> None:
        self.what, self.total, self.begin = what, total, self.clock()
        self.next = LINE_SECONDS

    def update(self, done: float, numbers: str) -> None:
        self.numbers = numbers
        seconds = self.clock() - self.begin
        if seconds < self.next:
            return
        self.next = seconds + max(LINE_SECONDS, seconds / 4)
        self.tells_end = True
        said = [f"{done:.4g} steps", numbers, f"{_duration(seconds)} so far"]
        if self.total:
            share = min(done / self.total, 1.0)
            said[0] = f"{share:.0%}".replace("%", " %")
            if share > 0:
                said.append(f"about {_duration(seconds / share - seconds)} left")
        self._write(", ".join(part for part in said if part))

    def stop(self) -> None:
        if self.tells_end:
            ended = f"ended after {_duration(self.clock() - self.begin)}"
            self._write(", ".join(part for part in (ended, self.numbers) if part))

    def _write(self, said: str) -> None:
        print(f"{self.what}: {said}", file=sys.stderr, flush=True)


class TerminalBar:
    """A bar of rich on standard error, gone when the work is over."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )

    def start(self, what: str, total: float | None) -> None:
        self.task = self.bar.add_task(what, total=total, numbers="")
        self.bar.start()

    def update(self, done: float, numbers: str) -> None:
        self.bar.update(self.task, completed=done, numbers=numbers)

    def stop(self) -> None:
        self.bar.stop()


class NotebookBar:
    """The browser's own progress bar, by IPython's display alone; gone when the work is over."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.what = ""
        self.total: float | None = None
        self.last = -DRAW_SECONDS
        self.handle: Any = None

    def start(self, what: str, total: float | None) -> None:
        from IPython import display

        show: Any = display.display
        self.what, self.total = what, total
        self.handle = show(self._drawn(0.0, ""), raw=True, display_id=True)

    def update(self, done: float, numbers: str) -> None:
        now = self.clock()
        if now - self.last < DRAW_SECONDS:
            return
        self.last = now
        self.handle.update(self._drawn(done, numbers), raw=True)

    def stop(self) -> None:
        self.handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def _drawn(self, done: float, numbers: str) -> dict[str, str]:
        bar = "<progress></progress>"
        share = ""
        if self.total:
            bar = f'<progress value="{done:g}" max="{self.total:g}"></progress>'
            share = f"{min(done / self.total, 1.0):.0%}".replace("%", " %")
        said = " ".join(part for part in (share, numbers) if part)
        return {
            "text/html": f"<div>{html.escape(self.what)} {bar} {html.escape(said)}</div>",
            "text/plain": f"{self.what} {said}".rstrip(),
        }


def _duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
