"""The estimators on data that real tables have: few rows, odd scales, gaps, text, imbalance."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import decision_machines as dm
from decision_machines import (
    DecisionMachineClassifier,
    DecisionMachineRegressor,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
)
from decision_machines.errors import InputError

CLASSIFIERS = [
    DecisionMachineClassifier(max_leaves=6, n_iterations=20),
    DecisionMachineClassifier(n_trees=5, max_leaves=6, n_iterations=5),
    NonGreedyTreeClassifier(max_leaves=6, n_epochs=3),
]
REGRESSORS = [
    DecisionMachineRegressor(max_leaves=6, n_iterations=20),
    DecisionMachineRegressor(n_trees=5, max_leaves=6, n_iterations=5),
    NonGreedyTreeRegressor(max_leaves=6, n_epochs=3),
]
EITHER = pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=str)


def squares(m=200, seed=0):
    """An exclusive or of two features: no greedy first test helps."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(m, 3))
    return X, ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int)


# ---------------------------------------------------------------------- rows as they come


@EITHER
@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_row_or_two_are_enough(model, m):
    X, y = np.arange(2.0 * m).reshape(m, 2), np.arange(m) % 2
    found = clone(model).fit(X, y).predict(X)
    assert found.shape == (m,)
    assert set(found) <= set(y) or np.all(np.isfinite(found))


@EITHER
def test_constant_features_and_one_value_of_the_target_give_one_leaf(model):
    X = np.ones((30, 3))
    fitted = clone(model).fit(X, np.full(30, 7))
    assert fitted.predict(X).tolist() == [7] * 30
    assert not fitted.feature_importances_.any()


@EITHER
def test_repeated_rows_change_nothing(model):
    X, y = squares(40)
    once = clone(model).fit(X, y)
    often = clone(model).fit(np.tile(X, (5, 1)), np.tile(y, 5))
    np.testing.assert_array_equal(once.predict(X), often.predict(X))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_one_row_of_a_class_among_hundreds_is_learned_if_it_weighs_enough(model):
    X, y = squares(200)
    y[:] = 0
    y[np.argmax(X[:, 0])] = 1
    plain = clone(model).fit(X, y)
    assert np.mean(plain.predict(X) == y) > 0.99
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
    assert balanced.predict(X)[y == 1].tolist() == [1]


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1.0, 1.0], [10, 20]])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_labels_come_back_as_they_came(model, labels):
    X, y = squares(100)
    names = np.array(labels)[y]
    fitted = clone(model).fit(X, names)
    assert fitted.predict(X).dtype == names.dtype
    assert fitted.classes_.tolist() == labels
    np.testing.assert_array_equal(fitted.machine_.predict(X), fitted.predict(X))


@EITHER
@settings(max_examples=8)
@given(exponents=st.lists(st.integers(-290, 290), min_size=3, max_size=3), seed=st.integers(0, 9))
def test_features_of_any_scale_never_give_nan(model, exponents, seed):
    X, y = squares(60, seed)
    X = (X - 0.5) * 10.0 ** np.array(exponents, float)
    fitted = clone(model).fit(X, y)
    assert np.all(np.isfinite(fitted.predict(X)))
    assert np.mean(np.round(fitted.predict(X)) == y) >= max(np.mean(y), 1 - np.mean(y)) - 0.05


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_targets_of_any_scale_are_explained_alike(model, scale):
    X, y = squares(150)
    values = (y + X[:, 2]) * scale
    found = clone(model).fit(X, values).predict(X) / scale
    assert np.mean((found - values / scale) ** 2) < 0.7 * np.var(values / scale)


@EITHER
def test_infinity_is_refused_in_words(model):
    X, y = squares(30)
    X[3, 1] = np.inf
    with pytest.raises(InputError, match="infinity"):
        clone(model).fit(X, y)
    table = pl.DataFrame(X, schema=["a", "b", "c"])
    with pytest.raises(InputError, match="column 'b' contains infinity in row 3"):
        clone(model).fit(table, y)


@pytest.mark.parametrize("model", [CLASSIFIERS[0], CLASSIFIERS[1], REGRESSORS[0]], ids=str)
def test_missing_values_say_something_themselves(model):
    X, _ = squares(200)
    y = np.arange(200) % 2
    X[y == 1, 2] = np.nan
    fitted = clone(model).fit(X, y)
    assert np.mean((fitted.predict(X) > 0.5) == y) == 1.0


def test_missing_values_are_refused_where_they_are_not_taken():
    X, y = squares(30)
    X[0, 0] = np.nan
    with pytest.raises(InputError, match="SimpleImputer"):
        NonGreedyTreeClassifier().fit(X, y)


# ---------------------------------------------------------------------- trees worth having


def test_one_tree_finds_what_greedy_growing_misses():
    X, y = squares(400)
    X_new, y_new = squares(400, seed=1)
    tree = DecisionMachineClassifier(max_leaves=4, n_iterations=100).fit(X, y)
    cart = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    assert tree.score(X_new, y_new) > 0.97
    assert tree.score(X_new, y_new) > cart.score(X_new, y_new) + 0.1


