"""Which releases of scikit-learn the tests run against."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("scikit-learn", oldest="1.6", newest="1.9")
