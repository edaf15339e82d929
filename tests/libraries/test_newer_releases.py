"""A model of a release newer than those tested is read, with a warning that names the release."""

from __future__ import annotations

import json
import pickle
import re
import warnings

import numpy as np
import pytest
from library_models import data, models, onnx_models

import decision_machines as dm
from decision_machines.libraries.registry import libraries

OPTIONAL = ("imblearn", "quantile_forest", "sksurv", "ngboost")
"""Libraries that are not part of every environment that the tests run in."""


def read_with_a_warning(model, release):
    with pytest.warns(dm.UntestedReleaseWarning, match=re.escape(release)) as caught:
        machine = dm.convert(model)
    said = [str(w.message) for w in caught if w.category is dm.UntestedReleaseWarning]
    assert "dm verify" in said[0]
    assert caught[0].filename == __file__
    return machine


def test_every_library_whose_models_are_read_names_the_releases_that_are_tested():
    for library in libraries():
        is_others = library.package not in (None, "decision_machines")
        assert (library.releases is not None) == is_others


def test_the_releases_that_run_here_are_not_newer_than_those_tested():
    import importlib.util
    from importlib.metadata import version

    for library in libraries():
        if library.releases is None:
            continue
        if library.package in OPTIONAL and importlib.util.find_spec(library.package) is None:
            continue  # tests/libraries/<name> says that it is not installed
        package = importlib.import_module(library.package)
        release = getattr(package, "__version__", None) or version(library.package)
        assert not library.releases.is_newer(release), (
            f"{library.name} {release}: run the tests against it, then raise "
            f"libraries/{library.name}/releases.py"
        )


def test_models_of_tested_releases_are_read_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error", dm.UntestedReleaseWarning)
        for library in ("sklearn", "xgboost", "lightgbm", "catboost"):
            dm.convert(next(iter(models(library).values())))
        for model in onnx_models().values():
            dm.convert(model)


def test_xgboost():
    booster = models("xgboost")["XGBRegressor"].get_booster()
    document = json.loads(bytes(booster.save_raw("json")))
    document["version"] = [97, 0, 1]
    machine = read_with_a_warning(json.dumps(document), "XGBoost 97.0.1")
    X = data("number")[0]
    assert np.array_equal(machine.margin(X), dm.convert(booster).margin(X))


@pytest.mark.parametrize("library", ["lightgbm", "sklearn"])
def test_objects_go_by_the_library_that_is_installed(library, monkeypatch):
    package = pytest.importorskip(library)
    model = next(iter(models(library).values()))
    monkeypatch.setattr(package, "__version__", "97.1.0")
    read_with_a_warning(model, "97.1.0")


def small_model(library):
    """A fitted model of a library that builds on scikit-learn, or keeps no release in its files."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0.4).astype(int)
    if library == "imblearn":
        from imblearn.ensemble import BalancedBaggingClassifier

        return BalancedBaggingClassifier(n_estimators=2, random_state=0).fit(X, y)
    if library == "quantile_forest":
        from quantile_forest import RandomForestQuantileRegressor

        return RandomForestQuantileRegressor(2, random_state=0).fit(X, y)
    if library == "sksurv":
        from sksurv.tree import SurvivalTree
        from sksurv.util import Surv

        return SurvivalTree(max_depth=2).fit(X, Surv.from_arrays(y == 1, np.arange(1, 61)))
    if library == "interpret":
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(max_rounds=2, outer_bags=1, n_jobs=1).fit(X, y)
    if library == "ngboost":
        from ngboost import NGBRegressor

        return NGBRegressor(n_estimators=2, verbose=False, random_state=0).fit(X, X[:, 1])
    import ydf

    table = {"a": X[:, 0], "b": X[:, 1], "label": y}
    return ydf.CartLearner(label="label", min_examples=5).train(table, verbose=0)


@pytest.mark.parametrize("library", [*OPTIONAL, "interpret", "ydf"])
def test_models_that_do_not_keep_a_release_go_by_the_one_installed(library, monkeypatch):
    package = pytest.importorskip(library, reason=f"{library} is not installed")
    model = small_model(library)
    if library == "ngboost":  # which tells its release to pip alone
        monkeypatch.setattr("importlib.metadata.version", lambda name: "97.1.0")
    else:
        monkeypatch.setattr(package, "__version__", "97.1.0")
    read_with_a_warning(model, "97.1.0")


def test_a_new_form_of_lightgbms_text_is_refused():
    text = models("lightgbm")["LGBMRegressor"].booster_.model_to_string()
    with pytest.raises(dm.UnsupportedModelError, match="version=v5"):
        dm.convert(text.replace("version=v4", "version=v5"))


def test_catboost(tmp_path):
    path = tmp_path / "m.json"
    models("catboost")["CatBoostRegressor"].save_model(str(path), format="json")
    changed = re.sub(r"tags/v[0-9.]+", "tags/v97.2.1", path.read_text())
    read_with_a_warning(changed, "CatBoost 97.2.1")


def test_onnx():
    import onnx

    for field in ("opset", "ir"):
        model = onnx.ModelProto()
        model.CopyFrom(onnx_models()["RandomForestRegressor"])
        if field == "ir":
            model.ir_version = 97
        else:
            for entry in model.opset_import:
                if not entry.domain:
                    entry.version = 97
        read_with_a_warning(model, "97")


def test_a_pickle_of_a_newer_sklearn(tmp_path):
    path = tmp_path / "m.pkl"
    model = models("sklearn")["DecisionTreeRegressor"]
    import sklearn

    content = pickle.dumps(model).replace(sklearn.__version__.encode(), b"9.9.9")
    path.write_bytes(content)
    with pytest.warns(dm.UntestedReleaseWarning, match=r"scikit-learn 9\.9\.9"):
        dm.load(path, trust=True)
