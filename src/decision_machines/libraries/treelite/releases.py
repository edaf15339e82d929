"""The releases of Treelite that the tests run against."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("Treelite", "4.6.1", "4.8")
