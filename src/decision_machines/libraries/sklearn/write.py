"""A machine as a scikit-learn model: a single tree, a random forest, or boosted trees.

Which class it is follows from what the machine does: averages are a RandomForest, one tree is a
DecisionTree, sums over float32 columns are a GradientBoosting, all other sums a
HistGradientBoosting (which takes NaN, and compares in float64). The model is fitted to a few rows
of zeros, for scikit-learn to fill in all that a fitted model has, and then given the trees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ...machine.values import wide_values
from ..limits import Limits, margins_only, missing_answers, require
from ..nodes import nodes_of
from ..rounds import rounds_of
from .write_hist import Kind, hist_gradient_boosting

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from ..rounds import Slot

NO_FEATURE = -2


def to_sklearn(machine: DecisionMachine, *, margins: bool = False) -> Any:
    """A fitted scikit-learn model; see `DecisionMachine.to_sklearn`."""
    machine = margins_only(machine) if margins else machine
    limits = Limits(machine, "a scikit-learn model")
    require("sklearn", limits.doing)
    limits.columns((Rule.VALUE, Rule.NAN_AS_ZERO))
    limits.no_labels()
    limits.constant_leaves()
    limits.plain_sum()
    if machine.n_features == 0:
        limits.refuse("it reads no features", "keep the machine with machine.save")
    model = _averaged(machine, limits) or _boosted(machine, limits)
    model = model or hist_gradient_boosting(machine, limits)
    if machine.columns.names is not None:
        model.feature_names_in_ = np.array(machine.columns.names, object)
    return model


# ---------------------------------------------------------------------- trees and forests


def _averaged(machine: DecisionMachine, limits: Limits) -> Any:
    """A DecisionTree or a RandomForest; None where the machine is neither."""
    output, n_trees = machine.output, machine.n_trees
    is_classifier = output.classes is not None
    if (
        machine.columns.dtype != np.float32
        or output.dtype != np.float64
        or output.link != "identity"
        or output.decision != ("argmax" if is_classifier else "response")
        or np.any(output.base)
        or output.scale != 1
        or n_trees == 0
        or output.divisor not in ((1.0, float(n_trees)) if n_trees == 1 else (float(n_trees),))
        or not output.squeeze
    ):
        return None
    from sklearn import ensemble, tree

    V = wide_values(machine, np.float64)
    groups = output.groups if is_classifier else tuple(range(machine.n_outputs + 1))
    X, y = _fit_on(machine, groups, output.classes)
    if n_trees == 1:
        kind = tree.DecisionTreeClassifier if is_classifier else tree.DecisionTreeRegressor
        model = kind(max_depth=1).fit(X, y)
        members = [model]
    else:
        forest = (
            ensemble.RandomForestClassifier if is_classifier else ensemble.RandomForestRegressor
        )
        model = forest(n_trees, max_depth=1, bootstrap=False, n_jobs=1).fit(X, y)
        members = model.estimators_
    written = _Trees(machine, V, groups if is_classifier else None)
    for i, member in enumerate(members):
        member.tree_ = written.tree(i)
    model.set_params(max_depth=None)
    if is_classifier:
        assert output.classes is not None
        model.classes_ = output.classes[0] if len(output.classes) == 1 else list(output.classes)
    return model


def _fit_on(machine: DecisionMachine, groups: tuple[int, ...], classes: Any) -> tuple[Any, ...]:
    """Rows of zeros with every class of every group, or with zeros for every output."""
    sizes = np.diff(groups).tolist()
    n = max(max(sizes), 1) if classes is not None else 1
    y = np.stack([np.arange(n) % size if classes else np.zeros(n) for size in sizes], axis=1)
    return np.zeros((n, machine.n_features), np.float32), y[:, 0] if y.shape[1] == 1 else y


class _Trees:
    """scikit-learn's `Tree` objects."""

    def __init__(self, machine: DecisionMachine, V: np.ndarray, groups: Any = None) -> None:
        from sklearn.tree._tree import NODE_DTYPE

        self.machine = machine
        self.nodes = nodes_of(machine)
        nodes, found = self.nodes, machine.structure
        self.sizes = np.diff(groups) if groups is not None else np.ones(V.shape[1], np.int64)
        total = np.concatenate([np.zeros((1, V.shape[1])), np.cumsum(V, axis=0)])
        first = found.first_leaf
        # What a test would answer as a leaf, for people who look: the mean over its leaves.
        with np.errstate(all="ignore"):
            mean = (total[first + found.n_leaves] - total[first]) / found.n_leaves[:, None]
        values = np.empty((len(nodes.test), V.shape[1]))
        is_test = nodes.test >= 0
        values[is_test], values[~is_test] = mean[nodes.test[is_test]], V[nodes.leaf[~is_test]]
        self.values = _by_group(values, self.sizes)
        array = np.zeros(len(nodes.test), NODE_DTYPE)
        array["left_child"], array["right_child"] = nodes.left, nodes.right
        array["feature"] = nodes.spread(machine.columns.feature[machine.selection], NO_FEATURE)
        array["threshold"] = nodes.spread(machine.t.astype(np.float64), float(NO_FEATURE))
        array["n_node_samples"] = nodes.spread(found.n_leaves, 1)
        array["weighted_n_node_samples"] = array["n_node_samples"]
        array["missing_go_to_left"] = nodes.spread(missing_answers(machine) < 0, False)
        self.array = array

    def tree(self, i: int) -> Any:
        return _tree(
            self.machine.n_features,
            self.sizes,
            self.array[self.nodes.tree(i)],
            self.values[self.nodes.tree(i)],
            int(self.machine.structure.leaf_depth[self.machine.trees.leaves(i)].max()),
        )


