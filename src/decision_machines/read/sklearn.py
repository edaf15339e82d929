"""scikit-learn's trees and forests.

X is cast to float32, thresholds are float64, x ≤ t goes left, NaN goes where the node says. A forest
sums its trees' values in float64, in order, and divides by their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, UnsupportedModelError
from ..machine import Columns, DecisionMachine, Output, Trees, layout
from .thresholds import at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def read_sklearn(model: Any) -> DecisionMachine:
    """The machine of a fitted scikit-learn model."""
    for cls in type(model).__mro__:
        reader = READERS.get(cls.__name__)
        if reader is not None and cls.__module__.startswith("sklearn."):
            return reader(model)
    raise UnsupportedModelError(
        f"reading a scikit-learn {type(model).__name__}",
        "it is not one of the tree models we read",
        f"convert one of {', '.join(sorted(READERS))}",
    )


def _read_tree(model: Any) -> DecisionMachine:
    _require_fitted(model, "tree_")
    return _read_trees(model, [model.tree_], divisor=1.0)


def _read_forest(model: Any) -> DecisionMachine:
    _require_fitted(model, "estimators_")
    trees = [estimator.tree_ for estimator in model.estimators_]
    return _read_trees(model, trees, divisor=float(len(trees)))


def _read_trees(model: Any, trees: Sequence[Any], divisor: float) -> DecisionMachine:
    is_classifier = hasattr(model, "classes_")
    n_classes = np.atleast_1d(model.n_classes_).tolist() if is_classifier else None
    groups = _groups(model, n_classes)
    output = Output(
        np.zeros(groups[-1]),
        divisor=divisor,
        decision="argmax" if is_classifier else "response",
        classes=None if not is_classifier else _classes(model),
        groups=groups if is_classifier else None,
    )
    return assemble(
        trees,
        lambda tree, nodes: _values(tree, nodes, n_classes),
        columns_of(model),
        output,
        source_of(model),
    )


def assemble(
    trees: Sequence[Any],
    values: Callable[[Any, np.ndarray], np.ndarray],
    columns: Columns,
    output: Output,
    source: str,
    feeds: np.ndarray | None = None,
) -> DecisionMachine:
    """The machine of scikit-learn `Tree` objects; `values(tree, nodes)` gives the leaves' rows of V."""
    node_start = np.cumsum([0] + [tree.node_count for tree in trees])
    join = _joiner(trees)
    found = layout(join("children_left"), join("children_right"), node_start, f"reading a {source}")
    tests = found.tests
    leaf_start = found.test_start + np.arange(len(found.test_start))
    local = found.leaves - np.repeat(node_start[:-1], np.diff(leaf_start))
    V = [
        values(tree, local[a:b])
        for tree, a, b in zip(trees, leaf_start, leaf_start[1:], strict=False)
    ]
    return DecisionMachine(
        columns=columns,
        selection=join("feature")[tests].astype(np.int32),
        t=at_most(join("threshold")[tests], np.float32),
        missing=np.where(join("missing_go_to_left")[tests] != 0, -1, 1).astype(np.int8),
        children=found.children,
        V=np.concatenate(V) if V else np.empty((0, len(output))),
        trees=Trees(
            found.test_start,
            feeds,
            test_ids=tests - np.repeat(node_start[:-1], np.diff(found.test_start)),
            leaf_ids=local,
        ),
        output=output,
        source=source,
    )


def _joiner(trees: Sequence[Any]) -> Callable[[str], np.ndarray]:
    def join(name: str) -> np.ndarray:
        arrays = [getattr(tree, name) for tree in trees]
        return np.concatenate(arrays) if arrays else np.empty(0, np.int64)

    return join


def columns_of(model: Any) -> Columns:
    """The columns of a scikit-learn model that casts to float32."""
    names = getattr(model, "feature_names_in_", None)
    return Columns(model.n_features_in_, np.float32, names=None if names is None else tuple(names))


def source_of(model: Any) -> str:
    return f"scikit-learn {type(model).__name__}"


def _groups(model: Any, n_classes: list[int] | None) -> tuple[int, ...]:
    sizes = n_classes if n_classes is not None else [1] * model.n_outputs_
    return tuple(np.cumsum([0, *sizes]).tolist())


def _classes(model: Any) -> tuple[np.ndarray, ...]:
    return tuple(model.classes_) if model.n_outputs_ > 1 else (model.classes_,)


def _values(tree: Any, nodes: np.ndarray, n_classes: list[int] | None) -> np.ndarray:
    """(leaves, k): the classes of every output side by side, or the outputs' values."""
    value = tree.value[nodes]
    if n_classes is None:
        return value[:, :, 0]
    return np.concatenate([value[:, o, :k] for o, k in enumerate(n_classes)], axis=1)


def _require_fitted(model: Any, attribute: str) -> None:
    if not hasattr(model, attribute):
        raise InputError(
            f"reading a {source_of(model)}",
            f"it is not fitted: it has no {attribute}",
            "call fit first",
        )


READERS: dict[str, Callable[[Any], DecisionMachine]] = {
    "DecisionTreeClassifier": _read_tree,
    "DecisionTreeRegressor": _read_tree,
    "RandomForestClassifier": _read_forest,
    "RandomForestRegressor": _read_forest,
    "ExtraTreesClassifier": _read_forest,
    "ExtraTreesRegressor": _read_forest,
}
