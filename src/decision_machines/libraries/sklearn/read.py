"""scikit-learn's tree models: which reader reads which class, and what is left to the user.

A search that has found its best estimator is read as that estimator; the steps of a pipeline are
folded into the machine of its last step. Classes that answer with something other than a sum of
trees are refused, with what to do instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import InputError, UnsupportedModelError
from .. import convert
from .fields import check_attributes
from .pipelines.read import read_pipeline
from .read_bagging import read_bagging_classifier, read_bagging_regressor, read_isolation_forest
from .read_boosting import read_adaboost_classifier, read_adaboost_regressor, read_gradient_boosting
from .read_hist import read_hist_gradient_boosting
from .read_meta import reader_of
from .read_trees import overrides, read_forest, read_tree, source_of
from .releases import note_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ...machine import Assembly, DecisionMachine


def read_sklearn(
    model: Any, X: Any = None, monotone: Collection[Any] = ()
) -> DecisionMachine | Assembly:
    """The machine of a fitted scikit-learn model; see `dm.convert`."""
    reader = reader_of(model)
    if reader is not None:
        read: DecisionMachine | Assembly = reader(
            model, lambda member: convert(member, X, monotone=monotone)
        )
        return read
    for cls in type(model).__mro__:
        if cls.__module__.split(".")[0] != "sklearn":
            continue
        if cls.__name__ in STEPS_READERS:
            return STEPS_READERS[cls.__name__](model, X, monotone)
        if cls.__name__ in READERS:
            _refuse_overrides(model, cls)
            check_attributes(model, f"reading a {source_of(model)}")
            note_installed(f"reading a {source_of(model)}")
            return READERS[cls.__name__](model)
        if cls.__name__ in INSTEAD:
            raise UnsupportedModelError(f"reading a {source_of(model)}", *INSTEAD[cls.__name__])
    raise UnsupportedModelError(
        f"reading a {source_of(model)}",
        "it is not one of the tree models we read",
        f"convert one of {', '.join(sorted(READERS))}",
    )


def _refuse_overrides(model: Any, cls: type) -> None:
    name = overrides(model)
    if name is not None:
        raise UnsupportedModelError(
            f"reading a {type(model).__name__}, a subclass of scikit-learn's {cls.__name__}",
            f"it has a {name} of its own",
            f"convert a plain {cls.__name__}, or do what {name} does to the machine's answers",
        )


def _read_search(model: Any, X: Any, monotone: Collection[Any]) -> DecisionMachine | Assembly:
    if not hasattr(model, "best_estimator_"):
        raise InputError(
            f"reading a {source_of(model)}",
            "it has no best_estimator_: it is not fitted, or was made with refit=False",
            "fit it with refit=True, or convert the estimator you chose",
        )
    return convert(model.best_estimator_, X, monotone=monotone)


READERS: dict[str, Callable[[Any], DecisionMachine]] = {
    "DecisionTreeClassifier": read_tree,
    "DecisionTreeRegressor": read_tree,
    "RandomForestClassifier": read_forest,
    "RandomForestRegressor": read_forest,
    "ExtraTreesClassifier": read_forest,
    "ExtraTreesRegressor": read_forest,
    "GradientBoostingClassifier": read_gradient_boosting,
    "GradientBoostingRegressor": read_gradient_boosting,
    "HistGradientBoostingClassifier": read_hist_gradient_boosting,
    "HistGradientBoostingRegressor": read_hist_gradient_boosting,
    "AdaBoostClassifier": read_adaboost_classifier,
    "AdaBoostRegressor": read_adaboost_regressor,
    "BaggingClassifier": read_bagging_classifier,
    "BaggingRegressor": read_bagging_regressor,
    "IsolationForest": read_isolation_forest,
}
"""The class of a model, or the nearest class that it inherits from → its reader."""
STEPS_READERS: dict[str, Callable[[Any, Any, Collection[Any]], DecisionMachine | Assembly]] = {
    "Pipeline": read_pipeline,
    "BaseSearchCV": _read_search,
}
"""What may have steps before its model, and is told of them what `dm.convert` is told."""

_MEMBERS = (
    "it combines the answers of models that need not be trees",
    "convert the members, [dm.convert(m) for m in model.estimators_], and combine their answers",
)
INSTEAD: dict[str, tuple[str, str]] = {
    "RandomTreesEmbedding": (
        "it answers with leaves, one-hot, and not with values",
        "read its trees one by one, dm.convert(model.estimators_[i]), and use machine.apply",
    ),
    "OutputCodeClassifier": _MEMBERS,
}
"""Classes that are refused: what was found, what to do."""
