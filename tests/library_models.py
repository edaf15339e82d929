"""Small fitted models of every library, made once and shared by tests."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from threadpoolctl import threadpool_limits


@functools.cache
def data(kind):
    """(X, y): "two" and "three" classes, "number"; a few features, NaN among them."""
    X, y = {"two": load_breast_cancer, "three": load_iris, "number": load_diabetes}[kind](
        return_X_y=True
    )
    X, y = X[:, :6].copy(), y.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    return X, y


@functools.cache
def table():
    """(table, y): a column of numbers, one of text labels and one of numbered labels."""
    rng = np.random.default_rng(1)
    n = 300
    color, size = rng.integers(4, size=n), rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            "weight": rng.standard_normal(n),
            "color": pd.Categorical.from_codes(color, ["red", "green", "blue", "grey"]),
            "size": pd.Categorical.from_codes(size, [1, 2, 5]),
        }
    )
    return frame, (frame["weight"] > 0) ^ (color == 2) ^ (size == 1)


def _sklearn():
    from sklearn import ensemble, tree

    yes, number, three = data("two"), data("number"), data("three")
    words = (three[0], np.array(["setosa", "versicolor", "virginica"])[three[1]])
    plain = (np.nan_to_num(yes[0]), yes[1].astype(bool))
    small = {"max_depth": 4, "random_state": 0}
    yield "DecisionTreeClassifier", tree.DecisionTreeClassifier(**small), words
    yield "DecisionTreeRegressor", tree.DecisionTreeRegressor(**small), number
    two = (number[0], np.column_stack([number[1], -number[1]]))
    yield "two targets", tree.DecisionTreeRegressor(**small), two
    both = (three[0], np.column_stack([three[1], np.array(["a", "b"])[three[1] % 2]]))
    yield "two classifications", tree.DecisionTreeClassifier(**small), both
    yield "RandomForestClassifier", ensemble.RandomForestClassifier(5, **small), words
    yield "RandomForestRegressor", ensemble.RandomForestRegressor(5, **small), number
    boosting = {"n_estimators": 5, **small}
    yield "GradientBoostingClassifier", ensemble.GradientBoostingClassifier(**boosting), plain
    three_plain = (np.nan_to_num(words[0]), words[1])
    yield "GradientBoosting, 3", ensemble.GradientBoostingClassifier(**boosting), three_plain
    number_plain = (np.nan_to_num(number[0]), number[1])
    yield "GradientBoostingRegressor", ensemble.GradientBoostingRegressor(**boosting), number_plain
    yield "AdaBoostClassifier", ensemble.AdaBoostClassifier(n_estimators=5, random_state=0), plain
    yield "AdaBoostRegressor", ensemble.AdaBoostRegressor(n_estimators=5), number_plain
    isolation = ensemble.IsolationForest(n_estimators=5, random_state=0)
    yield "IsolationForest", isolation, (plain[0], None)
    hist = {"max_iter": 5, "max_depth": 4, "random_state": 0}
    yield "HistGradientBoosting", ensemble.HistGradientBoostingClassifier(**hist), yes
    yield "HistGradientBoosting, 3", ensemble.HistGradientBoostingClassifier(**hist), words
    yield "HistGradientBoostingRegressor", ensemble.HistGradientBoostingRegressor(**hist), number
    from_table = ensemble.HistGradientBoostingClassifier(categorical_features="from_dtype", **hist)
    yield "HistGradientBoosting, table", from_table, table()


def _xgboost():
    import xgboost

    small = {"n_estimators": 5, "max_depth": 3, "n_jobs": 1, "random_state": 0}
    yield "XGBClassifier", xgboost.XGBClassifier(**small), data("two")
    yield "XGBClassifier, 3", xgboost.XGBClassifier(**small), data("three")
    yield "XGBRegressor", xgboost.XGBRegressor(**small), data("number")
    dart = xgboost.XGBRegressor(booster="dart", rate_drop=0.5, **small)
    yield "XGBRegressor, dart", dart, data("number")
    poisson = xgboost.XGBRegressor(objective="count:poisson", **small)
    yield "XGBRegressor, poisson", poisson, data("number")
    X, y = data("number")
    vectors = xgboost.XGBRegressor(multi_strategy="multi_output_tree", **small)
    yield "XGBRegressor, vector leaves", vectors, (X, np.column_stack([y, -y]))
    categories = xgboost.XGBClassifier(enable_categorical=True, **small)
    yield "XGBClassifier, table", categories, table()


def _lightgbm():
    import lightgbm

    small = {"n_estimators": 5, "num_leaves": 7, "n_jobs": 1, "verbose": -1, "random_state": 0}
    yield "LGBMClassifier", lightgbm.LGBMClassifier(**small), data("two")
    words = np.array(["setosa", "versicolor", "virginica"])[data("three")[1]]
    yield "LGBMClassifier, 3", lightgbm.LGBMClassifier(**small), (data("three")[0], words)
    yield "LGBMRegressor", lightgbm.LGBMRegressor(**small), data("number")
    zeros = lightgbm.LGBMRegressor(zero_as_missing=True, **small)
    yield "LGBMRegressor, zeros missing", zeros, data("number")
    linear = lightgbm.LGBMRegressor(linear_tree=True, **small)
    yield "LGBMRegressor, linear", linear, data("number")
    forest = lightgbm.LGBMRegressor(
        boosting_type="rf", bagging_freq=1, bagging_fraction=0.6, **small
    )
    yield "LGBMRegressor, rf", forest, data("number")
    yield "LGBMClassifier, table", lightgbm.LGBMClassifier(**small), table()


def _catboost():
    import catboost

    small = {"iterations": 5, "depth": 3, "verbose": 0, "thread_count": 1, "random_seed": 0}
    small["allow_writing_files"] = False
    yield "CatBoostClassifier", catboost.CatBoostClassifier(**small), data("two")
    yield "CatBoostClassifier, 3", catboost.CatBoostClassifier(**small), data("three")
    yield "CatBoostRegressor", catboost.CatBoostRegressor(**small), data("number")
    frame, y = table()
    frame = frame.assign(color=frame["color"].astype(str), size=frame["size"].astype(str))
    one_hot = catboost.CatBoostClassifier(one_hot_max_size=10, cat_features=[1, 2], **small)
    yield "CatBoostClassifier, labels", one_hot, (frame, y.astype(int))


LIBRARIES = {
    "sklearn": _sklearn,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
}


@functools.cache
def models(library):
    """{name: fitted model} of one library, fitted on one thread."""
    with threadpool_limits(1):
        return {name: model.fit(X, y) for name, model, (X, y) in LIBRARIES[library]()}


@functools.cache
def onnx_models():
    """{name: onnx.ModelProto}: scikit-learn's forests through skl2onnx."""
    from skl2onnx import to_onnx

    found = {}
    for name in ("RandomForestClassifier", "RandomForestRegressor", "GradientBoostingRegressor"):
        model = models("sklearn")[name]
        X = np.zeros((1, 6 if "Classifier" not in name else 4), np.float32)
        found[name] = to_onnx(model, X, options={"zipmap": False} if "Cl" in name else None)
    return found
