"""The releases of Spark whose folders the tests read."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("Spark", "3.5", "4.3")
