"""scikit-learn's models whose members feed each other: chains, and boosting from a model."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import DecisionMachine
from ...machine.assembly import Assembly
from .read_boosting import CONSTANT, read_stages
from .read_trees import require_fitted, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Member = Callable[[Any], DecisionMachine | Assembly]


def read_chain(model: Any, member: Member) -> Assembly:
    """A chain: every member reads the features and what the members before it answered."""
    require_fitted(model, "estimators_")
    method = getattr(model, "chain_method_", "predict")
    is_classifier = hasattr(model, "classes_")
    for i, estimator in enumerate(model.estimators_):
        labels = np.asarray(getattr(estimator, "classes_", [0, 1]))
        if len(labels) != 2 or labels.dtype.kind not in "biuf":
            raise UnsupportedModelError(
                f"reading a {source_of(model)}",
                f"estimators_[{i}] chooses among {labels.tolist()!r:.60}",
                "fit it to targets of two classes that are numbers",
            )
    members = [member(estimator) for estimator in model.estimators_]
    members[0] = _named(members[0], model)
    return Assembly(
        "chain",
        tuple(members),
        {"order": np.asarray(model.order_)},
        {"methods": (method,) * len(members), "kind": ("classes" if is_classifier else "values",)},
        source=source_of(model),
    )


def _named(read: DecisionMachine | Assembly, model: Any) -> DecisionMachine | Assembly:
    """What was read, with the names that the whole model knows: members are given arrays."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return read
    if isinstance(read, Assembly):
        return replace(read, members=tuple(_named(one, model) for one in read.members))
    if read.columns.names is not None or read.n_features != len(names):
        return read
    return replace(read, columns=replace(read.columns, names=tuple(names)))


def is_boosted_from_a_model(model: Any) -> bool:
    """Whether boosted trees start at the predictions of a model that is no constant."""
    names = {c.__name__ for c in type(model).__mro__ if c.__module__.startswith("sklearn.")}
    init = getattr(model, "init_", None)
    return (
        "BaseGradientBoosting" in names
        and init is not None
        and not isinstance(init, str)
        and type(init).__name__ not in CONSTANT
    )


def read_boosted_from_a_model(model: Any, member: Member) -> Assembly:
    """Gradient boosting with an `init` of its own: the sum of a row starts at what it answers."""
    doing = f"reading a {source_of(model)}"
    try:
        init = _named(member(model.init_), model)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            doing,
            f"init = {type(model.init_).__name__}, where the sum starts: {error.found}",
            "fit with init=None or init='zero', or start from trees or forests of scikit-learn",
        ) from error
    machines = init.machines if isinstance(init, Assembly) else (init,)
    if any(machine.columns.dtype != np.float32 for machine in machines):
        raise UnsupportedModelError(
            doing,
            f"its init, a {type(model.init_).__name__}, compares numbers that are not rounded to "
            "float32, and is given numbers that are",
            "start from trees or forests of scikit-learn, or convert both and add their answers",
        )
    stages = read_stages(model)
    if not isinstance(stages, DecisionMachine):
        raise AssertionError("stages are one machine")
    link = type(model._loss.link).__name__
    if link not in ("IdentityLink", "LogitLink", "HalfLogitLink", "MultinomialLogit"):
        raise UnsupportedModelError(doing, f"a loss with the link {link}", "fit it with another")
    return Assembly(
        "boosted from a model",
        (init, stages),
        {"least": np.array(_least_probability())},
        {"link": (link,)},
        getattr(model, "classes_", None),
        source_of(model),
    )


def _least_probability() -> float:
    """How near to 0 and 1 the installed scikit-learn lets the probabilities of an `init` come."""
    from sklearn.ensemble._gb import _init_raw_predictions

    sure = SimpleNamespace(predict_proba=lambda X: np.array([[1.0, 0.0]]))
    loss = SimpleNamespace(is_multiclass=False, link=SimpleNamespace(link=lambda p: p))
    return float(_init_raw_predictions(np.zeros((1, 1)), sure, loss, True)[0, 0])
