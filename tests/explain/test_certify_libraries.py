"""Every library's models are proven, whatever their objective, boosting and categories."""

from __future__ import annotations

import warnings

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
)

import decision_machines as dm

RNG = np.random.default_rng(0)
X, Y = load_breast_cancer(return_X_y=True)
X = np.where(RNG.random((len(X), 8)) < 0.1, np.nan, X[:, :8])
ZEROS = np.where(RNG.random(X.shape) < 0.3, 0.0, X)
IRIS, KIND = load_iris(return_X_y=True)
MIXED = np.c_[RNG.integers(0, 12, 400), RNG.random((400, 3))]
ODD = ((MIXED[:, 0] % 3 == 1) ^ (MIXED[:, 1] > 0.5)).astype(int)

LIGHT = {"verbose": -1, "num_leaves": 8, "n_estimators": 5, "n_jobs": 1}
CAT = {"iterations": 6, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


def xgboost_train(data, label, rounds=6, types=None, **parameters):
    matrix = xgboost.DMatrix(data, label, feature_types=types, enable_categorical=True)
    return xgboost.train({"max_depth": 4, "nthread": 1, **parameters}, matrix, rounds)


LABELS = [[f"kind {int(k)}", *row] for k, *row in MIXED[:, :3].tolist()]


def catboost_labels():
    pool = catboost.Pool(LABELS, ODD, cat_features=[0])
    return catboost.CatBoostClassifier(**CAT, one_hot_max_size=20).fit(pool)


MODELS = {
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=6, max_depth=4, n_jobs=1).fit(X, Y),
    "xgboost, classes": lambda: xgboost.XGBClassifier(n_estimators=4, n_jobs=1).fit(IRIS, KIND),
    "xgboost, forest": lambda: xgboost.XGBRFRegressor(n_estimators=4, n_jobs=1).fit(X, Y),
    "xgboost, missing": lambda: xgboost.XGBRegressor(n_estimators=4, missing=0.0).fit(ZEROS, Y),
    "xgboost, dart": lambda: xgboost_train(X, Y, booster="dart", rate_drop=0.5),
    "xgboost, categories": lambda: xgboost_train(MIXED, ODD, types=["c", "q", "q", "q"]),
    "xgboost, vectors": lambda: xgboost_train(
        MIXED, np.c_[ODD, 1 - ODD], multi_strategy="multi_output_tree"
    ),
    "lightgbm": lambda: lightgbm.LGBMClassifier(**LIGHT).fit(X, Y),
    "lightgbm, classes": lambda: lightgbm.LGBMClassifier(**LIGHT).fit(IRIS, KIND),
    "lightgbm, categories": lambda: lightgbm.LGBMClassifier(**LIGHT).fit(
        MIXED, ODD, categorical_feature=[0]
    ),
    "lightgbm, forest": lambda: lightgbm.LGBMClassifier(
        **LIGHT, boosting_type="rf", bagging_freq=1, bagging_fraction=0.5
    ).fit(X, Y),
    "lightgbm, zeros": lambda: lightgbm.LGBMClassifier(**LIGHT, zero_as_missing=True).fit(ZEROS, Y),
    "lightgbm, linear": lambda: lightgbm.LGBMRegressor(**LIGHT, linear_tree=True).fit(X, Y),
    "catboost": lambda: catboost.CatBoostClassifier(**CAT).fit(X, Y),
    "catboost, classes": lambda: catboost.CatBoostClassifier(**CAT).fit(IRIS, KIND),
    "catboost, lossguide": lambda: catboost.CatBoostRegressor(**CAT, grow_policy="Lossguide").fit(
        X, Y
    ),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=4).fit(IRIS, KIND),
    "adaboost": lambda: AdaBoostClassifier(n_estimators=4).fit(IRIS, KIND),
    "adaboost, regressor": lambda: AdaBoostRegressor(n_estimators=4).fit(IRIS, KIND),
    "bagging": lambda: BaggingClassifier(n_estimators=4, max_features=0.5).fit(X, Y),
    "isolation forest": lambda: IsolationForest(n_estimators=4).fit(IRIS),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=4).fit(X, Y),
    "hist, classes": lambda: HistGradientBoostingClassifier(max_iter=4).fit(IRIS, KIND),
    "hist, categories": lambda: HistGradientBoostingClassifier(
        max_iter=4, categorical_features=[0]
    ).fit(MIXED, ODD),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_machine_of_every_library_is_proven(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]()
    machine = dm.convert(model)
    certificate = dm.certify(machine, model)
    assert certificate, str(certificate)
    assert certificate.proven + certificate.unreachable == machine.n_tests
    assert certificate.proven > 0


def test_labels_that_a_model_does_not_keep_are_asked_from_given_rows():
    model = catboost_labels()
    machine = dm.convert(model)
    without = dm.certify(machine, model)
    assert not without
    assert without.unknown > 0
    assert without.first_disagreement is None
    assert "give rows" in str(without)
    certificate = dm.certify(machine, model, np.array(LABELS, object))
    assert certificate, str(certificate)
    assert certificate.unknown == 0


@pytest.mark.parametrize("name", ["xgboost", "lightgbm, classes", "catboost", "hist"])
def test_a_changed_value_is_found_in_every_library(name):
    from dataclasses import replace

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]()
    machine = dm.convert(model)
    V = machine.V.copy()
    V[0] = np.nextafter(V[0], V.dtype.type(np.inf))
    assert not dm.certify(replace(machine, V=V), model)


def test_mismatches_are_explained_for_every_library():
    """A float64 machine in place of LightGBM's: NaN and thresholds told apart by row and node."""
    from dataclasses import replace

    model = MODELS["lightgbm"]()
    machine = dm.convert(model)
    missing = -machine.missing
    report = dm.explain_mismatch(replace(machine, missing=missing), model, X)
    assert report
    assert {found.cause for found in report.mismatches} == {
        "missing value: NaN takes different sides"
    }
