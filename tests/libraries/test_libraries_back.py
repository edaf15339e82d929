"""Models of every library, read, written back and read again: the same machine, certified."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from library_models import data, models, table
from strategies import probe_rows

import decision_machines as dm


def finite_rows(machine, n=60):
    return np.clip(np.nan_to_num(probe_rows(machine, n), nan=0.5), -1e30, 1e30)


# ---------------------------------------------------------------------- XGBoost

XGBOOST = [
    "XGBClassifier",
    "XGBClassifier, 3",
    "XGBRegressor",
    "XGBRegressor, dart",
    "XGBRegressor, poisson",
    "XGBRegressor, vector leaves",
    "XGBClassifier, table",
]


@pytest.mark.parametrize("name", XGBOOST)
def test_xgboost_comes_back_as_the_same_machine(name):
    model = models("xgboost")[name]
    machine = dm.convert(model)
    written = machine.to_xgboost()
    assert dm.convert(written).equals(machine)
    assert dm.certify(machine, written)
    X = table()[0] if "table" in name else finite_rows(machine)
    ask = "predict_proba" if "Classifier" in name else "predict"
    if type(written).__name__ == "Booster":
        import xgboost

        assert np.array_equal(written.predict(xgboost.DMatrix(X)), model.predict(X))
    else:
        assert np.array_equal(getattr(written, ask)(X), getattr(model, ask)(X))
        assert np.array_equal(written.predict(X), model.predict(X))


def test_a_base_score_without_its_like_becomes_a_tree():
    """No base_score has exactly this margin under the logistic objective."""
    machine = dm.convert(models("xgboost")["XGBClassifier"])
    written_somewhere = 0
    for step in range(8):
        base = np.nextafter(machine.output.base, np.float32(9)) + np.float32(step * 1e-3)
        moved = replace(machine, output=replace(machine.output, base=base))
        back = dm.convert(moved.to_xgboost())
        assert back.n_trees - moved.n_trees in (0, 1)
        written_somewhere += back.n_trees > moved.n_trees
        X = finite_rows(moved)
        assert np.array_equal(back.margin(X), moved.margin(X))
        assert np.array_equal(back.predict_proba(X), moved.predict_proba(X))
    assert written_somewhere


def test_a_strict_threshold_is_the_next_float32():
    machine = dm.convert(models("xgboost")["XGBRegressor"])
    text = json.loads(machine.to_xgboost().save_raw("json"))
    tree = text["learner"]["gradient_booster"]["model"]["trees"][0]
    root = np.float32(tree["split_conditions"][0])
    assert machine.t[0] == np.nextafter(root, np.float32(-np.inf))
    for left, right in zip(tree["left_children"], tree["right_children"], strict=True):
        assert left == -1 or right == left + 1


@pytest.mark.parametrize("version", [(2, 0), (3, 0), (3, 1), (3, 2)])
def test_files_of_older_xgboost_hold_the_same_model(version):
    """Read here by the installed one, which knows them all."""
    from decision_machines.libraries.xgboost.write import xgboost_json

    for name in ("XGBRegressor", "XGBClassifier, 3", "XGBRegressor, vector leaves"):
        machine = dm.convert(models("xgboost")[name])
        text = xgboost_json(machine, margins=True, version=version)
        assert json.loads(text)["version"][:2] == list(version)
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(bytearray(text))
        X = finite_rows(machine)
        found = booster.predict(xgboost.DMatrix(X)).reshape(len(X), -1)
        assert np.array_equal(found, machine.margin(X))


# ---------------------------------------------------------------------- LightGBM

LIGHTGBM = [
    "LGBMClassifier",
    "LGBMClassifier, 3",
    "LGBMRegressor",
    "LGBMRegressor, zeros missing",
    "LGBMRegressor, linear",
    "LGBMRegressor, rf",
    "LGBMClassifier, table",
]


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm_comes_back_as_the_same_booster(name):
    model = models("lightgbm")[name]
    machine = dm.convert(model.booster_)
    written = machine.to_lightgbm()
    assert dm.convert(written).equals(machine)
    assert dm.certify(machine, written)
    X = probe_rows(machine, 60)
    for raw in (False, True):
        assert np.array_equal(
            written.predict(X, raw_score=raw),
            model.booster_.predict(X, raw_score=raw),
            equal_nan=True,
        )
    if "table" in name:
        assert np.array_equal(written.predict(table()[0]), model.booster_.predict(table()[0]))


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("sklearn", "DecisionTreeRegressor"),
        ("sklearn", "RandomForestRegressor"),
        ("sklearn", "GradientBoostingClassifier"),
        ("sklearn", "GradientBoostingRegressor"),
        ("sklearn", "HistGradientBoosting"),
        ("sklearn", "HistGradientBoostingRegressor"),
        ("catboost", "CatBoostClassifier"),
        ("catboost", "CatBoostRegressor"),
    ],
)
def test_models_of_others_are_lightgbm_boosters_to_the_bit(library, name):
    machine = dm.convert(models(library)[name])
    written = machine.to_lightgbm()
    X = probe_rows(machine, 200)
    assert np.array_equal(written.predict(X).reshape(len(X), -1), machine.response(X))
    back = dm.convert(written)
    assert np.array_equal(back.response(X), machine.response(X))
    assert dm.certify(back, written)


def test_a_threshold_in_lightgbms_zero_is_refused_by_name():
    machine = dm.convert(models("lightgbm")["LGBMRegressor"])
    t = machine.t.copy()
    t[3] = 0.0
    with pytest.raises(dm.UnsupportedModelError, match=r"node \d+ of tree 0 has the threshold 0.0"):
        replace(machine, t=t).to_lightgbm()


# ---------------------------------------------------------------------- scikit-learn

SKLEARN = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "two targets",
    "two classifications",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "GradientBoosting, 3",
    "GradientBoostingRegressor",
    "HistGradientBoosting",
    "HistGradientBoosting, 3",
    "HistGradientBoostingRegressor",
]


@pytest.mark.parametrize("name", SKLEARN)
def test_sklearn_comes_back_as_the_same_model(name):
    model = models("sklearn")[name]
    machine = dm.convert(model)
    written = machine.to_sklearn()
    assert type(written) is type(model)
    assert dm.convert(written).equals(machine)
    assert dm.certify(machine, written)
    X = finite_rows(machine)
    assert np.array_equal(written.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        pairs = zip(written.predict_proba(X), model.predict_proba(X), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


def test_a_boosted_classifiers_start_becomes_its_first_stage():
    model = models("sklearn")["GradientBoostingClassifier"]
    machine = dm.convert(model)
    written = machine.to_sklearn()
    assert written.n_estimators_ == model.n_estimators_ + 1
    X = finite_rows(machine)
    assert np.array_equal(written.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(written.predict(X), model.predict(X))


def test_catboost_and_lightgbm_become_hist_gradient_boosting():
    for library, name in (("catboost", "CatBoostRegressor"), ("lightgbm", "LGBMRegressor")):
        machine = dm.convert(models(library)[name])
        written = machine.to_sklearn()
        assert type(written).__name__ == "HistGradientBoostingRegressor"
        X = probe_rows(machine, 200)
        assert np.array_equal(written.predict(X), machine.predict(X))


def test_a_written_sklearn_model_can_be_pickled_and_cloned():
    import pickle

    from sklearn.base import clone

    machine = dm.convert(models("sklearn")["RandomForestClassifier"])
    written = machine.to_sklearn()
    again = pickle.loads(pickle.dumps(written))
    X = finite_rows(machine)
    assert np.array_equal(again.predict_proba(X), machine.predict_proba(X))
    clone(written)


# ---------------------------------------------------------------------- all


@pytest.mark.parametrize(
    ("library", "name", "write", "says"),
    [
        ("sklearn", "HistGradientBoosting", "to_xgboost", "columns.dtype is float64"),
        ("sklearn", "RandomForestRegressor", "to_xgboost", "summed in float64"),
        ("xgboost", "XGBRegressor", "to_lightgbm", "summed in float32"),
        ("xgboost", "XGBRegressor", "to_sklearn", "float32"),
        ("sklearn", "AdaBoostRegressor", "to_lightgbm", "output.aggregate is 'median'"),
        ("sklearn", "AdaBoostClassifier", "to_sklearn", "samme"),
        ("sklearn", "HistGradientBoosting, 3", "to_lightgbm", "output.link is 'softmax'"),
        ("catboost", "CatBoostClassifier, labels", "to_onnx", "columns.label_hash"),
        ("lightgbm", "LGBMRegressor, linear", "to_treelite", "linear"),
        ("lightgbm", "LGBMRegressor, zeros missing", "to_treelite", "ZERO_AS_NAN"),
    ],
)
def test_what_a_target_cannot_say_is_refused_with_a_way_out(library, name, write, says):
    machine = dm.convert(models(library)[name])
    with pytest.raises(dm.UnsupportedModelError) as caught:
        getattr(machine, write)()
    assert says in caught.value.found
    assert len(caught.value.remedy) > 10


def test_margins_alone_are_written_where_a_link_is_not():
    machine = dm.convert(models("sklearn")["HistGradientBoosting, 3"])
    written = machine.to_lightgbm(margins=True)
    X = probe_rows(machine, 100)
    assert np.array_equal(written.predict(X), machine.margin(X))


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("lightgbm", "LGBMClassifier, table"),
        ("xgboost", "XGBClassifier, table"),
        ("sklearn", "HistGradientBoosting, table"),
        ("catboost", "CatBoostClassifier, labels"),
    ],
)
def test_the_way_out_for_labels_works(library, name):
    """Codes instead of labels, where labels are refused; ONNX has intervals and sets for them."""
    import onnxruntime

    machine = dm.convert(models(library)[name])
    frame = table()[0]
    if library == "catboost":
        frame = frame.assign(color=frame["color"].astype(str), size=frame["size"].astype(str))
    columns = machine.columns.coded()
    codes = machine.features(frame)
    coded = replace(machine, columns=columns)
    assert np.array_equal(coded.margin(codes), machine.margin(frame))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        model = machine.to_onnx(margins=True, labels="codes")
        assert coded.to_onnx(margins=True) == model
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.run(None, {"X": codes.astype(machine.columns.dtype)})[0]
    np.testing.assert_allclose(found, machine.margin(frame), rtol=1e-6, atol=1e-6)


def test_a_missing_value_of_the_users_own_is_refused():
    import xgboost

    X, y = data("number")
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=2, missing=-1.0, n_jobs=1)
    machine = dm.convert(model.fit(np.nan_to_num(X, nan=-1.0), y))
    with pytest.raises(dm.UnsupportedModelError, match=r"missing_value is -1\.0"):
        machine.to_xgboost()


@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm", "catboost"])
def test_treelite_has_equal_margins_and_leaves(library):
    import treelite

    written = 0
    for machine in map(dm.convert, models(library).values()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dm.InexactWarning)
            try:
                model = machine.to_treelite()
            except dm.UnsupportedModelError:
                continue
        written += 1
        with np.errstate(over="ignore"):
            X = probe_rows(machine, 60).astype(machine.output.dtype)
        found = treelite.gtil.predict(model, X, nthread=1, pred_margin=True)
        assert np.array_equal(found.reshape(len(X), -1), machine.margin(X))
        answers = treelite.gtil.predict(model, X, nthread=1).reshape(len(X), -1)
        np.testing.assert_allclose(answers, machine.response(X), rtol=1e-6, atol=1e-6)
    assert written >= 3


def test_treelites_own_links_are_told():
    machine = dm.convert(models("lightgbm")["LGBMClassifier"])
    with pytest.warns(dm.InexactWarning, match="'expit' is Treelite's"):
        machine.to_treelite()