def test_many_trees_do_better_than_one_and_stop_early():
    X, y = load_breast_cancer(return_X_y=True)
    new = np.arange(len(X)) % 3 == 0
    one = DecisionMachineClassifier(max_leaves=6, n_iterations=20).fit(X[~new], y[~new])
    many = DecisionMachineClassifier(
        60, max_leaves=6, n_iterations=0, learning_rate=0.3, patience=5
    )
    many.fit(X[~new], y[~new])
    assert many.score(X[new], y[new]) >= one.score(X[new], y[new])
    assert many.machine_.n_trees < 60
    np.testing.assert_array_equal(many.predict(X), many.machine_.predict(X))
    np.testing.assert_array_equal(many.predict_proba(X), many.machine_.predict_proba(X))


def test_importances_are_carts_for_a_tree_of_means():
    X, y = load_breast_cancer(return_X_y=True)
    from decision_machines.estimators.importance import feature_importances

    for cart in (
        DecisionTreeClassifier(max_leaf_nodes=9, random_state=0).fit(X, y),
        __import__("sklearn.tree").tree.DecisionTreeRegressor(max_leaf_nodes=9).fit(X, y),
    ):
        found = feature_importances(dm.convert(cart), X.astype(np.float32), np.ones(len(X)))
        np.testing.assert_allclose(found, cart.feature_importances_, atol=1e-12)


def test_several_targets_share_a_tree():
    X, y = squares(150)
    both = np.stack([y, 1.7 * X[:, 2]], axis=1)
    for n_trees in (1, 10):
        model = DecisionMachineRegressor(n_trees, max_leaves=12, n_iterations=50, learning_rate=0.5)
        assert model.fit(X, both).predict(X).shape == (150, 2)
        assert model.score(X, both) > 0.7


def test_validation_rows_may_be_given():
    X, y = squares(150)
    names = np.array(["a", "b"])[y]
    model = DecisionMachineClassifier(max_leaves=4, n_iterations=20)
    assert model.fit(X[:100], names[:100], validation=(X[100:], names[100:])).score(X, names) > 0.8
    with pytest.raises(InputError, match="label 'c', which y does not have"):
        model.fit(X[:100], names[:100], validation=(X[100:], np.full(50, "c")))
    with pytest.raises(InputError, match=r"not \(X, y\)"):
        model.fit(X, names, validation=X)


# ---------------------------------------------------------------------- scikit-learn's company


def test_pipelines_searches_clones_and_pickles():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    pipe = make_pipeline(StandardScaler(), DecisionMachineRegressor(n_iterations=5))
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.1
    grid = {"max_leaves": [1, 6]}
    search = GridSearchCV(DecisionMachineRegressor(n_iterations=5), grid, cv=3).fit(X, y)
    assert search.best_params_ == {"max_leaves": 6}
    best = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(best.predict(X), search.predict(X))
    assert clone(best).get_params() == best.get_params()
    assert best.feature_names_in_.tolist() == X.columns.tolist()
    assert best.machine_.columns.names == tuple(X.columns)


def test_warm_start_adds_trees_to_those_that_are_there():
    X, y = squares(200)
    options = {"max_leaves": 6, "n_iterations": 0, "early_stopping": False, "warm_start": True}
    model = DecisionMachineClassifier(5, **options).fit(X, y)
    first = model.machine_
    model.set_params(n_trees=9).fit(X, y)
    assert model.machine_.n_trees == 9
    assert np.array_equal(model.machine_.V[: first.n_leaves], first.V)
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]


def test_warm_start_of_one_tree_keeps_the_better():
    X, y = squares(200)
    model = DecisionMachineClassifier(max_leaves=8, n_iterations=100, warm_start=True).fit(X, y)
    good = model.score(X, y)
    assert model.set_params(max_leaves=2, n_iterations=0).fit(X, y).score(X, y) == good


def test_a_seed_reproduces_and_rows_may_come_in_any_order():
    X, y = squares(150)
    order = np.random.default_rng(1).permutation(150)
    for model in (CLASSIFIERS[0], CLASSIFIERS[1]):
        one = clone(model).set_params(random_state=3).fit(X, y)
        two = clone(model).set_params(random_state=3).fit(X[order], y[order])
        assert one.machine_.equals(two.machine_)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"n_trees": 0}, "n_trees = 0"),
        ({"max_leaves": 2.5}, "max_leaves = 2.5"),
        ({"max_leaves": True}, "max_leaves = True"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"leaves": "linear"}, "leaves = 'linear'"),
        ({"validation_fraction": 1.0}, "validation_fraction = 1.0"),
        ({"random_state": "x"}, "random_state = 'x'"),
        ({"class_weight": "even"}, "class_weight = 'even'"),
        ({"class_weight": {3: 1.0}}, "class_weight"),
    ],
)
def test_wrong_parameters_are_refused_with_what_they_may_be(options, found):
    X, y = squares(20)
    with pytest.raises(InputError, match=found) as error:
        DecisionMachineClassifier(**options).fit(X, y)
    assert "What to do: give" in str(error.value)


