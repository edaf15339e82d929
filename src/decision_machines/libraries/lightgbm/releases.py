"""Which releases of LightGBM the tests run against."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("LightGBM", oldest="4.6", newest="4.7")
