"""SHAP: the trees as `shap.TreeExplainer` takes them, written alone; `write.to_shap`."""

from __future__ import annotations

from ..library import Library


class Shap(Library):
    name = "shap"


LIBRARY = Shap()
