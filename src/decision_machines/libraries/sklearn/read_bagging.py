"""scikit-learn's bags of trees: Bagging and IsolationForest.

Every tree may see a part of the features. A bag sums its members' answers in float64, in order, and
divides by `n_estimators`; an isolation forest sums the depths at which its trees isolate a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ModelFormatError
from ...machine import DecisionMachine, Output
from .fields import check_attributes
from .read_trees import (
    assemble,
    columns_of,
    member_trees,
    require_fitted,
    source_of,
    values_of,
    without_samplers,
)


def read_bagging_classifier(model: Any) -> DecisionMachine:
    """The mean of the trees' probabilities; a class that a tree never saw has none."""
    require_fitted(model, "estimators_")
    members, features = _members(model)
    trees = member_trees(model, members, "classifier")
    k = len(model.classes_)

    def values(i: int, nodes: np.ndarray) -> np.ndarray:
        seen = np.asarray(members[i].classes_)
        found = values_of(trees[i], nodes, [len(seen)])
        if len(seen) == k:
            return found
        if len(seen) and not (seen.min() >= 0 and seen.max() < k):
            raise ModelFormatError(
                f"reading a {source_of(model)}",
                f"estimators_[{i}] answers with the classes {seen.tolist()} of {k}",
                "check that the model file is whole and unedited",
            )
        wide = np.zeros((len(nodes), k))
        wide[:, seen] = found
        return wide

    output = Output(
        np.zeros(k),
        divisor=float(model.n_estimators),
        decision="argmax",
        classes=(model.classes_,),
    )
    return assemble(trees, values, columns_of(model), output, source_of(model), features=features)


def read_bagging_regressor(model: Any) -> DecisionMachine:
    """The mean of the trees' values."""
    require_fitted(model, "estimators_")
    members, features = _members(model)
    trees = member_trees(model, members, "regressor")
    k = members[0].n_outputs_ if members else 1
    return assemble(
        trees,
        lambda i, nodes: values_of(trees[i], nodes, None),
        columns_of(model),
        Output(np.zeros(k), divisor=float(model.n_estimators)),
        source_of(model),
        features=features,
    )


def _members(model: Any) -> tuple[list[Any], list[np.ndarray]]:
    # A bag asks its first n_estimators members, should n_estimators have been set after the fit.
    n = model.n_estimators
    for i, estimator in enumerate(model.estimators_[:n]):
        check_attributes(estimator, f"reading a {source_of(model)}", f"estimators_[{i}]")
    members = [without_samplers(estimator) for estimator in model.estimators_[:n]]
    return members, [np.asarray(f) for f in model.estimators_features_][:n]


def read_isolation_forest(model: Any) -> DecisionMachine:
    """The margin is the mean depth over the depth expected, the response `score_samples`.

    `predict` answers -1 where `score_samples` is below `offset_`, else +1.
    """
    require_fitted(model, "estimators_")
    trees = member_trees(model, model.estimators_, "regressor")
    expected = len(trees) * _average_depth(model._max_samples)
    depths, rest = model._decision_path_lengths, model._average_path_length_per_tree
    has_all_features = model._max_features == model.n_features_in_
    # One training sample tells nothing: scikit-learn then takes the ratio to be 1.
    is_empty = expected == 0
    output = Output(
        np.ones(1) if is_empty else np.zeros(1),
        divisor=1.0 if is_empty else expected,
        link="isolation",
        decision="inlier",
        decision_params=(float(model.offset_),),
    )
    return assemble(
        trees,
        lambda i, nodes: (
            np.zeros((len(nodes), 1))
            if is_empty
            else (np.asarray(depths[i])[nodes] + np.asarray(rest[i])[nodes] - 1.0)[:, None]
        ),
        columns_of(model),
        output,
        source_of(model),
        features=None
        if has_all_features
        else [np.asarray(features) for features in model.estimators_features_],
    )


def _average_depth(n: int) -> float:
    """The mean depth at which a random tree isolates one of n samples."""
    if n <= 2:
        return float(max(n, 1) - 1)
    m = np.array([float(n)])
    return float((2.0 * (np.log(m - 1.0) + np.euler_gamma) - 2.0 * (m - 1.0) / m)[0])
