"""Which releases of imbalanced-learn the tests run against."""

from ..releases import Releases

RELEASES = Releases("imbalanced-learn", oldest="0.14", newest="0.14")
