"""Bagging of trees and IsolationForest of scikit-learn."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, IsolationForest
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor
from sklearn_probes import assert_answers_as, leaf_ids, same, tree_probes

import decision_machines as dm

X, Y = make_classification(200, 8, n_informative=5, n_classes=4, random_state=0)
NAMES = np.array(["ash", "birch", "cedar", "elm"])[Y]
XR, YR = make_regression(200, 8, n_targets=2, random_state=0)
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
SAMPLING = {
    "all": {},
    "few features": {"max_features": 3},
    "features twice": {"max_features": 0.8, "bootstrap_features": True},
    "all features shuffled": {"bootstrap_features": True},
    "few samples": {"max_samples": 6},
    "pasting": {"bootstrap": False, "max_samples": 0.4},
}


def check(model):
    machine = dm.convert(model)
    features = model.estimators_features_
    if isinstance(model, IsolationForest) and model._max_features == model.n_features_in_:
        features = [np.arange(model.n_features_in_)] * len(model.estimators_)
    trees = [e.tree_ for e in model.estimators_]
    rows = tree_probes(trees, 8, features)
    assert_answers_as(machine, model, rows)
    with np.errstate(over="ignore"):
        single = rows.astype(np.float32)
    found = [t.apply(single[:, f]) for t, f in zip(trees, features, strict=True)]
    assert np.array_equal(leaf_ids(machine, rows), np.column_stack(found))
    return machine, rows


@pytest.mark.parametrize("sampling", SAMPLING)
@pytest.mark.parametrize("y", [Y, NAMES, Y > 1], ids=["int", "text", "bool"])
def test_bags_of_classifiers_are_read_to_the_bit(sampling, y):
    base = DecisionTreeClassifier(max_depth=4)
    model = BaggingClassifier(base, n_estimators=9, random_state=0, **SAMPLING[sampling])
    check(model.fit(X, y))


class Unweighted(DecisionTreeClassifier):
    """A tree that takes no weights, so that a bag hands it the drawn rows alone."""

    def fit(self, X, y):
        return super().fit(X, y)


def test_a_class_that_a_bag_never_saw_has_no_probability_there():
    model = BaggingClassifier(Unweighted(), n_estimators=9, max_samples=4, random_state=0)
    model.fit(X, NAMES)
    assert {len(e.classes_) for e in model.estimators_} != {4}
    check(model)


@pytest.mark.parametrize("sampling", SAMPLING)
@pytest.mark.parametrize("base", [DecisionTreeRegressor(), ExtraTreeRegressor(max_depth=5)])
def test_bags_of_regressors_are_read_to_the_bit(sampling, base):
    model = BaggingRegressor(base, n_estimators=9, random_state=0, **SAMPLING[sampling])
    check(model.fit(XR, YR[:, 0]))


def test_bags_of_regressors_may_have_several_targets():
    check(BaggingRegressor(n_estimators=5, random_state=0).fit(XR, YR))


def test_bags_send_nan_where_each_tree_sent_it():
    check(BaggingClassifier(n_estimators=5, max_features=4, random_state=0).fit(GAPS, Y))


def test_fewer_estimators_asked_for_after_the_fit_are_fewer_trees():
    model = BaggingRegressor(n_estimators=8, random_state=0).fit(XR, YR[:, 0])
    model.set_params(n_estimators=5)
    machine = dm.convert(model)
    assert machine.n_trees == 5
    assert same(machine.predict(XR), model.predict(XR))


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(LinearSVC(), n_estimators=2),
        BaggingRegressor(LinearRegression(), n_estimators=2),
        BaggingRegressor(DecisionTreeClassifier(), n_estimators=2),
    ],
    ids=["svc", "linear", "classifier in a regressor"],
)
def test_bags_of_anything_but_their_own_kind_of_tree_are_refused(model):
    with pytest.raises(dm.UnsupportedModelError, match=r"estimators_\[0\]"):
        dm.convert(model.fit(X, Y))


# ---------------------------------------------------------------- IsolationForest


@pytest.mark.parametrize("contamination", ["auto", 0.1])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_features": 3},
        {"max_features": 0.5, "bootstrap": True},
        {"max_samples": 2},
        {"max_samples": 1},
        {"max_samples": 50},
    ],
    ids=str,
)
def test_isolation_forests_score_to_the_bit(options, contamination):
    model = IsolationForest(n_estimators=12, contamination=contamination, random_state=0, **options)
    machine, rows = check(model.fit(X))
    with np.errstate(over="ignore"):
        score = machine.response(rows)[:, 0]
        assert same(score, model.score_samples(rows))
        assert same(score - machine.output.decision_params[0], model.decision_function(rows))


def test_isolation_forests_take_nan():
    model = IsolationForest(n_estimators=12, random_state=0).fit(GAPS)
    machine, _ = check(model)
    with config_context(assume_finite=False):
        assert same(machine.predict(GAPS), model.predict(GAPS))
