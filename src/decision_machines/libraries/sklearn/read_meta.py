"""scikit-learn's models made of models: votes, calibrations, stacks, targets, thresholds.

Each is an `Assembly`: its members are read by `member`, which folds the steps before them, if
there are any, into each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine.assembly import Assembly
from ...run.assemblies import FUNCTIONS
from .fields import check_attributes
from .read_chains import is_boosted_from_a_model, read_boosted_from_a_model, read_chain
from .read_trees import n_features_of, overrides, require_fitted, source_of, without_samplers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine

    Member = Callable[[Any], DecisionMachine | Assembly]


def _refused(model: Any, found: str, remedy: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"reading a {source_of(model)}", found, remedy)


def _scoring_method(model: Any, estimator: Any) -> str:
    """What scikit-learn takes as the score of a classifier."""
    if hasattr(estimator, "decision_function"):
        if _is_assembled(estimator):
            raise _refused(
                model,
                f"it asks a {type(estimator).__name__} inside it for its decision_function",
                "use a member that is a single model or has no decision_function",
            )
        return "decision_function"
    return "predict_proba"


def _is_assembled(estimator: Any) -> bool:
    last = estimator
    while True:
        if hasattr(last, "best_estimator_"):
            last = last.best_estimator_
        elif type(last).__name__ == "Pipeline":
            last = last.steps[-1][1]
        elif type(last).__name__ == "FrozenEstimator":
            last = last.estimator
        else:
            return type(last).__name__ in READERS


def read_voting_classifier(model: Any, member: Member) -> Assembly:
    require_fitted(model, "estimators_")
    rule = "mean of probabilities" if model.voting == "soft" else "majority"
    if isinstance(model.le_, list) if hasattr(model, "le_") else False:
        raise _refused(model, "it has several targets", "convert the members one by one")
    return Assembly(
        rule,
        tuple(member(e) for e in model.estimators_),
        _vote_weights(model),
        classes=model.classes_,
        source=source_of(model),
    )


def read_voting_regressor(model: Any, member: Member) -> Assembly:
    require_fitted(model, "estimators_")
    return Assembly(
        "mean of values",
        tuple(member(e) for e in model.estimators_),
        _vote_weights(model),
        source=source_of(model),
    )


def _vote_weights(model: Any) -> dict[str, np.ndarray]:
    weights = model._weights_not_none
    return {} if weights is None else {"weights": np.asarray(weights)}


def read_calibrated(model: Any, member: Member) -> Assembly:
    require_fitted(model, "calibrated_classifiers_")
    numbers: dict[str, np.ndarray] = {}
    members, methods = [], []
    for i, one in enumerate(model.calibrated_classifiers_):
        place = f"calibrated_classifiers_[{i}]"
        check_attributes(one, f"reading a {source_of(model)}", place)
        members.append(member(one.estimator))
        methods.append(_scoring_method(model, one.estimator))
        classes = np.asarray(one.classes)
        numbers[f"{i}.classes"] = np.searchsorted(classes, one.estimator.classes_)
        for c, calibrator in enumerate(one.calibrators):
            check_attributes(
                calibrator, f"reading a {source_of(model)}", f"{place}.calibrators[{c}]"
            )
            numbers |= _calibrator(model, calibrator, f"{i}.{c}", i)
    return Assembly(
        "calibrated", tuple(members), numbers, {"methods": tuple(methods)}, model.classes_,
        source_of(model),
    )  # fmt: skip


def _calibrator(model: Any, calibrator: Any, name: str, i: int) -> dict[str, np.ndarray]:
    kind = type(calibrator).__name__
    if kind == "_SigmoidCalibration":
        return {f"{name}.sigmoid": np.array([calibrator.a_, calibrator.b_], np.float64)}
    if kind == "IsotonicRegression" and calibrator.out_of_bounds == "clip":
        return {
            f"{name}.x": calibrator.X_thresholds_,
            f"{name}.y": calibrator.y_thresholds_,
            f"{name}.range": np.array(
                [calibrator.X_min_, calibrator.X_max_], calibrator.X_thresholds_.dtype
            ),
        }
    if kind == "_TemperatureScaling":
        return {f"{i}.beta": np.array(calibrator.beta_, np.float64)}
    raise _refused(
        model, f"a calibrator of type {kind}", "calibrate by sigmoid, isotonic or temperature"
    )


def read_threshold(model: Any, member: Member) -> Assembly:
    estimator = getattr(model, "estimator_", model.estimator)
    response = model.response_method
    method = _scoring_method(model, estimator) if response == "auto" else response
    if response == "auto":
        method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    at = getattr(model, "best_threshold_", None)
    if at is None:
        at = model.threshold
    if isinstance(at, str):
        at = 0.5 if method == "predict_proba" else 0.0
    classes = np.asarray(model.classes_)
    label = getattr(model, "pos_label", None)
    if hasattr(model, "_curve_scorer"):
        label = model._curve_scorer._get_pos_label()
    positive = 1 if label is None else int(np.flatnonzero(classes == label)[0])
    return Assembly(
        "threshold",
        (member(estimator),),
        {"threshold": np.array(at, np.float64), "positive": np.array(positive)},
        {"methods": (method,)},
        classes,
        source_of(model),
    )


def read_stacking(model: Any, member: Member) -> Assembly:
    require_fitted(model, "final_estimator_")
    is_classifier = hasattr(model, "classes_")
    methods = [m for m in model.stack_method_ if m is not None]
    estimators = [e for e in model.estimators_ if not isinstance(e, str)]
    for estimator, method in zip(estimators, methods, strict=True):
        if method == "decision_function":
            _scoring_method(model, estimator)
    return Assembly(
        "stacked",
        (*(member(e) for e in estimators), _final(model, model.final_estimator_)),
        {"passthrough": np.array(True)} if model.passthrough else {},
        {"methods": tuple(methods)},
        model.classes_ if is_classifier else None,
        source_of(model),
    )


LINEAR_REGRESSORS = {
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV",
    "BayesianRidge", "HuberRegressor",
}  # fmt: skip


def _final(model: Any, final: Any) -> Any:
    """The model that a stack gives its members' answers to."""
    from .. import convert

    name = type(final).__name__
    if name in LINEAR_REGRESSORS:
        return _linear(final, None, "regression")
    if name in ("LogisticRegression", "LogisticRegressionCV"):
        n_classes = len(final.classes_)
        chosen = getattr(final, "multi_class", "deprecated")
        if n_classes > 2 and (chosen == "ovr" or final.solver == "liblinear"):
            raise _refused(
                model,
                "final_estimator_ is a LogisticRegression of one class against the rest",
                "fit it with the multinomial loss, the default",
            )
        if n_classes == 2 and chosen == "multinomial":
            raise _refused(
                model,
                "final_estimator_ has multi_class = 'multinomial' for two classes",
                "fit it with the default",
            )
        return _linear(final, final.classes_, "softmax" if n_classes > 2 else "logistic")
    return convert(final)


