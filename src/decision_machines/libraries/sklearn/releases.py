"""Which releases of scikit-learn the tests run against, and which one a model comes from."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from ..releases import Releases

RELEASES = Releases("scikit-learn", oldest="1.6.1", newest="1.9")


def note_installed(doing: str) -> None:
    """Warn where the installed release, which made or took over a model, is newer than tested."""
    import sklearn

    RELEASES.note(sklearn.__version__, doing)


@contextlib.contextmanager
def noting_releases(doing: str) -> Iterator[None]:
    """Warn of the release that wrote a file, which scikit-learn names only while it reads it.

    All warnings go on to the caller as they are.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    written: set[str] = set()
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        found = getattr(warning.message, "original_sklearn_version", None)
        if isinstance(found, str):
            written.add(found)
    for release in sorted(written):
        RELEASES.note(release, doing)
