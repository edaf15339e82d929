"""The releases of InterpretML that the tests run against."""

from __future__ import annotations

from ..releases import Releases

RELEASES = Releases("InterpretML", "0.7.7", "0.7")
