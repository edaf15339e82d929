"""Which releases of a library are tested, and what is said where a model comes from a newer one."""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass

from ..errors import UnsupportedModelError, UntestedReleaseWarning


@dataclass(frozen=True)
class Releases:
    """The releases of one library that the tests run against, the oldest and the newest.

    Examples
    --------
    >>> known = Releases("XGBoost", "2.0", "3.4")
    >>> known.is_newer("3.4.1"), known.is_newer("3.5.0"), known.is_newer("4")
    (False, True, True)
    """

    library: str
    """What people call the library."""
    oldest: str
    newest: str
    """As many numbers as matter: "3.4" stands for all of 3.4.0, 3.4.1 and so on."""

    def is_newer(self, release: str) -> bool:
        """Whether a release is newer than all that are tested; unreadable ones are not."""
        newest, found = numbers_of(self.newest), numbers_of(release)
        return found[: len(newest)] > newest

    def refuse_older(self, release: str, doing: str) -> None:
        """Refuse a model of a release older than all that are tested, which answers otherwise."""
        if numbers_of(release) < numbers_of(self.oldest):
            raise UnsupportedModelError(
                doing,
                f"{self.library} {release} is installed; before {self.oldest} it answers otherwise",
                f"install {self.library} {self.oldest} or newer, and fit the model again",
            )

    def note(self, release: str, doing: str) -> None:
        """Warn where a model comes from a release that is newer than all that are tested."""
        if self.is_newer(release):
            warnings.warn(
                f"While {doing}: the model comes from {self.library} {release}; the newest release "
                f"that decision-machines was tested with is {self.newest}. All its fields are "
                "known, but one may have a new meaning. Compare the machine with the library on "
                "your own rows: dm verify MODEL --data ROWS, or dm.certify(machine, model).",
                UntestedReleaseWarning,
                stacklevel=_callers_level(),
            )


def _callers_level() -> int:
    """How far up the stack the first frame outside this package is, for `warnings.warn`."""
    package = __name__.split(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(package):
        level, frame = level + 1, frame.f_back
    return level


def numbers_of(release: str) -> tuple[int, ...]:
    """The numbers at the start of a release.

    Examples
    --------
    >>> numbers_of("1.9.0rc1"), numbers_of("v4"), numbers_of("unknown")
    ((1, 9, 0), (4,), ())
    """
    start = re.match(r"v?(\d{1,9}(?:\.\d{1,9})*)", release)
    return tuple(map(int, start[1].split("."))) if start else ()
