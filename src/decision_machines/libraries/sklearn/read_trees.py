"""scikit-learn's `Tree` as a machine: single trees and forests.

X is cast to float32, thresholds are float64, x ≤ t goes left, NaN goes where the node says. A
forest sums its trees' values in float64, in order, and divides by their number. (With `n_jobs`
above 1 scikit-learn adds in whatever order its threads finish; we add in the order of the trees.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, ModelFormatError, UnsupportedModelError
from ...machine import Columns, DecisionMachine, Output, Trees, layout, stored_cover
from ..thresholds import at_most
from .fields import NODES, check_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_FEATURES = 2**24
SHARES_ADD_UP_TO_1 = 1e-6
"""Within this; rounding is far below it."""


def read_tree(model: Any) -> DecisionMachine:
    """The machine of a DecisionTree or ExtraTree, classifier or regressor."""
    require_fitted(model, "tree_")
    return _read_trees(model, [model.tree_], divisor=1.0)


def read_forest(model: Any) -> DecisionMachine:
    """The machine of a RandomForest or ExtraTrees, classifier or regressor.

    Paper: cites `breiman2001random`.
    """
    require_fitted(model, "estimators_")
    for i, estimator in enumerate(model.estimators_):
        check_attributes(estimator, f"reading a {source_of(model)}", f"estimators_[{i}]")
    trees = [estimator.tree_ for estimator in model.estimators_]
    return _read_trees(model, trees, divisor=float(len(trees)))


def _read_trees(model: Any, trees: Sequence[Any], divisor: float) -> DecisionMachine:
    is_classifier = hasattr(model, "classes_")
    n_classes = np.atleast_1d(model.n_classes_).tolist() if is_classifier else None
    _check_values(model, trees, n_classes)
    sizes = n_classes if n_classes is not None else [1] * model.n_outputs_
    groups = tuple(np.cumsum([0, *sizes]).tolist())
    output = Output(
        np.zeros(groups[-1]),
        divisor=divisor,
        decision="argmax" if is_classifier else "response",
        classes=_classes(model) if is_classifier else None,
        groups=groups if is_classifier else None,
    )
    return assemble(
        trees,
        lambda i, nodes: values_of(trees[i], nodes, n_classes),
        columns_of(model),
        output,
        source_of(model),
    )


def _check_values(model: Any, trees: Sequence[Any], n_classes: list[int] | None) -> None:
    """The model must say of its outputs and classes what its trees say."""
    said = (model.n_outputs_, 1 if n_classes is None else max(n_classes, default=0))
    labels = [] if n_classes is None else [len(labels) for labels in _classes(model)]
    held = {tree.value.shape[1:] for tree in trees if tree.node_count <= tree.capacity}
    if not trees or held - {said} or (n_classes is not None and labels != n_classes):
        raise ModelFormatError(
            f"reading a {source_of(model)}",
            f"{len(trees)} trees of (outputs, classes) {sorted(held)} in a model of {said} "
            f"and {labels} labels",
            "check that the model file is whole and unedited",
        )


def _classes(model: Any) -> tuple[np.ndarray, ...]:
    return tuple(model.classes_) if model.n_outputs_ > 1 else (model.classes_,)


def assemble(
    trees: Sequence[Any],
    values: Callable[[int, np.ndarray], np.ndarray],
    columns: Columns,
    output: Output,
    source: str,
    *,
    feeds: np.ndarray | None = None,
    features: Sequence[np.ndarray] | None = None,
    nan_goes_right: bool = False,
) -> DecisionMachine:
    """The machine of scikit-learn `Tree` objects.

    Parameters
    ----------
    values
        values(i, nodes) gives the rows of V for these leaves of tree i.
    features
        For trees that saw a part of the features each: which ones.
    nan_goes_right
        Whether NaN goes right at every test, whatever its node says.
    """
    doing = f"reading a {source}"
    for i, tree in enumerate(trees):
        # The properties of a Tree read node_count nodes without asking how many there are.
        if not 0 < tree.node_count <= tree.capacity:
            raise ModelFormatError(
                f"reading a {source}",
                f"tree {i} claims {tree.node_count} nodes and holds {tree.capacity}",
                "check that the model file is whole and unedited",
            )
    # Tree by tree, each part cut down to its own dtype: a large forest must not stand in memory
    # several times over.
    parts: dict[str, list[np.ndarray]] = {name: [] for name in _PARTS}
    n_tests = [0]
    for i, tree in enumerate(trees):
        nodes = tree.__getstate__()["nodes"]
        NODES.check_keys(nodes.dtype.names, doing, f"tree {i}, nodes")
        found = layout(
            tree.children_left, tree.children_right, np.array([0, tree.node_count]), doing
        )
        tests, leaves = found.tests, found.leaves
        children = found.children
        first_leaf = n_tests[-1] + i
        parts["children"].append(
            np.where(children >= 0, children + n_tests[-1], children - first_leaf).astype(np.int32)
        )
        parts["selection"].append(tree.feature[tests].astype(np.int32))
        parts["t"].append(at_most(tree.threshold[tests], np.float32))
        missing = np.where(tree.missing_go_to_left[tests] != 0, -1, 1).astype(np.int8)
        parts["missing"].append(np.ones_like(missing) if nan_goes_right else missing)
        parts["V"].append(values(i, leaves))
        weight = tree.weighted_n_node_samples
        parts["test_cover"].append(weight[tests])
        parts["leaf_cover"].append(weight[leaves])
        parts["test_ids"].append(tests.astype(np.int32))
        parts["leaf_ids"].append(leaves.astype(np.int32))
        n_tests.append(n_tests[-1] + len(tests))
    joined = {name: _join(parts.pop(name), empty) for name, empty in _PARTS.items()}
    V = joined["V"] if trees else np.empty((0, len(output)))
    if features is not None:
        joined["selection"] = _widen(joined["selection"], np.diff(n_tests), features, source)
    return DecisionMachine(
        columns=columns,
        selection=joined["selection"],
        t=joined["t"],
        missing=joined["missing"],
        children=joined["children"],
        V=V,
        trees=Trees(np.array(n_tests), feeds, joined["test_ids"], joined["leaf_ids"]),
        output=output,
        source=source,
        cover=stored_cover(joined["test_cover"], joined["leaf_cover"], np.array(n_tests)),
    )


_PARTS: dict[str, np.ndarray] = {
    "children": np.empty((0, 2), np.int32),
    "selection": np.empty(0, np.int32),
    "t": np.empty(0, np.float32),
    "missing": np.empty(0, np.int8),
    "V": np.empty((0, 0)),
    "test_ids": np.empty(0, np.int32),
    "leaf_ids": np.empty(0, np.int32),
    "test_cover": np.empty(0),
    "leaf_cover": np.empty(0),
}
"""What a machine is assembled from, and what each part is without a tree."""


def _join(arrays: list[np.ndarray], empty: np.ndarray) -> np.ndarray:
    """One read-only array of the trees' parts, which the machine takes as it is."""
    joined = np.concatenate(arrays) if arrays else empty
    joined.flags.writeable = False
    return joined


