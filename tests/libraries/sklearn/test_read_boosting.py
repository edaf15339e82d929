"""GradientBoosting and AdaBoost of scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.datasets import make_classification, make_regression
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from sklearn_probes import assert_answers_as, leaf_ids, same, tree_probes

import decision_machines as dm

X, Y3 = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
Y2 = np.array(["no", "yes"])[(Y3 > 0).astype(int)]
# From eight classes on, the order in which exponentials are added shows.
Y9 = np.digitize(X[:, 0] + X[:, 1], np.linspace(-2, 2, 8))
LABELS = {2: Y2, 3: Y3, 9: Y9}
XR, YR = make_regression(300, 6, random_state=0)


def check_boosting(model):
    machine = dm.convert(model)
    trees = [e.tree_ for e in model.estimators_.ravel()]
    rows = tree_probes(trees, 6)
    assert_answers_as(machine, model, rows)
    assert_answers_as(machine, model, rows.astype(np.float32))
    # Leaves are compared without NaN: apply sends it where the node says, predict always right.
    rows = rows[~np.isnan(rows).any(axis=1)].astype(np.float32)
    assert np.array_equal(leaf_ids(machine, rows), np.column_stack([t.apply(rows) for t in trees]))
    return machine


@pytest.mark.parametrize("init", [None, "zero", DummyClassifier(strategy="uniform")], ids=str)
@pytest.mark.parametrize("rate", [0.1, 1.0])
@pytest.mark.parametrize("n_classes", LABELS)
def test_gradient_boosting_classifies_to_the_bit(n_classes, rate, init):
    model = GradientBoostingClassifier(
        n_estimators=12, learning_rate=rate, init=init, random_state=0
    )
    check_boosting(model.fit(X, LABELS[n_classes]))


def test_exponential_loss_doubles_the_margin_in_its_link():
    model = GradientBoostingClassifier(loss="exponential", n_estimators=15, random_state=0)
    machine = check_boosting(model.fit(X, Y2))
    assert machine.output.link_params == (2.0,)


@pytest.mark.parametrize(
    "init",
    [
        None,
        "zero",
        DummyRegressor(strategy="median"),
        DummyRegressor(strategy="quantile", quantile=0.9),
        DummyRegressor(strategy="constant", constant=3.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_gradient_boosting_regresses_to_the_bit(loss, init):
    model = GradientBoostingRegressor(loss=loss, n_estimators=12, init=init, random_state=0)
    machine = check_boosting(model.fit(XR, YR))
    assert same(machine.margin(XR)[:, 0], model.predict(XR))


@pytest.mark.parametrize("strategy", ["prior", "most_frequent", "constant"])
def test_a_constant_classifier_to_start_from_is_read(strategy):
    init = DummyClassifier(strategy=strategy, constant=1 if strategy == "constant" else None)
    model = GradientBoostingClassifier(n_estimators=5, init=init, random_state=0)
    check_boosting(model.fit(X, Y3))


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (GradientBoostingRegressor(init=LinearRegression(), n_estimators=2), "LinearRegression"),
        (
            GradientBoostingClassifier(init=DummyClassifier(strategy="stratified"), n_estimators=2),
            "stratified",
        ),
    ],
)
def test_a_start_that_changes_from_row_to_row_is_refused(model, found):
    with pytest.raises(dm.UnsupportedModelError, match=found) as caught:
        dm.convert(model.fit(X, Y2 == "yes"))
    assert "init='zero'" in caught.value.remedy


def test_early_stopping_and_weights_and_subsampling_leave_nothing_to_know():
    model = GradientBoostingClassifier(
        n_estimators=60, n_iter_no_change=2, subsample=0.5, max_features=3, random_state=0
    )
    model.fit(X, Y3, sample_weight=np.linspace(0.1, 2, len(X)))
    machine = check_boosting(model)
    assert machine.n_trees == model.n_estimators_ * 3


def test_a_margin_of_zero_is_the_second_class():
    model = GradientBoostingClassifier(n_estimators=1, init="zero", learning_rate=1e-300)
    model.fit(np.zeros((4, 1)), [0, 0, 1, 1])
    assert model.decision_function([[0.0]]) == 0
    assert same(dm.convert(model).predict([[0.0]]), model.predict([[0.0]]))


def test_a_margin_too_small_for_its_probability_still_decides():
    model = GradientBoostingClassifier(n_estimators=1, init="zero", learning_rate=1e-30)
    model.fit([[0.0], [1.0]], [0, 1])
    rows = [[0.0], [1.0]]
    assert np.array_equal(model.predict_proba(rows), np.full((2, 2), 0.5))
    assert same(dm.convert(model).predict(rows), model.predict(rows))


def test_nan_goes_right_at_every_test_of_gradient_boosting():
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(XR, YR)
    rows = np.where(np.random.default_rng(0).random(XR.shape) < 0.3, np.nan, XR)
    with config_context(assume_finite=True):
        assert same(dm.convert(model).predict(rows), model.predict(rows))


# ---------------------------------------------------------------- AdaBoost


def check_ada(model):
    machine = dm.convert(model)
    trees = [e.tree_ for e in model.estimators_]
    rows = tree_probes(trees, 6)
    assert_answers_as(machine, model, rows)
    with np.errstate(over="ignore"):
        single = rows.astype(np.float32)
    assert np.array_equal(
        leaf_ids(machine, rows), np.column_stack([t.apply(single) for t in trees])
    )
    return machine


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("n_classes", LABELS)
def test_adaboost_classifies_to_the_bit(n_classes, depth):
    base = DecisionTreeClassifier(max_depth=depth)
    model = AdaBoostClassifier(base, n_estimators=15, learning_rate=0.7, random_state=0)
    machine = check_ada(model.fit(X, LABELS[n_classes]))
    # Two classes need one sum.
    assert machine.n_outputs == (1 if n_classes == 2 else n_classes)


def test_adaboost_of_extra_trees_and_of_early_perfection():
    check_ada(
        AdaBoostClassifier(ExtraTreeClassifier(max_depth=2), n_estimators=9, random_state=0).fit(
            X, Y3
        )
    )
    perfect = AdaBoostClassifier(DecisionTreeClassifier(), n_estimators=9).fit(X, Y3)
    assert len(perfect.estimators_) == 1
    check_ada(perfect)


def test_adaboost_of_one_class_is_sure_of_it():
    model = AdaBoostClassifier(n_estimators=3).fit(X, np.zeros(len(X)))
    machine = dm.convert(model)
    assert same(machine.predict(X), model.predict(X))
    assert same(machine.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
@pytest.mark.parametrize("depth", [3, 8])
@pytest.mark.parametrize("step", [None, 60.0])
def test_adaboost_regresses_by_the_weighted_median(loss, depth, step):
    # Coarse targets make many trees answer alike: ties of the median.
    y = YR if step is None else np.round(YR / step)
    base = DecisionTreeRegressor(max_depth=depth)
    check_ada(AdaBoostRegressor(base, n_estimators=40, loss=loss, random_state=0).fit(XR, y))


def test_adaboost_of_anything_but_trees_is_refused_with_a_way_out():
    model = AdaBoostClassifier(RandomForestClassifier(2), n_estimators=2).fit(X, Y3)
    with pytest.raises(dm.UnsupportedModelError, match=r"estimators_\[0\]") as caught:
        dm.convert(model)
    assert "dm.convert(model.estimators_[0])" in caught.value.remedy


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(6, 60),
    n_classes=st.integers(2, 10),
    rate=st.floats(1e-3, 10),
    depth=st.integers(1, 4),
)
def test_any_boosted_model_of_any_small_data_is_read_to_the_bit(seed, n, n_classes, rate, depth):
    rng = np.random.default_rng(seed)
    x = np.round(rng.standard_normal((n, 6)), 1)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n))[:n]
    if len(np.unique(y)) < 2:
        y[0] = y[0] + 1
    model = GradientBoostingClassifier(
        n_estimators=4, learning_rate=rate, max_depth=depth, random_state=0
    )
    check_boosting(model.fit(x, y))


def test_an_initial_estimator_of_many_outputs_is_refused_before_they_are_allocated():
    X, y = np.arange(20.0)[:, None], np.arange(20.0)
    model = GradientBoostingRegressor(n_estimators=2).fit(X, y)
    model.init_.n_outputs_ = 10**12
    with pytest.raises(dm.ModelFormatError, match="init_ has 1000000000000 outputs"):
        dm.convert(model)
