"""The releases of YDF that the tests run against."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("YDF", "0.16", "0.16")