def _widen(
    selection: np.ndarray, n_tests: np.ndarray, features: Sequence[np.ndarray], source: str
) -> np.ndarray:
    """The model's feature for each test of trees that number the features they saw from 0."""
    if not len(n_tests) == len(features):
        raise ModelFormatError(
            f"reading a {source}",
            f"{len(features)} sets of features for {len(n_tests)} trees",
            "check that the model file is whole and unedited",
        )
    sizes = np.array([len(f) for f in features], np.int64)
    wrong = (selection < 0) | (selection >= np.repeat(sizes, n_tests))
    if np.any(wrong):
        tree = int(np.repeat(np.arange(len(n_tests)), n_tests)[np.argmax(wrong)])
        raise ModelFormatError(
            f"reading a {source}",
            f"tree {tree} reads feature {selection[np.argmax(wrong)]} of the {sizes[tree]} it saw",
            "check that the model file is whole and unedited",
        )
    start = np.cumsum(sizes) - sizes
    found: np.ndarray = np.concatenate([*features, np.empty(0, np.int64)])[
        selection + np.repeat(start, n_tests)
    ]
    return found


def columns_of(model: Any) -> Columns:
    """The columns of a scikit-learn model that casts to float32."""
    names = getattr(model, "feature_names_in_", None)
    return Columns(n_features_of(model), np.float32, names=None if names is None else tuple(names))


def n_features_of(model: Any) -> int:
    """How many features the model reads; a number that no model has is refused, not allocated."""
    n = model.n_features_in_
    if not isinstance(n, (int, np.integer)) or not 0 < n <= MOST_FEATURES:
        raise ModelFormatError(
            f"reading a {source_of(model)}",
            f"n_features_in_ = {n!r}",
            f"check the model; we read up to {MOST_FEATURES} features",
        )
    return int(n)


