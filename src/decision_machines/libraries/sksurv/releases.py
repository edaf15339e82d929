"""Which releases of scikit-survival the tests run against."""

from ..releases import Releases

RELEASES = Releases("scikit-survival", oldest="0.24", newest="0.28")
