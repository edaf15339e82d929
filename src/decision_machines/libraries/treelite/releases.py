"""The releases of Treelite that the tests run against."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("Treelite", "4.3", "4.8")
