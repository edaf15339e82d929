"""Which releases of XGBoost the tests run against."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("XGBoost", oldest="3.2", newest="3.4")
