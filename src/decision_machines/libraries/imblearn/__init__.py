"""imbalanced-learn: its forests, bags and boosts, and pipelines with samplers in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..sklearn import ScikitLearn
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...machine import Assembly, DecisionMachine
    from ..library import Format


class ImbalancedLearn(ScikitLearn):
    """Samplers choose rows for training and do nothing afterwards: what is left is scikit-learn."""

    name = package = "imblearn"
    releases = RELEASES

    def formats(self) -> tuple[Format, ...]:
        return ()

    def read(self, model: Any) -> DecisionMachine | Assembly:
        return self.read_with(model, None, ())

    def read_with(
        self, model: Any, X: Any, monotone: Collection[Any]
    ) -> DecisionMachine | Assembly:
        import imblearn

        from ..sklearn.read import read_sklearn
        from ..sklearn.read_trees import source_of
        from .fields import check_own_attributes

        check_own_attributes(model)
        RELEASES.note(imblearn.__version__, f"reading a {source_of(model)}")
        return read_sklearn(model, X, monotone)


LIBRARY = ImbalancedLearn()