def _linear(final: Any, classes: Any, kind: str) -> Assembly:
    return Assembly(
        "linear",
        (),
        {
            "coef": np.asarray(final.coef_),
            "intercept": np.asarray(final.intercept_),
            # A product with a single row rounds by how the coefficients lie in memory.
            "by_column": np.array(not np.asarray(final.coef_).flags.c_contiguous),
        },
        {"kind": (kind,)},
        classes,
        source_of(final),
    )


def read_one_against_the_rest(model: Any, member: Member) -> Assembly:
    require_fitted(model, "estimators_")
    if model.multilabel_ or any(
        type(e).__name__ == "_ConstantPredictor" for e in model.estimators_
    ):
        raise _refused(
            model,
            "it has several labels for a row, or a class that no model decides",
            "convert its members one by one: model.estimators_",
        )
    return Assembly(
        "one against the rest",
        tuple(member(e) for e in model.estimators_),
        {},
        {"methods": tuple(_scoring_method(model, e) for e in model.estimators_)},
        model.classes_,
        source_of(model),
    )


def read_one_against_one(model: Any, member: Member) -> Assembly:
    require_fitted(model, "estimators_")
    return Assembly(
        "one against one",
        tuple(member(e) for e in model.estimators_),
        {},
        {"methods": tuple(_scoring_method(model, e) for e in model.estimators_)},
        model.classes_,
        source_of(model),
    )


def read_several_targets(model: Any, member: Member) -> Assembly:
    require_fitted(model, "estimators_")
    return Assembly(
        "several targets", tuple(member(e) for e in model.estimators_), source=source_of(model)
    )


def read_transformed_target(model: Any, member: Member) -> Assembly:
    require_fitted(model, "regressor_")
    step = model.transformer_
    name, numbers = _inverse(model, step)
    numbers["vector"] = np.array(model._training_dim == 1)
    return Assembly(
        "inverse of the target",
        (member(model.regressor_),),
        numbers,
        {"function": (name,)},
        source=source_of(model),
    )


