"""quantile-forest's forests: the machine of their trees, and the targets in every leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from ...machine import Assembly, Output
from ..fields import Fields
from ..sklearn.fields import ATTRIBUTES, STATISTIC, TRAINING, check_attributes, check_known
from ..sklearn.read_trees import assemble, columns_of, require_fitted, source_of, values_of
from .releases import RELEASES

CLASSES = ("RandomForestQuantileRegressor", "ExtraTreesQuantileRegressor")
ATTRIBUTES_OWN = Fields(
    {
        **ATTRIBUTES["RandomForestRegressor"].read,
        **dict.fromkeys(("forest_", "default_quantiles", "max_samples_leaf", "monotonic_cst")),
    },
    {
        **ATTRIBUTES["RandomForestRegressor"].idle,
        "sample_weight_": TRAINING,
        "bootstrap": TRAINING,
        **dict.fromkeys(
            ("X_train_hash_", "n_train_samples_", "sorter_", "unsampled_indices_"), STATISTIC
        ),
    },
)


def read_quantile_forest(model: Any) -> Assembly:
    """The assembly of a fitted forest of quantile-forest."""
    _check_class(model)
    require_fitted(model, "forest_")
    doing = f"reading a {source_of(model)}"
    import quantile_forest

    RELEASES.note(quantile_forest.__version__, doing)
    estimators = list(model.estimators_)
    if len(estimators) != model.n_estimators:
        raise UnsupportedModelError(
            doing,
            f"n_estimators = {model.n_estimators} where {len(estimators)} trees were fitted",
            f"set n_estimators={len(estimators)}, or fit it again",
        )
    for i, estimator in enumerate(estimators):
        check_attributes(estimator, doing, f"estimators_[{i}]")
    trees = [estimator.tree_ for estimator in estimators]
    reached: list[np.ndarray] = []

    def values(i: int, nodes: np.ndarray) -> np.ndarray:
        reached.append(nodes)
        return values_of(trees[i], nodes, None)

    machine = assemble(
        trees,
        values,
        columns_of(model),
        Output(np.zeros(model.n_outputs_), divisor=float(len(trees))),
        source_of(model),
    )
    return Assembly(
        "quantiles of leaves",
        (machine,),
        {"defaults": _defaults(model), **_targets(model, reached, doing)},
        source=source_of(model),
    )


def _check_class(model: Any) -> None:
    cls = next((c for c in type(model).__mro__ if c.__name__ in CLASSES), None)
    doing = f"reading a {source_of(model)}"
    if cls is None:
        raise UnsupportedModelError(
            doing, "it is not one of the forests we read", f"convert one of {', '.join(CLASSES)}"
        )
    for name in ("predict", "apply"):
        owner = next(c for c in type(model).__mro__ if name in vars(c))
        if owner.__module__.split(".")[0] not in ("quantile_forest", "sklearn"):
            raise UnsupportedModelError(
                doing, f"it has a {name} of its own", f"convert a plain {cls.__name__}"
            )
    check_known(model, cls, ATTRIBUTES_OWN, doing)


def _defaults(model: Any) -> np.ndarray:
    """The quantiles that `predict` gives by itself; none for the mean."""
    chosen = model.default_quantiles
    if chosen is None or chosen in ("mean", ["mean"]):
        return np.empty(0)
    return np.atleast_1d(np.asarray(chosen, np.float64))


def _targets(model: Any, reached: list[np.ndarray], doing: str) -> dict[str, np.ndarray]:
    """The sorted targets, and the places of those in every leaf, leaf after leaf."""
    forest = model.forest_
    held = np.asarray(forest.y_train_leaves)
    # (leaves, targets, most in a leaf): places from 1, 0 where there are no more.
    leaves = np.concatenate([held[i, nodes] for i, nodes in enumerate(reached)])
    is_there = leaves != 0
    size = is_there.sum(axis=2)
    if np.any(size == 0) or np.any(size != size[:, :1]):
        raise ModelFormatError(
            doing,
            "a leaf without training rows, or with more of them for one target than for another",
            "check that the model is whole and unedited",
        )
    numbers = {
        "targets": np.asarray(forest.y_train, np.float64),
        "starts": np.concatenate([[0], np.cumsum(size[:, 0])]),
        "places": np.stack([leaves[:, k][is_there[:, k]] - 1 for k in range(leaves.shape[1])]),
        "one_each": np.array(model.max_samples_leaf == 1),
    }
    if model.monotonic_cst is not None:
        bounds = np.asarray(forest.y_bound_leaves)
        numbers["bounds"] = np.concatenate([bounds[i, n] for i, n in enumerate(reached)])
    return numbers
