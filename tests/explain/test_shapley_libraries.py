"""Shapley values are the libraries' own."""

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

import decision_machines as dm

RNG = np.random.default_rng(7)
X = RNG.normal(size=(600, 8))
X[RNG.random(X.shape) < 0.05] = np.nan
FILLED = np.nan_to_num(X)
SCORE = np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * RNG.normal(size=600))
TWO = (SCORE > 0).astype(int)
THREE = np.digitize(SCORE, [-0.5, 0.5])
ROWS = X[:40]


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_lightgbm_pred_contrib(y):
    lgb = pytest.importorskip("lightgbm")
    model = lgb.LGBMClassifier(n_estimators=12, verbose=-1).fit(X, y)
    machine = dm.convert(model)
    own = model.booster_.predict(ROWS, pred_contrib=True).reshape(len(ROWS), -1, 9)
    values = machine.shap_values(ROWS).reshape(len(ROWS), 8, -1)
    close(values, np.moveaxis(own[:, :, :8], 1, 2))
    close(np.atleast_1d(machine.shap_base()), own[0, :, 8])


def test_lightgbm_pred_contrib_with_categories():
    lgb = pytest.importorskip("lightgbm")
    data = X.copy()
    data[:, 3] = RNG.integers(0, 9, 600)
    y = SCORE + (data[:, 3] % 3)
    table = lgb.Dataset(data, y, categorical_feature=[3])
    model = lgb.train({"verbose": -1, "min_data_per_group": 5, "cat_smooth": 1}, table, 12)
    own = model.predict(data[:40], pred_contrib=True)
    close(dm.convert(model).shap_values(data[:40]), own[:, :8])


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_xgboost_pred_contribs_and_interactions(y):
    xgb = pytest.importorskip("xgboost")
    model = xgb.XGBClassifier(n_estimators=12, max_depth=4).fit(X, y)
    machine = dm.convert(model)
    booster, rows = model.get_booster(), xgb.DMatrix(ROWS)
    own = booster.predict(rows, pred_contribs=True).reshape(len(ROWS), -1, 9)
    values = machine.shap_values(ROWS).reshape(len(ROWS), 8, -1)
    close(values, np.moveaxis(own[:, :, :8], 1, 2), 2e-5)
    pairs = booster.predict(rows, pred_interactions=True).reshape(len(ROWS), -1, 9, 9)
    between = machine.shap_interaction_values(ROWS).reshape(len(ROWS), 8, 8, -1)
    close(between, np.moveaxis(pairs[:, :, :8, :8], 1, 3), 5e-5)


def catboost_model(y, **more):
    return (
        pytest.importorskip("catboost")
        .CatBoostClassifier(iterations=12, depth=5, verbose=0, allow_writing_files=False, **more)
        .fit(X, y)
    )


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_catboost_shap_values(y):
    cb = pytest.importorskip("catboost")
    model = catboost_model(y)
    machine = dm.convert(model)
    own = model.get_feature_importance(cb.Pool(ROWS), type="ShapValues")
    own = own.reshape(len(ROWS), -1, 9)
    values = machine.shap_values(ROWS).reshape(len(ROWS), 8, -1)
    close(values, np.moveaxis(own[:, :, :8], 1, 2))
    close(np.atleast_1d(machine.shap_base()), own[0, :, 8])


def test_catboost_trees_of_any_shape_add_up_which_its_own_values_do_not():
    cb = pytest.importorskip("catboost")
    model = catboost_model(THREE, grow_policy="Lossguide")
    machine = dm.convert(model)
    margins = model.predict(ROWS, prediction_type="RawFormulaVal")
    close(machine.shap_values(ROWS).sum(axis=1) + machine.shap_base(), margins)
    own = model.get_feature_importance(cb.Pool(ROWS), type="ShapValues")
    close(np.atleast_1d(machine.shap_base()), own[0, :, 8])


FORESTS = {
    "forest": lambda: RandomForestClassifier(8, random_state=0).fit(FILLED, THREE),
    "extra trees": lambda: ExtraTreesRegressor(8, random_state=0).fit(FILLED, SCORE),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=8, random_state=0).fit(FILLED, TWO),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=8).fit(FILLED, TWO),
}


@pytest.mark.parametrize("name", FORESTS)
def test_scikit_learn_models_have_the_values_of_shap(name):
    shap = pytest.importorskip("shap")
    model = FORESTS[name]()
    rows = FILLED[:20]
    ours = dm.TreeExplainer(model)
    theirs = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    expected = theirs.shap_values(rows, check_additivity=False)
    close(ours.shap_values(rows), expected, 1e-10)
    np.testing.assert_allclose(
        np.ravel(ours.expected_value), np.ravel(theirs.expected_value), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["extra trees", "boosting"])
def test_background_values_are_those_of_shap(name):
    shap = pytest.importorskip("shap")
    model = FORESTS[name]()
    rows, background = FILLED[:10], FILLED[100:125]
    ours = dm.TreeExplainer(model, background)
    theirs = shap.TreeExplainer(model, background)
    expected = theirs.shap_values(rows, check_additivity=False)
    close(ours.shap_values(rows), expected, 1e-6)  # shap reads values and thresholds in float32
    assert float(ours.expected_value) == pytest.approx(float(np.ravel(theirs.expected_value)[0]))


def test_probability_values_are_those_of_shap():
    shap = pytest.importorskip("shap")
    model = FORESTS["boosting"]()
    rows, background = FILLED[:5], FILLED[100:110]
    ours = dm.TreeExplainer(model, background, model_output="probability")
    theirs = shap.TreeExplainer(model, background, model_output="probability")
    close(ours.shap_values(rows), theirs.shap_values(rows, check_additivity=False), 1e-6)


def test_a_call_gives_what_the_plots_of_shap_take():
    shap = pytest.importorskip("shap")
    explanation = dm.TreeExplainer(FORESTS["forest"]())(FILLED[:6])
    assert isinstance(explanation, shap.Explanation)
    assert explanation.values.shape == (6, 8, 3)
    assert explanation.base_values.shape == (6, 3)
    assert explanation[0, :, 1].values.shape == (8,)


def test_linear_leaves_are_refused_with_the_reason():
    lgb = pytest.importorskip("lightgbm")
    model = lgb.LGBMRegressor(n_estimators=3, linear_tree=True, verbose=-1).fit(FILLED, SCORE)
    with pytest.raises(dm.UnsupportedModelError, match="linear_tree=False"):
        dm.convert(model).shap_values(FILLED[:2])
