"""Treelite's models and checkpoints answer as GTIL does, to the bit."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import decision_machines as dm

treelite = pytest.importorskip("treelite", reason="treelite has no wheel for this Python")


@functools.cache
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype("f4")
    X[:, 3] = rng.integers(0, 6, 300)
    X[::9, 1] = np.nan
    return X, (np.nan_to_num(X[:, 0] + X[:, 1]) > 0).astype(int), rng.integers(0, 3, 300)


def rows(dtype):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4)) * 2
    X[:, 3] = rng.integers(-3, 12, 400)
    X[::7, 0], X[1::7, 1], X[2::7, 3] = np.nan, np.inf, 2.0**25
    X[3::7, 3] = np.nan
    X[4::7, 3] += 0.5
    return X.astype(dtype)


def xgboost(objective, y, **settings):
    import xgboost as xgb

    settings = {"max_depth": 4, "objective": objective, "nthread": 1} | settings
    booster = xgb.train(settings, xgb.DMatrix(data()[0], y), 5)
    return treelite.frontend.from_xgboost(booster)


def lightgbm(objective, y, **settings):
    import lightgbm as lgb

    settings = {"objective": objective, "verbose": -1, "num_leaves": 9, "num_threads": 1} | settings
    train = lgb.Dataset(data()[0], y, categorical_feature=[3])
    return treelite.frontend.from_lightgbm(lgb.train(settings, train, 5))


def sklearn(cls, y, **settings):
    import sklearn.ensemble

    model = getattr(sklearn.ensemble, cls)(**{"n_estimators": 6, "random_state": 0} | settings)
    return treelite.sklearn.import_model(model.fit(np.nan_to_num(data()[0]), y))


MODELS = {
    "xgboost": lambda: xgboost("reg:squarederror", data()[1]),
    "logistic": lambda: xgboost("binary:logistic", data()[1]),
    "poisson": lambda: xgboost("count:poisson", data()[2]),
    "hinge": lambda: xgboost("binary:hinge", data()[1], base_score=0.5),
    "classes": lambda: xgboost("multi:softprob", data()[2], num_class=3, base_score=0.5),
    "categories": lambda: lightgbm("binary", data()[1], sigmoid=0.7, min_data_per_group=1),
    "one against all": lambda: lightgbm("multiclassova", data()[2], num_class=3),
    "softmax of float64": lambda: lightgbm("multiclass", data()[2], num_class=3),
    "softplus": lambda: lightgbm("cross_entropy_lambda", data()[1]),
    "forest": lambda: sklearn("RandomForestClassifier", data()[2], max_depth=4),
    "numbers": lambda: sklearn("RandomForestRegressor", data()[2] + 0.1),
    "several numbers": lambda: sklearn(
        "ExtraTreesRegressor", np.stack([data()[1], data()[2]], axis=1), max_depth=4
    ),
    "boosting": lambda: sklearn("GradientBoostingClassifier", data()[1]),
    "histograms": lambda: treelite.sklearn.import_model(_histograms()),
    "isolation": lambda: treelite.sklearn.import_model(_isolation()),
}


def _isolation():
    import sklearn.ensemble

    return sklearn.ensemble.IsolationForest(n_estimators=5, random_state=0).fit(
        np.nan_to_num(data()[0])
    )


def _histograms():
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=8).fit(data()[0], data()[2])


@functools.cache
def model(name):
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_equal_to_the_bit(name, tmp_path):
    machine = dm.convert(model(name))
    X = rows(model(name).input_type)
    theirs = treelite.gtil.predict(model(name), X, nthread=1)
    ours = machine.predict(X)
    assert ours.dtype == theirs.dtype
    assert np.array_equal(ours, theirs.reshape(ours.shape))
    assert np.array_equal(machine.predict(X[:1]), ours[:1])
    assert np.array_equal(machine.row_function()(X[5]), ours[5])
    assert np.array_equal(machine.predict(pd.DataFrame(X)), ours)
    leaves = treelite.gtil.predict_leaf(model(name), X)
    ids = machine.trees.leaf_ids[machine.apply(X) + machine.trees.leaf_start[:-1]]
    assert np.array_equal(ids, leaves)
    assert dm.certify(machine, model(name))
    model(name).serialize(str(tmp_path / "model"))
    assert dm.load(tmp_path / "model").equals(machine)
    machine.save(tmp_path / "m.dm")
    assert dm.load(tmp_path / "m.dm").equals(machine)


def test_margins_are_raw_scores_where_base_scores_fit():
    for name in ("categories", "forest", "classes"):
        X = rows(model(name).input_type)
        theirs = treelite.gtil.predict(model(name), X, nthread=1, pred_margin=True)
        ours = dm.convert(model(name)).margin(X)
        assert np.array_equal(ours, theirs.reshape(ours.shape))


def test_entries_absent_from_sparse_rows_are_missing():
    X = sp.random(50, 4, 0.5, "csr", dtype=np.float32, random_state=0)
    theirs = treelite.gtil.predict(model("logistic"), sp.csr_matrix(X), nthread=1)
    assert np.array_equal(dm.convert(model("logistic")).predict(X), theirs.ravel())


def test_comparisons_in_every_direction():
    from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

    for op in ("<", "<=", ">", ">=", "=="):
        for default_left in (True, False):
            builder = ModelBuilder(
                threshold_type="float32",
                leaf_output_type="float32",
                metadata=Metadata(
                    num_feature=1,
                    task_type="kRegressor",
                    average_tree_output=False,
                    num_target=1,
                    num_class=[1],
                    leaf_vector_shape=(1, 1),
                ),
                tree_annotation=TreeAnnotation(num_tree=1, target_id=[0], class_id=[0]),
                postprocessor=PostProcessorFunc(name="identity"),
                base_scores=[0.25],
            )
            builder.start_tree()
            builder.start_node(0)
            builder.numerical_test(
                0,
                0.5,
                default_left=default_left,
                opname=op,
                left_child_key=1,
                right_child_key=2,
            )
            builder.end_node()
            for key, value in ((1, 1.0), (2, 2.0)):
                builder.start_node(key)
                builder.leaf(value)
                builder.end_node()
            builder.end_tree()
            found = builder.commit()
            if op == "==":
                with pytest.raises(dm.UnsupportedModelError, match="cmp"):
                    dm.convert(found)
                continue
            half = np.float32(0.5)
            X = np.array([[np.nextafter(half, 0)], [half], [np.nextafter(half, 1)], [np.nan]])
            X = np.concatenate([X, [[np.inf], [-np.inf]]]).astype(np.float32)
            machine = dm.convert(found)
            assert np.array_equal(machine.predict(X), treelite.gtil.predict(found, X).ravel())
            assert dm.certify(machine, found)


def test_files_that_are_cut_off_changed_or_newer_give_our_errors():
    data = model("categories").serialize_bytes()
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(data), 40):
        with pytest.raises(dm.DecisionMachinesError):
            dm.convert(bytes(data[: int(size)]) or b"\x04")
    for _ in range(200):
        changed = bytearray(data)
        changed[rng.integers(14, len(data))] = rng.integers(0, 256)
        try:
            dm.convert(bytes(changed))
        except dm.DecisionMachinesError:
            continue
    with pytest.raises(dm.ModelFormatError, match="after the last tree"):
        dm.convert(bytes(data) + b"\0")
    last = bytearray(data)
    last[-4] = 2  # num_opt_field_per_node
    with pytest.raises(dm.UnsupportedModelError, match="num_opt_field_per_node"):
        dm.convert(bytes(last))
    newer = bytearray(data)
    newer[4] = 99
    with pytest.warns(dm.UntestedReleaseWarning, match=r"Treelite 4\.99"):
        dm.convert(bytes(newer))
