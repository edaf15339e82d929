"""Which releases of NGBoost the tests run against."""

from ..releases import Releases

RELEASES = Releases("NGBoost", oldest="0.5.8", newest="0.5")
