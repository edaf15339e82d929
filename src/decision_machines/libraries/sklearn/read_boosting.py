"""scikit-learn's boosted trees: GradientBoosting and AdaBoost.

GradientBoosting starts a float64 sum at the raw prediction of `init_` and adds learning_rate ·
value, rounded once before the addition, stage by stage and class by class. NaN is refused by
scikit-learn at the door; behind it every test sends NaN right, whatever its node says: so do we.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from ...machine import DecisionMachine, Output
from .fields import check_attributes
from .read_trees import (
    assemble,
    columns_of,
    member_trees,
    n_features_of,
    require_fitted,
    source_of,
    values_of,
)

REGRESSION_LOSSES = ("squared_error", "absolute_error", "huber", "quantile")
CLASSIFICATION_SLOPES = {"log_loss": 1.0, "exponential": 2.0}
"""Two classes: the probability is expit(slope · margin)."""


def read_gradient_boosting(model: Any) -> DecisionMachine:
    """The machine of a GradientBoostingClassifier or GradientBoostingRegressor."""
    require_fitted(model, "estimators_")
    return read_stages(model, _initial(model, model.estimators_.shape[1]))


def read_stages(model: Any, base: np.ndarray | None = None) -> DecisionMachine:
    """The machine of the stages alone, whose sum starts at `base`, or at 0."""
    stages = model.estimators_
    trees = member_trees(model, stages.ravel().tolist(), "regressor")
    k = stages.shape[1]
    scale = np.float64(model.learning_rate)
    return assemble(
        trees,
        lambda i, nodes: scale * values_of(trees[i], nodes, None),
        columns_of(model),
        _boosting_output(model, np.zeros(k) if base is None else base),
        source_of(model),
        feeds=np.tile(np.arange(k), len(stages)),
        nan_goes_right=True,
    )


LOSS_CLASSES = {
    "squared_error": ("HalfSquaredError",),
    "absolute_error": ("AbsoluteError",),
    "huber": ("HuberLoss",),
    "quantile": ("PinballLoss",),
    "log_loss": ("HalfBinomialLoss", "HalfMultinomialLoss"),
    "exponential": ("ExponentialLoss",),
}
"""What `_loss`, which predicts, must be for each `loss`."""


def _check_loss(model: Any) -> None:
    """`loss` is a parameter, which a user may change after the fit; `_loss` is what predicts."""
    cls = type(getattr(model, "_loss", None))
    wanted = LOSS_CLASSES.get(model.loss, ())
    if wanted and (cls.__name__ not in wanted or not cls.__module__.startswith("sklearn._loss")):
        raise UnsupportedModelError(
            f"reading a {source_of(model)}",
            f"loss = {model.loss!r} where _loss is {cls.__module__}.{cls.__qualname__}: it was "
            "fitted with another loss, or before scikit-learn 1.4",
            "fit it again with scikit-learn 1.4 or newer",
        )
    check_attributes(model._loss, f"reading a {source_of(model)}", "_loss")


def _boosting_output(model: Any, base: np.ndarray) -> Output:
    _check_loss(model)
    if not hasattr(model, "classes_"):
        if model.loss not in REGRESSION_LOSSES:
            raise _unknown_loss(model, REGRESSION_LOSSES)
        return Output(base)
    if model.loss not in CLASSIFICATION_SLOPES:
        raise _unknown_loss(model, tuple(CLASSIFICATION_SLOPES))
    classes = (model.classes_,)
    if len(base) > 1:
        return Output(base, link="softmax", decision="argmax_margin", classes=classes)
    return Output(
        base,
        link="expit",
        link_params=(CLASSIFICATION_SLOPES[model.loss],),
        decision="margin_at_least",
        decision_params=(0.0,),
        classes=classes,
    )


def _unknown_loss(model: Any, known: tuple[str, ...]) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"reading a {source_of(model)}",
        f"loss = {model.loss!r}, whose link we do not know",
        f"fit the model with one of {', '.join(known)}",
    )


CONSTANT = {
    "DummyRegressor": ("mean", "median", "quantile", "constant"),
    "DummyClassifier": ("prior", "most_frequent", "constant", "uniform"),
}
"""The estimators, and their strategies, whose raw prediction is the same for every row."""


def _initial(model: Any, k: int) -> np.ndarray:
    """(k,) the raw prediction before the first stage."""
    init = model.init_
    if isinstance(init, str) and init == "zero":
        return np.zeros(k)
    name = type(init).__name__
    check_attributes(init, f"reading a {source_of(model)}", "init_")
    is_dummy = type(init).__module__ == "sklearn.dummy" and name in CONSTANT
    if not is_dummy or init.strategy not in CONSTANT[name]:
        strategy = f" with strategy = {init.strategy!r}" if is_dummy else ""
        raise UnsupportedModelError(
            f"reading a {source_of(model)}",
            f"init = {name}{strategy}: the sum starts at a prediction that changes from row to row",
            "fit with init=None or init='zero', or add the two yourself: fit the boosted trees on "
            "the residuals of the initial estimator",
        )
    if hasattr(model, "classes_") and init.n_classes_ != len(model.classes_):
        raise ModelFormatError(
            f"reading a {source_of(model)}",
            f"init_ has {init.n_classes_} classes and the model {len(model.classes_)}",
            "check that the model file is whole and unedited",
        )
    if init.n_outputs_ != 1:  # which scikit-learn would allocate
        raise ModelFormatError(
            f"reading a {source_of(model)}",
            f"init_ has {init.n_outputs_!r:.40} outputs, and boosting has one",
            "check that the model file is whole and unedited",
        )
    n = n_features_of(model)
    # Two rows, because one row of many classes is laid out (and so may be summed) in another way.
    return np.array(model._raw_predict_init(np.zeros((2, n), np.float32))[0])


def read_adaboost_classifier(model: Any) -> DecisionMachine:
    """SAMME: a tree gives its weight to the label it answers and takes it, shared, from the others.

    With two classes the two sums are each other's negative at every step, so one is enough:
    `decision_function` is their difference, twice the one.
    """
    require_fitted(model, "estimators_")
    if getattr(model, "algorithm", "SAMME") not in ("SAMME", "deprecated"):
        raise UnsupportedModelError(
            f"reading a {source_of(model)}",
            f"algorithm = {model.algorithm!r}",
            "fit the model with algorithm='SAMME'",
        )
    members = list(model.estimators_)
    trees = member_trees(model, members, "classifier")
    weights, classes = model.estimator_weights_, np.asarray(model.classes_)
    k = len(classes)

    def values(i: int, nodes: np.ndarray) -> np.ndarray:
        w = weights[i]
        share = values_of(trees[i], nodes, [len(members[i].classes_)])
        label = np.asarray(members[i].classes_)[np.argmax(share, axis=1)]
        if k == 1:
            return np.zeros((len(nodes), 1))
        given = np.where(label[:, None] == classes, w, -1 / (k - 1) * w)
        found: np.ndarray = given[:, 1:] if k == 2 else given
        return found

    if k == 1:
        output = Output(np.zeros(1), link="softmax", decision="argmax", classes=(classes,))
    elif k == 2:
        output = Output(
            np.zeros(1),
            divisor=float(weights.sum()),
            scale=2.0,
            link="samme",
            decision="margin_above",
            decision_params=(0.0,),
            classes=(classes,),
        )
    else:
        output = Output(
            np.zeros(k),
            divisor=float(weights.sum()),
            link="samme",
            decision="argmax_margin",
            classes=(classes,),
        )
    return assemble(trees, values, columns_of(model), output, source_of(model))


def read_adaboost_regressor(model: Any) -> DecisionMachine:
    """The weighted median of the trees' values."""
    require_fitted(model, "estimators_")
    trees = member_trees(model, list(model.estimators_), "regressor")
    return assemble(
        trees,
        lambda i, nodes: values_of(trees[i], nodes, None),
        columns_of(model),
        Output(
            np.zeros(1),
            aggregate="median",
            weights=np.asarray(model.estimator_weights_, np.float64)[: len(trees)],
        ),
        source_of(model),
        feeds=np.zeros(len(trees), np.int32),
    )