def _inverse(model: Any, step: Any) -> tuple[str, dict[str, np.ndarray]]:
    kind = type(step).__name__
    if kind == "FunctionTransformer":
        inverse = step.inverse_func
        if inverse is None:
            return "itself", {}
        name = getattr(inverse, "__name__", "")
        if name in FUNCTIONS and inverse is getattr(np, name):
            return name, {}
        raise _refused(
            model,
            f"inverse_func = {name or inverse!r}, which we do not know",
            f"use one of NumPy's {', '.join(FUNCTIONS)}; or convert model.regressor_ and apply it "
            "to the machine's answers",
        )
    if kind == "StandardScaler" and step.with_mean and step.with_std:
        return "scaled", {"scale": step.scale_, "shift": step.mean_}
    if kind == "RobustScaler" and step.with_centering and step.with_scaling:
        return "scaled", {"scale": step.scale_, "shift": step.center_}
    if kind == "MinMaxScaler":
        return "min to max", {"scale": step.scale_, "shift": step.min_}
    raise _refused(
        model,
        f"its target passes through a {kind}",
        "convert model.regressor_ and pass its answers through "
        "model.transformer_.inverse_transform",
    )


def read_bag_of_models(model: Any, member: Member) -> Assembly:
    """A bag whose members are not single trees."""
    require_fitted(model, "estimators_")
    every = np.arange(n_features_of(model))
    if any(not np.array_equal(f, every) for f in model.estimators_features_):
        raise _refused(
            model,
            "its members see different features",
            "fit it with max_features=1.0 and bootstrap_features=False, or with single trees",
        )
    n = model.n_estimators
    estimators = list(model.estimators_)[:n]
    read = []
    for i, estimator in enumerate(estimators):
        try:
            read.append(member(estimator))
        except UnsupportedModelError as error:
            found = f"its estimators_[{i}], a {type(estimator).__name__}: {error.found}"
            raise _refused(model, found, error.remedy) from error
    members = tuple(read)
    if not hasattr(model, "classes_"):
        return Assembly("sum of values", members, source=source_of(model))
    if not all(hasattr(e, "predict_proba") for e in estimators):
        raise _refused(model, "members without predict_proba", "convert its members one by one")
    k = len(model.classes_)
    seen = [
        "all" if len(e.classes_) == k else " ".join(map(str, np.asarray(e.classes_).tolist()))
        for e in estimators
    ]
    return Assembly(
        "sum of probabilities", members, {}, {"classes of members": tuple(seen)},
        model.classes_, source_of(model),
    )  # fmt: skip


def read_frozen(model: Any, member: Member) -> Any:
    return member(model.estimator)


READERS: dict[str, Callable[[Any, Member], Any]] = {
    "VotingClassifier": read_voting_classifier,
    "VotingRegressor": read_voting_regressor,
    "CalibratedClassifierCV": read_calibrated,
    "FixedThresholdClassifier": read_threshold,
    "TunedThresholdClassifierCV": read_threshold,
    "StackingClassifier": read_stacking,
    "StackingRegressor": read_stacking,
    "OneVsRestClassifier": read_one_against_the_rest,
    "OneVsOneClassifier": read_one_against_one,
    "MultiOutputClassifier": read_several_targets,
    "MultiOutputRegressor": read_several_targets,
    "TransformedTargetRegressor": read_transformed_target,
    "FrozenEstimator": read_frozen,
    "ClassifierChain": read_chain,
    "RegressorChain": read_chain,
}
"""The class of a model made of models → its reader."""


def is_bag_of_models(model: Any) -> bool:
    """Whether a bag's members are other than single trees."""
    names = {c.__name__ for c in type(model).__mro__ if c.__module__.startswith("sklearn.")}
    return not names.isdisjoint(("BaggingClassifier", "BaggingRegressor")) and any(
        not hasattr(without_samplers(e), "tree_") for e in getattr(model, "estimators_", ())
    )


def reader_of(model: Any) -> Callable[[Any, Member], Any] | None:
    """The reader of a model made of models; None for any other."""
    found: Callable[[Any, Member], Any] | None
    found = read_bag_of_models if is_bag_of_models(model) else None
    if is_boosted_from_a_model(model):
        found = read_boosted_from_a_model
    for cls in type(model).__mro__:
        if found is None and cls.__module__.split(".")[0] == "sklearn":
            found = READERS.get(cls.__name__)
    own = overrides(model) if found is not None else None
    if own is not None:
        raise _refused(
            model, f"a subclass of scikit-learn's with a {own} of its own", "convert a plain one"
        )
    if found is not None:
        check_attributes(model, f"reading a {source_of(model)}")
    return found
