"""Which releases of CatBoost the tests run against, and which one a model comes from."""

from __future__ import annotations

import re
from typing import Any

from ..releases import Releases

RELEASES = Releases("CatBoost", oldest="1.2.8", newest="1.2.10")


def release_of(info: Any) -> str:
    """The release that the notes of a model name; empty where they name none.

    Examples
    --------
    >>> release_of({"catboost_version_info": "Git info: Commit: b1bd Branch: tags/v1.2.10"})
    '1.2.10'
    """
    found = re.search(r"tags/v([0-9.]+[0-9])", str(info.get("catboost_version_info", "")))
    return found[1] if found else ""