def _by_group(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(N, outputs, classes): the values of each group of outputs, padded with zeros."""
    found = np.zeros((len(values), len(sizes), int(sizes.max(initial=1))))
    at = 0
    for o, size in enumerate(sizes.tolist()):
        found[:, o, :size] = values[:, at : at + size]
        at += size
    return found


def _tree(
    n_features: int, sizes: np.ndarray, nodes: np.ndarray, values: np.ndarray, depth: int
) -> Any:
    from sklearn.tree._tree import Tree

    tree = Tree(n_features, np.asarray(sizes, np.intp), len(sizes))
    tree.__setstate__(
        {
            "max_depth": depth,
            "node_count": len(nodes),
            "nodes": np.ascontiguousarray(nodes),
            "values": np.ascontiguousarray(values),
        }
    )
    return tree


# ---------------------------------------------------------------------- boosting


def _boosted(machine: DecisionMachine, limits: Limits) -> Any:
    """A GradientBoosting, which takes no NaN; None where the machine is none or takes NaN."""
    output = machine.output
    kind = _boosted_kind(machine)
    if kind is None or machine.columns.dtype != np.float32 or not machine.n_trees:
        return None
    if np.any(missing_answers(machine) < 0) or not output.base_first:
        return None
    from sklearn import ensemble

    rounds = rounds_of(machine, limits, base_is_tree=kind.classes is not None)
    options: dict[str, Any] = {"loss": kind.loss, "learning_rate": 1.0, "n_estimators": 1}
    X = np.zeros((max(2, machine.n_outputs), machine.n_features), np.float32)
    y = np.arange(len(X))
    model: Any
    if kind.classes is None:
        from sklearn.dummy import DummyRegressor

        init = DummyRegressor(strategy="constant", constant=float(output.base[0]))
        model = ensemble.GradientBoostingRegressor(init=init, **options).fit(X, y)
    else:
        model = ensemble.GradientBoostingClassifier(init="zero", **options).fit(X, y)
        model.classes_ = kind.classes
    rows = [
        [_regressor(machine, slot) for slot in slots] for slots in _sklearn_trees(machine, rounds)
    ]
    model.estimators_ = np.array(rows, object).reshape(len(rows), machine.n_outputs)
    model.n_estimators_ = len(rows)
    return model.set_params(n_estimators=len(rows))


def _boosted_kind(machine: DecisionMachine) -> Kind | None:
    output = machine.output
    k, params = len(output), output.link_numbers
    how = (output.link, output.decision)
    if output.divisor != 1 or output.scale != 1 or output.dtype != np.float64:
        return None
    if how == ("identity", "response") and output.classes is None and k == 1 and output.squeeze:
        return Kind("squared_error")
    if output.classes is None or len(output.groups) > 2 or len(output.classes[0]) != max(k, 2):
        return None
    slopes = {(): "log_loss", (1.0,): "log_loss", (2.0,): "exponential"}
    if how == ("expit", "margin_at_least") and output.decision_params in ((), (0.0,)):
        return Kind(slopes[params], output.classes[0]) if params in slopes and k == 1 else None
    if how == ("softmax", "argmax_margin") and params in ((), (0.0,)) and k > 2:
        return Kind("log_loss", output.classes[0])
    return None


def _sklearn_trees(machine: DecisionMachine, rounds: list[list[Slot]]) -> list[list[Any]]:
    """The `Tree` of every slot."""
    columns = [
        _Trees(machine, machine.V[:, [c]].astype(np.float64)) for c in range(machine.V.shape[1])
    ]
    return [
        [
            columns[slot[1]].tree(slot[0]) if isinstance(slot, tuple) else _leaf(machine, slot)
            for slot in slots
        ]
        for slots in rounds
    ]


def _leaf(machine: DecisionMachine, value: float) -> Any:
    """A `Tree` of one leaf."""
    from sklearn.tree._tree import NODE_DTYPE

    node = np.zeros(1, NODE_DTYPE)
    node["left_child"] = node["right_child"] = -1
    node["feature"] = node["threshold"] = NO_FEATURE
    node["n_node_samples"] = node["weighted_n_node_samples"] = 1
    return _tree(machine.n_features, np.ones(1), node, np.full((1, 1, 1), value), 0)


def _regressor(machine: DecisionMachine, tree: Any) -> Any:
    """A DecisionTreeRegressor with this tree."""
    from sklearn.tree import DecisionTreeRegressor

    model = DecisionTreeRegressor()
    model.n_features_in_, model.n_outputs_, model.max_features_ = machine.n_features, 1, 1
    model.tree_ = tree
    return model
