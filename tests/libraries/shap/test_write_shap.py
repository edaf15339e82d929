"""SHAP: the values of the written dictionary are those of the source model."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from library_models import models

import decision_machines as dm

shap = pytest.importorskip("shap", reason="the package shap is not installed")


def explained_by_shap(model, *background, **how):
    """shap's explainer of the library's own model."""
    release = tuple(int(part) for part in shap.__version__.split(".")[:2])
    if release < (0, 50) and type(model).__module__.startswith("xgboost"):
        pytest.skip(f"shap {shap.__version__} does not read the base scores of XGBoost 3.1 on")
    return shap.TreeExplainer(model, *background, **how)


def rows(machine, n):
    """Rows away from every threshold: SHAP itself rounds the thresholds of some models."""
    rng = np.random.default_rng(0)
    features = machine.columns.feature[machine.selection]
    X = np.empty((n, machine.n_features))
    for f in range(machine.n_features):
        t = np.unique(machine.t[features == f].astype(np.float64))
        t = t[np.isfinite(t)] if np.any(np.isfinite(t)) else np.array([0.0])
        X[:, f] = rng.choice(t, n) + rng.normal(size=n) * (t.std() + 0.1)
    return X.astype(np.float32).astype(np.float64)


SOURCES = [
    ("sklearn", "DecisionTreeClassifier"),
    ("sklearn", "DecisionTreeRegressor"),
    ("sklearn", "two targets"),
    ("sklearn", "RandomForestRegressor"),
    ("sklearn", "RandomForestClassifier"),
    ("sklearn", "GradientBoostingClassifier"),
    ("sklearn", "HistGradientBoosting, 3"),
    ("sklearn", "HistGradientBoostingRegressor"),
    ("xgboost", "XGBClassifier"),
    ("xgboost", "XGBClassifier, 3"),
    ("xgboost", "XGBRegressor"),
    ("lightgbm", "LGBMClassifier"),
    ("lightgbm", "LGBMClassifier, 3"),
    ("lightgbm", "LGBMRegressor"),
    ("catboost", "CatBoostClassifier"),
    ("catboost", "CatBoostRegressor"),
]


@pytest.mark.parametrize(("library", "name"), SOURCES)
def test_values_by_background_rows_are_those_of_the_source(library, name):
    model = models(library)[name]
    machine = dm.convert(model)
    X = rows(machine, 40)
    how = {"feature_perturbation": "interventional"}
    ours = shap.TreeExplainer(machine.to_shap(), X[:10], **how)
    theirs = explained_by_shap(model, X[:10], **how)
    a = np.asarray(ours.shap_values(X))
    b = np.asarray(theirs.shap_values(X, check_additivity=False))
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * np.abs(b).max())
    total = a.sum(axis=1).reshape(len(X), -1) + np.atleast_1d(ours.expected_value)
    np.testing.assert_allclose(total, machine.margin(X), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("sklearn", "DecisionTreeClassifier"),
        ("sklearn", "DecisionTreeRegressor"),
        ("sklearn", "HistGradientBoostingRegressor"),
        ("lightgbm", "LGBMRegressor"),
        ("xgboost", "XGBRegressor"),
    ],
)
def test_values_by_paths_are_those_of_the_source_given_the_training_rows(library, name):
    from library_models import data

    model = models(library)[name]
    machine = dm.convert(model)
    trained_on = data("three" if machine.n_features == 4 else "number")[0]
    X = rows(machine, 40)
    ours = np.asarray(shap.TreeExplainer(machine.to_shap(trained_on)).shap_values(X))
    theirs = np.asarray(explained_by_shap(model).shap_values(X))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.abs(theirs).max())


def test_values_by_paths_of_a_boosted_classifier_are_of_rows_counted_not_of_xgboosts_covers():
    """XGBoost weighs rows by their hessians and keeps that as cover, and so does its machine."""
    from library_models import data

    model = models("xgboost")["XGBClassifier"]
    machine = dm.convert(model)
    X = data("two")[0]
    explainer = shap.TreeExplainer(machine.to_shap(X))
    ours = np.asarray(explainer.shap_values(X))
    total = ours.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, machine.margin(X)[:, 0], rtol=1e-5, atol=1e-5)
    theirs = np.asarray(explained_by_shap(model).shap_values(X))
    assert np.abs(ours - theirs).max() > 1e-3 * np.abs(theirs).max()
    assert "differ" in dm.DecisionMachine.to_shap.__doc__
    by_covers = np.asarray(shap.TreeExplainer(machine.to_shap()).shap_values(X))
    np.testing.assert_allclose(by_covers, theirs, rtol=1e-4, atol=1e-5 * np.abs(theirs).max())


def test_values_are_shapleys_on_the_thresholds_too():
    """By the definition: every order of the features, every background row."""
    machine = dm.convert(models("sklearn")["RandomForestClassifier"])
    n = machine.n_features
    X = rows(machine, 12)
    t = machine.t.astype(np.float64)
    features = machine.columns.feature[machine.selection]
    for f in range(n):
        X[:4, f] = np.resize(t[(features == f) & np.isfinite(t)], 4)
    background = X[4:]
    explainer = shap.TreeExplainer(
        machine.to_shap(), background, feature_perturbation="interventional"
    )
    found = explainer.shap_values(X[:4])
    for x, values in zip(X[:4], found, strict=True):

        def answer(known, x=x):
            rows_ = background.copy()
            rows_[:, list(known)] = x[list(known)]
            return machine.margin(rows_).mean(axis=0)

        for f in range(n):
            others = [g for g in range(n) if g != f]
            expected = sum(
                math.factorial(len(known))
                * math.factorial(n - len(known) - 1)
                / math.factorial(n)
                * (answer((*known, f)) - answer(known))
                for size in range(n)
                for known in itertools.combinations(others, size)
            )
            np.testing.assert_allclose(values[f], expected, atol=1e-7)


def test_values_by_paths_need_rows_and_shap_says_so():
    machine = dm.convert(models("sklearn")["DecisionTreeRegressor"])
    explainer = shap.TreeExplainer(replace(machine, cover=None).to_shap())
    with pytest.raises(Exception, match="does not cover all the leaves"):
        explainer.shap_values(rows(machine, 3))


def test_category_sets_and_linear_leaves_are_refused():
    for library, name in (
        ("xgboost", "XGBClassifier, table"),
        ("lightgbm", "LGBMRegressor, linear"),
    ):
        with pytest.raises(dm.UnsupportedModelError, match="TreeExplainer"):
            dm.convert(models(library)[name]).to_shap()