def source_of(model: Any) -> str:
    package = type(model).__module__.split(".")[0]
    return f"{PEOPLE_CALL.get(package, 'scikit-learn')} {type(model).__name__}"


PEOPLE_CALL = {
    "imblearn": "imbalanced-learn",
    "quantile_forest": "quantile-forest",
    "sksurv": "scikit-survival",
    "ngboost": "NGBoost",
}
"""What people call the packages that build on scikit-learn."""


def is_sampler(step: Any) -> bool:
    """Whether a step of imbalanced-learn's Pipeline draws rows for training and is then silent."""
    return hasattr(step, "fit_resample")


def is_active(step: Any) -> bool:
    """Whether a step of a pipeline does something to the rows that are predicted."""
    is_passed = isinstance(step, str) and step == "passthrough"
    return step is not None and not is_passed and not is_sampler(step)


def without_samplers(estimator: Any) -> Any:
    """The last step of a pipeline in which only samplers come before it; else the estimator."""
    steps = getattr(estimator, "steps", None)
    if steps and not any(is_active(step) for _, step in steps[:-1]):
        return steps[-1][1]
    return estimator


def values_of(tree: Any, nodes: np.ndarray, n_classes: list[int] | None) -> np.ndarray:
    """(leaves, k): the classes of every output side by side, or the outputs' values."""
    value = tree.value[nodes]
    if n_classes is None:
        found: np.ndarray = value[:, :, 0]
        return found
    return np.concatenate([_fractions(value[:, o, :k]) for o, k in enumerate(n_classes)], axis=1)


def _fractions(value: np.ndarray) -> np.ndarray:
    """(leaves, k) shares of the classes; until 1.3 a tree holds the weights of the classes.

    The weights of a node are those of its sides together, so leaves that all hold 1 are shares.
    """
    total = value.sum(axis=1)
    are_weights = np.isfinite(total) & (total != 0) & (np.abs(total - 1) > SHARES_ADD_UP_TO_1)
    if not np.any(are_weights):
        return value
    shares = value / np.where(total == 0, 1.0, total)[:, None]
    if not np.array_equal(np.argmax(shares, axis=1), np.argmax(value, axis=1)):
        raise UnsupportedModelError(
            "reading a scikit-learn tree that was fitted before release 1.4",
            "a leaf whose two largest classes differ by less than their shares can tell",
            "fit the model again with scikit-learn 1.4 or newer",
        )
    return shares


def require_fitted(model: Any, attribute: str) -> None:
    if not hasattr(model, attribute):
        raise InputError(
            f"reading a {source_of(model)}",
            f"it is not fitted: it has no {attribute}",
            "call fit first",
        )


def member_trees(model: Any, estimators: Sequence[Any], kind: str) -> list[Any]:
    """The trees of an ensemble whose members must be single trees of scikit-learn.

    Parameters
    ----------
    kind
        "classifier" or "regressor", which every member must be.
    """
    trees = []
    for i, estimator in enumerate(estimators):
        bases = [c.__name__ for c in type(estimator).__mro__ if c.__module__.startswith("sklearn.")]
        if f"DecisionTree{kind.capitalize()}" not in bases or overrides(estimator):
            raise UnsupportedModelError(
                f"reading a {source_of(model)}",
                f"estimators_[{i}] is a {type(estimator).__name__}, not a single tree {kind}",
                f"convert the members one by one, dm.convert(model.estimators_[{i}]), or fit the "
                f"ensemble with a DecisionTree{kind.capitalize()}",
            )
        require_fitted(estimator, "tree_")
        check_attributes(estimator, f"reading a {source_of(model)}", f"estimators_[{i}]")
        trees.append(estimator.tree_)
    return trees


ANSWERS = (
    "predict",
    "predict_proba",
    "decision_function",
    "score_samples",
    "_raw_predict",
    "_raw_predict_init",
    "_score_samples",
)


OF_A_LIBRARY = ("sklearn", "imblearn")
"""Whose answering methods we know."""


def overrides(model: Any) -> str | None:
    """The first answering method that a subclass outside scikit-learn has made its own."""
    for name in ANSWERS:
        owner = next((cls for cls in type(model).__mro__ if name in vars(cls)), None)
        if owner is not None and owner.__module__.split(".")[0] not in OF_A_LIBRARY:
            return name
    return None