def test_a_regressors_target_is_no_target_of_a_classifier():
    X, _ = squares(40)
    with pytest.raises(InputError, match="use the regressor"):
        DecisionMachineClassifier().fit(X, X[:, 0])


# ---------------------------------------------------------------------- tables


def coloured(m=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "<b>&'\""], m).astype(object),
            "size": rng.normal(size=m),
            "kind": pd.Categorical(rng.choice(["x", "y"], m)),
        }
    )
    y = np.where((table["colour"] == "red") ^ (table["size"] > 0), "in", "out")
    table.loc[::11, "colour"] = None
    return table, y


def test_text_columns_are_categories_and_tests_ask_for_sets():
    table, y = coloured()
    model = DecisionMachineClassifier(max_leaves=4, n_iterations=50).fit(table, y)
    assert model.score(table, y) > 0.9
    assert "colour in {red}" in str(model.explain(table[:40]))
    np.testing.assert_array_equal(model.machine_.predict(table), model.predict(table))


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_every_kind_of_table_gives_the_same_tree(make):
    table, y = coloured()
    model = DecisionMachineClassifier(max_leaves=4, n_iterations=20)
    one, two = clone(model).fit(table, y), clone(model).fit(make(table), y)
    assert one.machine_.equals(two.machine_)
    np.testing.assert_array_equal(two.predict(make(table)), one.predict(table))


def test_a_label_never_seen_is_missing():
    table, y = coloured()
    model = DecisionMachineClassifier(max_leaves=4, n_iterations=20).fit(table, y)
    strange, missing = table.copy(), table.copy()
    strange["colour"], missing["colour"] = "ultraviolet", None
    np.testing.assert_array_equal(model.predict_proba(strange), model.predict_proba(missing))


def test_the_written_machine_reads_the_same_labels(tmp_path):
    table, y = coloured()
    model = DecisionMachineClassifier(5, max_leaves=4, n_iterations=0).fit(table, y)
    model.machine_.save(tmp_path / "m.dm")
    np.testing.assert_array_equal(dm.load(tmp_path / "m.dm").predict(table), model.predict(table))


def test_names_are_no_categories():
    table, y = coloured()
    table["name"] = [f"person {i}" for i in range(len(table))]
    with pytest.raises(InputError, match="300 different texts in 300 rows"):
        DecisionMachineClassifier().fit(table, y)


def test_an_array_is_no_substitute_for_a_table_with_text():
    table, y = coloured()
    model = DecisionMachineClassifier(max_leaves=4, n_iterations=0).fit(table, y)
    with pytest.raises(InputError, match="pass a table"):
        model.predict(np.zeros((3, 3)))
    with pytest.raises(InputError, match="encode text"):
        DecisionMachineClassifier().fit(table.to_numpy(), y)


def test_warm_start_may_be_asked_for_after_a_cold_one():
    X, y = squares(60)
    model = DecisionMachineClassifier(3, max_leaves=4, n_iterations=0).fit(X, y)
    model.set_params(warm_start=True, n_trees=4).fit(X, y)
    assert model.score(X, y) > 0.6


def test_columns_are_named_where_they_cost_or_have_a_direction():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    options = {"max_leaves": 6, "n_iterations": 20, "n_threads": 1}
    tree = DecisionMachineRegressor(**options, monotone={"bmi": 1}, feature_costs={"s5": 9.0})
    tree.fit(X, y)
    assert tree.machine_.is_monotone("bmi").verdict == "proven"
    assert "s5" not in str(tree.machine_.rules())
    with pytest.raises(dm.InputError, match="'weight', which X does not have"):
        DecisionMachineRegressor(**options, monotone={"weight": 1}).fit(X, y)


@pytest.mark.parametrize("other", [{"n_trees": 3}, {"oblique": True}, {"soft": True}])
def test_what_only_the_search_for_one_tree_knows_is_refused_elsewhere(other):
    X, y = load_diabetes(return_X_y=True)
    for own in ({"criterion": "poisson"}, {"leaf_cost": 0.1}, {"time_limit": 1.0}):
        with pytest.raises(dm.InputError, match=next(iter(own))):
            DecisionMachineRegressor(**other, **own).fit(X, y)


def test_a_size_is_chosen_by_the_criterion():
    X, y = load_breast_cancer(return_X_y=True)
    options = {"max_leaves": "auto", "max_depth": 2, "n_iterations": 5, "n_threads": 1}
    tree = DecisionMachineClassifier(**options, criterion="auc").fit(X, y)
    assert tree.path_.name == "AUC"
    assert tree.path_.score[0] == pytest.approx(0.5)
    assert tree.path_.score[-1] > 0.9
