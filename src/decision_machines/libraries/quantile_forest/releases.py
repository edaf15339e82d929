"""Which releases of quantile-forest the tests run against."""

from ..releases import Releases

RELEASES = Releases("quantile-forest", oldest="1.4", newest="1.4")
