"""Whether the workers of a cluster go on, seen by the files that they write."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..errors import InputError, TimedOutError

if TYPE_CHECKING:
    from .records import Records

LOOK_SECONDS = 0.5
"""Between two looks."""


class Signs:
    """When a file was last finished or grew, and whether that is too long ago.

    Parameters
    ----------
    timeout
        Seconds without a sign after which `look` gives up; None never does.
    cluster
        What it is called in messages.
    """

    def __init__(self, records: Records, timeout: float | None, cluster: str) -> None:
        if timeout is not None and not timeout > 0:
            raise InputError(
                f"scoring with {cluster}", f"timeout={timeout!r}", "use seconds above 0, or None"
            )
        self.records, self.timeout, self.cluster = records, timeout, cluster
        self.last = time.monotonic()
        self.sizes: dict[str, int] = {}

    @property
    def are_missing(self) -> bool:
        return self.timeout is not None and time.monotonic() - self.last > self.timeout

    def look(self, is_done: bool, waiting: list[str]) -> None:
        """Note what there is to see; raise `TimedOutError` where it is nothing for too long."""
        sizes = self.sizes if is_done else self.records.sizes()
        if is_done or sizes != self.sizes:
            self.last, self.sizes = time.monotonic(), sizes
        elif self.are_missing:
            raise timed_out(self.cluster, waiting, self.timeout)


def timed_out(cluster: str, paths: list[str], timeout: float | None) -> TimedOutError:
    """The error that names what was waited for."""
    more = f" and {len(paths) - 1} more files" if len(paths) > 1 else ""
    return TimedOutError(
        f"scoring with {cluster}",
        f"no worker has reported any progress for {timeout:g} s; {min(paths)}{more} are not done",
        "look into the workers' logs and run again, which goes on with these files; a longer "
        "timeout=, or timeout=None, waits longer",
    )
