"""Labels of features in an ONNX graph: ONNX Runtime looks them up as the machine does."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import decision_machines as dm

COLOURS = ["red", "green", "dark, blue", "żółty"]


def table(m=160, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=m),
            "colour": pd.Categorical(rng.choice(COLOURS, m), COLOURS),
            "label": pd.Categorical(rng.choice(["a", "b", "c"], m)),
            "grade": pd.Categorical(rng.integers(3, 7, m)),
        }
    )
    X.loc[rng.uniform(size=m) < 0.15, "size"] = np.nan
    X.loc[rng.uniform(size=m) < 0.15, "colour"] = None
    X.loc[rng.uniform(size=m) < 0.15, "grade"] = None
    votes = [X["colour"] == "green", X["label"] == "b", X["grade"].astype(float) > 4.5]
    return X, (sum(vote.astype(int) for vote in votes) >= 2).to_numpy().astype(int)


def learned(kind):
    X, y = table()
    if kind == "xgboost":
        import xgboost

        options = {"enable_categorical": True, "n_jobs": 1, "max_cat_to_onehot": 2}
        # Before 3.4 XGBoost does not keep labels beyond ASCII.
        X["colour"] = X["colour"].cat.rename_categories({"żółty": "yellow"})
        return xgboost.XGBClassifier(n_estimators=4, **options).fit(X, y), X
    if kind == "lightgbm":
        import lightgbm

        options = {"min_child_samples": 2, "n_jobs": 1, "verbose": -1, "max_cat_to_onehot": 10}
        return lightgbm.LGBMClassifier(n_estimators=8, **options).fit(X, y), X
    if kind == "hist":
        X = X.drop(columns="grade")
        options = {"categorical_features": [1, 2], "max_iter": 4, "min_samples_leaf": 2}
        return HistGradientBoostingClassifier(**options).fit(X, y), X
    X["grade"] = X["grade"].astype(float)
    return dm.DecisionMachineClassifier(max_leaves=8, n_iterations=5).fit(X, y), X


def fed(session, X):
    """The rows for each input of a session, in order; None is the empty text or NaN."""
    found = {}
    for given, name in zip(session.get_inputs(), X.columns, strict=True):
        column = X[name].astype(object)
        if "string" in given.type:
            values = np.array([v if isinstance(v, str) else "" for v in column], object)
        else:
            kind = np.float64 if "double" in given.type else np.float32
            values = column.astype(float).to_numpy().astype(kind)
        found[given.name] = values[:, None]
    return found


def session_of(model):
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize("operator", ["v3", "v5"])
@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "hist", "own"])
def test_labels_are_looked_up_in_the_graph_to_the_bit(kind, operator):
    source, X = learned(kind)
    machine = dm.convert(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if operator == "v5":  # whose sets read fractions otherwise, though codes have none
            with pytest.raises(dm.UnsupportedModelError, match="use operator='v3'"):
                machine.to_onnx(operator=operator, margins=True)
            return
        model = machine.to_onnx(operator=operator, margins=True)
    session = session_of(model)
    assert [given.name for given in session.get_inputs()] == [
        "label_" if name == "label" else name for name in X.columns
    ]
    margins = session.run(None, fed(session, X))[0]
    ours = machine.margin(X)
    if any(issubclass(w.category, dm.InexactWarning) for w in caught):
        np.testing.assert_allclose(margins, ours, rtol=1e-6)
        ours = ours.astype(np.float32)
    assert np.array_equal(margins.reshape(ours.shape), ours)
    assert len(np.unique(ours)) > 1


@pytest.mark.parametrize("kind", ["hist", "own", "lightgbm"])
def test_labels_that_nobody_saw_are_read_as_the_machine_reads_them(kind):
    source, X = learned(kind)
    machine = dm.convert(source)
    X["colour"] = X["colour"].astype(object)
    X.loc[:40, "colour"] = "a colour that nobody saw"
    if kind == "lightgbm":
        X["colour"] = X["colour"].astype("category")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        session = session_of(machine.to_onnx(margins=True))
    ours = machine.margin(X).astype(np.float32)
    assert np.array_equal(session.run(None, fed(session, X))[0].reshape(ours.shape), ours)


def test_codes_are_taken_where_they_are_asked_for():
    source, X = learned("lightgbm")
    machine = dm.convert(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        session = session_of(machine.to_onnx(margins=True, labels="codes"))
    rows = machine.features(X)
    ours = machine.margin(X).astype(np.float32)
    assert np.array_equal(session.run(None, {"X": rows})[0].reshape(ours.shape), ours)
    with pytest.raises(dm.InputError, match="'text' or 'codes'"):
        machine.to_onnx(labels="numbers")


def test_labels_that_onnx_cannot_look_up_are_refused_with_the_way_out(tmp_path):
    catboost = pytest.importorskip("catboost")
    X, y = table()
    X = X.assign(colour=X["colour"].astype(object).fillna("none"))[["size", "colour"]]
    options = {"iterations": 3, "one_hot_max_size": 10, "verbose": 0, "thread_count": 1}
    source = catboost.CatBoostClassifier(**options, allow_writing_files=False)
    machine = dm.convert(source.fit(X, y, cat_features=["colour"]))
    with pytest.raises(dm.UnsupportedModelError, match="--labels codes"):
        machine.to_onnx()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        session = session_of(machine.to_onnx(margins=True, labels="codes"))
    margins = session.run(None, {"X": machine.features(X)})[0]
    assert np.array_equal(margins[:, 0], machine.margin(X)[:, 0].astype(np.float32))
