"""What `dm.tune` promises, seen from outside: libraries, losses, rubbish, interruptions, files."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import decision_machines as dm
from decision_machines.train.tune.descent import Setting

rng = np.random.default_rng(0)
M = 160
X = rng.normal(size=(M, 4))
Z = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
FLAG = (Z > 0).astype(int)
NAME = np.array(["low", "mid", "top"])[np.digitize(Z, [-0.6, 0.6])]
COUNT = rng.poisson(np.exp(0.5 * Z))
GRADE = np.digitize(Z, [-0.6, 0.0, 0.6])
QUERY = np.repeat(np.arange(M // 8), 8)
TRAIN, VALID = slice(0, 112), slice(112, None)
ONE = (Setting(0.3, 0.05, 0.05, 0.05),)
QUICK = {"epochs": 2, "settings": ONE, "verbose": False, "n_threads": 1}


def xgboost(kind="XGBRegressor", **options):
    import xgboost

    return getattr(xgboost, kind)(n_estimators=4, max_depth=3, n_jobs=1, **options)


def lightgbm(kind="LGBMRegressor", **options):
    import lightgbm

    return getattr(lightgbm, kind)(
        n_estimators=4, num_leaves=6, min_child_samples=5, n_jobs=1, verbose=-1, **options
    )


def catboost(kind="CatBoostRegressor", **options):
    import catboost

    return getattr(catboost, kind)(
        iterations=4, depth=3, thread_count=1, verbose=0, allow_writing_files=False, **options
    )


MODELS = {
    "tree": (lambda: DecisionTreeRegressor(max_leaf_nodes=6), Z),
    "tree of two targets": (lambda: DecisionTreeRegressor(max_leaf_nodes=6), np.c_[Z, -Z]),
    "tree of names": (lambda: DecisionTreeClassifier(max_leaf_nodes=6), NAME),
    "forest": (lambda: RandomForestRegressor(4, max_depth=3, random_state=0), Z),
    "forest of flags": (lambda: ExtraTreesClassifier(4, max_depth=3, random_state=0), FLAG > 0),
    "boosting, quantile": (
        lambda: GradientBoostingRegressor(n_estimators=4, loss="quantile", alpha=0.8),
        Z,
    ),
    "boosting of names": (lambda: GradientBoostingClassifier(n_estimators=3), NAME),
    "histograms, Poisson": (
        lambda: HistGradientBoostingRegressor(max_iter=4, loss="poisson", min_samples_leaf=5),
        COUNT,
    ),
    "histograms of flags": (lambda: HistGradientBoostingClassifier(max_iter=4), FLAG),
    "xgboost": (xgboost, Z),
    "xgboost of flags": (lambda: xgboost("XGBClassifier"), FLAG),
    "xgboost of classes": (lambda: xgboost("XGBClassifier"), GRADE),
    "xgboost, Poisson": (lambda: xgboost(objective="count:poisson"), COUNT),
    "lightgbm": (lightgbm, Z),
    "lightgbm of names": (lambda: lightgbm("LGBMClassifier"), NAME),
    "lightgbm, quantile": (lambda: lightgbm(objective="quantile", alpha=0.8), Z),
    "catboost": (catboost, Z),
    "catboost of names": (lambda: catboost("CatBoostClassifier"), NAME),
    "catboost, Poisson": (lambda: catboost(loss_function="Poisson"), COUNT),
}


def own_loss(objective, machine, margin, y):
    """The loss by a formula written here, of the margins that the machine or module gives."""
    margin = np.asarray(margin, np.float64).reshape(len(y), -1)
    if objective == "squared":
        return np.mean((margin - y.reshape(len(y), -1)) ** 2)
    if objective.startswith("quantile"):
        error = y - margin[:, 0]
        return np.mean(np.maximum(0.8 * error, -0.2 * error))
    if objective == "poisson":
        return np.mean(np.exp(margin[:, 0]) - y * margin[:, 0])
    code = np.searchsorted(machine.output.classes[0], y)
    if objective == "brier":
        return np.mean(((margin - np.eye(margin.shape[1])[code]) ** 2).sum(1))
    if margin.shape[1] == 1:
        return np.mean(np.logaddexp(0, np.where(code == 1, -margin[:, 0], margin[:, 0])))
    return np.mean(np.log(np.exp(margin).sum(1)) - margin[np.arange(len(y)), code])


@pytest.mark.parametrize("name", MODELS)
def test_no_answer_is_worse_on_validation_and_the_hard_one_is_an_ordinary_machine(name, tmp_path):
    make, y = MODELS[name]
    model = make().fit(X[TRAIN], y[TRAIN])
    source = dm.convert(model)
    tuned = dm.tune(model, X[TRAIN], y[TRAIN], validation=(X[VALID], y[VALID]), **QUICK)

    def loss(margin):
        return own_loss(tuned.report.objective, source, margin, y[VALID])

    before = loss(source.margin(X[VALID]))
    assert loss(tuned.machine.margin(X[VALID])) <= before + 1e-6 * abs(before)
    with torch.no_grad():
        soft = tuned.soft.margin(torch.from_numpy(tuned.machine.features(X[VALID])))
    assert loss(soft) <= before + 1e-6 * abs(before)

    # The same labels and shapes, natively, from a file, and as the library itself would answer.
    predicted = tuned.machine.predict(X)
    assert predicted.shape == np.shape(source.predict(X))
    assert predicted.dtype == source.predict(X).dtype
    tuned.machine.save(tmp_path / "tuned.dm")
    assert np.array_equal(dm.load(tmp_path / "tuned.dm").predict(X), predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        tuned.machine.to_onnx()
    if name.startswith("lightgbm"):
        margins = tuned.machine.to_lightgbm().predict(X, raw_score=True)
        assert np.array_equal(margins.reshape(M, -1), tuned.machine.margin(X).reshape(M, -1))
    elif name.startswith("xgboost"):
        written = dm.convert(tuned.machine.to_xgboost())
        assert np.array_equal(written.margin(X), tuned.machine.margin(X))
    elif not name.startswith("catboost"):
        assert np.array_equal(tuned.machine.to_sklearn().predict(X), predicted)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_rankers_are_tuned_for_the_order_within_groups(library):
    make, options = {
        "xgboost": (lambda: xgboost("XGBRanker"), {"qid": QUERY}),
        "lightgbm": (lambda: lightgbm("LGBMRanker"), {"group": np.full(M // 8, 8)}),
        "catboost": (
            lambda: catboost("CatBoostRanker", loss_function="YetiRank"),
            {"group_id": QUERY},
        ),
    }[library]
    model = make().fit(X, GRADE, **options)
    tuned = dm.tune(model, X, GRADE, group=QUERY, refit=False, **QUICK)
    assert tuned.report.objective == "lambdarank"
    assert tuned.report.soft <= tuned.report.source
    assert tuned.report.hard <= tuned.report.source
    held = set(QUERY[tuned.report.validation_rows])
    assert np.isin(QUERY, list(held)).sum() == len(tuned.report.validation_rows)  # whole groups


# -- losses ---------------------------------------------------------------------------------------

BOOSTED = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X[TRAIN], Z[TRAIN])
CLASSES = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X[TRAIN], FLAG[TRAIN])


@pytest.mark.parametrize(
    "loss", [torch.nn.MSELoss(), torch.nn.functional.l1_loss, lambda margin, y: (margin - y) ** 4]
)
def test_any_torch_loss_of_margins_and_targets_will_do(loss):
    tuned = dm.tune(BOOSTED, X, Z, objective=loss, **QUICK)
    assert tuned.report.hard <= tuned.report.source


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda margin, y: None, "NoneType"),
        (lambda margin, y: ((margin - y) ** 2).detach(), "without a gradient"),
        (lambda margin, y: torch.ones(7), r"\(7,\)"),
        (lambda margin, y: margin * float("nan"), "not finite"),
    ],
)
def test_a_loss_that_cannot_be_trained_for_is_refused(loss, words):
    with pytest.raises(dm.InputError, match=words):
        dm.tune(BOOSTED, X, Z, objective=loss, **QUICK)


@pytest.mark.parametrize("objective", ["hinge", "brier", "softmax"])
def test_a_loss_that_the_classes_are_not_trained_for_is_not_silently_another(objective):
    with pytest.raises(dm.InputError, match="use logistic or log_loss"):
        dm.tune(CLASSES, X, FLAG, objective=objective, **QUICK)


# -- what goes in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(X.tolist(), id="lists"),
        pytest.param(pd.DataFrame(X), id="pandas"),
        pytest.param(pl.DataFrame(X), id="polars"),
        pytest.param(scipy.sparse.csr_matrix(X), id="sparse"),
        pytest.param(torch.from_numpy(X), id="torch"),
    ],
)
def test_every_kind_of_rows_gives_the_same_machine(rows):
    expected = dm.tune(BOOSTED, X, Z, **QUICK)
    found = dm.tune(BOOSTED, rows, pd.Series(Z), **QUICK)
    assert found.machine.equals(expected.machine)


def test_categories_and_missing_values_stay_categories_and_missing():
    table = pd.DataFrame(X, columns=list("abcd"))
    table["colour"] = pd.Categorical(rng.choice(["red", "green"], M), categories=["red", "green"])
    table.loc[::5, "a"] = np.nan
    y = Z + 2 * (table["colour"] == "red")
    model = lightgbm().fit(table, y)
    tuned = dm.tune(model, table, y, **QUICK)
    assert np.all(np.isfinite(tuned.machine.predict(table)))
    assert np.array_equal(tuned.machine.columns.rule, dm.convert(model).columns.rule)


def test_zero_weights_are_rows_not_given():
    inside = np.ones(112)
    inside[60:] = 0.0
    options = {**QUICK, "validation": (X[VALID], Z[VALID]), "batch_size": 256}
    half = dm.tune(BOOSTED, X[TRAIN], Z[TRAIN], sample_weight=inside, **options)
    assert half.report.hard <= half.report.source
    spoiled = Z[TRAIN].copy()
    spoiled[60:] = 1e3
    other = dm.tune(BOOSTED, X[TRAIN], spoiled, sample_weight=inside, **options)
    assert other.machine.equals(half.machine)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100])
def test_targets_of_any_scale_are_tuned_alike(scale):
    machine = dm.convert(DecisionTreeRegressor(max_depth=3, random_state=0).fit(X[TRAIN], Z[TRAIN]))
    scaled = replace(machine, V=machine.V * scale)
    one = dm.tune(machine, X, Z, validation=(X[VALID], Z[VALID]), **QUICK).report
    judge = (X[VALID], Z[VALID] * scale)
    other = dm.tune(scaled, X, Z * scale, validation=judge, **QUICK).report
    assert one.soft < one.source
    assert np.isclose(other.hard / other.source, one.hard / one.source)
    assert np.isclose(other.soft / other.source, one.soft / one.source)


@pytest.mark.parametrize("scale", [1e-20, 1e20, 1e300])
def test_features_of_any_scale_give_no_nan(scale):
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5).fit(X * scale, Z)
    tuned = dm.tune(model, X * scale, Z, **QUICK)
    assert all(torch.isfinite(p).all() for p in tuned.soft.parameters())
    assert np.all(np.isfinite(tuned.machine.V))
    assert np.all(np.isfinite(tuned.machine.t))


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        pytest.param(X[:2], FLAG[:2], id="two rows"),
        pytest.param(np.ones((40, 4)), FLAG[:40], id="constant features"),
        pytest.param(X[:40], np.zeros(40, int), id="one class"),
        pytest.param(np.repeat(X[:4], 10, 0), np.repeat(FLAG[:4], 10), id="repeated rows"),
        pytest.param(np.tile(X, (7, 1))[:1001], np.arange(1001) == 17, id="one among a thousand"),
        pytest.param(np.where(X > 1, np.nan, X), FLAG, id="missing values"),
        pytest.param(np.where(X > 2, np.inf, X), FLAG, id="infinities"),
    ],
)
def test_poor_rows_do_no_harm(rows, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned = dm.tune(CLASSES, rows, y, **QUICK)
    assert tuned.report.soft <= tuned.report.source
    assert tuned.report.hard <= tuned.report.source
    assert np.all(np.isfinite(tuned.machine.predict_proba(rows)))


BAD = {
    "weights of text": ({"sample_weight": ["a"] * M}, "sample_weight is not an array of numbers"),
    "a negative weight": ({"sample_weight": np.r_[-1.0, np.ones(M - 1)]}, "-1.0 in row 0"),
    "weights of 0": ({"sample_weight": np.zeros(M)}, "rows to train on have weights of 0"),
    "an array as validation": ({"validation": X}, "validation=a ndarray"),
    "no rows to judge by": ({"validation": (X[:0], Z[:0])}, "0 rows to judge by"),
    "a negative seed": ({"seed": -1}, "seed=-1"),
    "no seed": ({"seed": None}, "seed=None"),
    "a number as setting": ({"settings": [1]}, "settings with 1"),
    "resume without a file": ({"resume": True}, "without a checkpoint"),
    "no folder": ({"checkpoint": "no/such/folder/run.pt"}, "in a folder that does not exist"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_refused_in_words(case):
    options, words = BAD[case]
    with pytest.raises(dm.InputError, match=words) as found:
        dm.tune(BOOSTED, X, Z, **{**QUICK, **options})
    assert "What to do" in str(found.value)
    assert len(str(found.value)) < 400


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "y is None"),
        (3.0, "y is 3.0"),
        (Z + 1j, "complex"),
        (np.where(Z > 1, np.nan, Z), "= nan"),
        (["a"] * M, "such as 'a'"),
        (Z[:-1], "160 rows of X and 159 of y"),
        (np.c_[Z, Z], "1 output"),
    ],
)
def test_bad_targets_are_refused_in_words(y, words):
    with pytest.raises(dm.InputError, match=words):
        dm.tune(BOOSTED, X, y, **QUICK)


# -- a run and its end ----------------------------------------------------------------------------


def test_early_stopping_ends_what_helps_no_more():
    options = {**QUICK, "epochs": 30, "patience": 2, "settings": (Setting(0.8, 0.0, 0.0, 2.0),)}
    tuned = dm.tune(BOOSTED, X[TRAIN], Z[TRAIN], validation=(X[VALID], Z[VALID]), **options)
    assert tuned.report.trials[0].epochs < 30


def test_threads_of_torch_are_as_they_were_afterwards():
    before = torch.get_num_threads()
    dm.tune(BOOSTED, X, Z, **{**QUICK, "n_threads": before + 1})
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("after", [1, 4])
def test_a_run_that_is_killed_goes_on_from_its_checkpoint(tmp_path, after):
    options = {**QUICK, "epochs": 3, "settings": (*ONE, Setting(0.5, 0.02, 0.02, 0.02))}
    calls = 0

    def killing(margin, y):
        nonlocal calls
        calls += 1
        if calls > 10 * after:
            raise RuntimeError("killed")
        return (margin - y) ** 2

    killing.__name__ = "same"

    def same(margin, y):
        return (margin - y) ** 2

    whole = dm.tune(BOOSTED, X, Z, objective=same, **options)
    state = tmp_path / "run.pt"
    with pytest.raises(RuntimeError, match="killed"):
        dm.tune(BOOSTED, X, Z, objective=killing, checkpoint=state, **options)
    gone_on = dm.tune(BOOSTED, X, Z, objective=same, checkpoint=state, resume=True, **options)
    assert gone_on.machine.equals(whole.machine)
    assert gone_on.report.trials == whole.report.trials


def test_an_interruption_within_the_loss_gives_the_best_so_far():
    calls = 0

    def interrupted(margin, y):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return (margin - y) ** 2

    options = {**QUICK, "epochs": 20, "objective": interrupted}
    tuned = dm.tune(BOOSTED, X, Z, keep_best_on_interrupt=True, **options)
    assert tuned.report.interrupted
    assert tuned.report.hard <= tuned.report.source
    assert np.all(np.isfinite(tuned.machine.predict(X)))
    calls = 0
    with pytest.raises(KeyboardInterrupt):
        dm.tune(BOOSTED, X, Z, **options)


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\x80\x04\x95\x05\x00", b"PK\x03\x04 cut"])
def test_a_checkpoint_that_is_none_is_refused_without_a_warning(tmp_path, content):
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dm.InputError, match="not a checkpoint, or a damaged one"):
            dm.tune(BOOSTED, X, Z, checkpoint=path, resume=True, **QUICK)


def test_the_report_says_what_changed_and_nothing_where_nothing_did():
    tuned = dm.tune(BOOSTED, X[TRAIN], Z[TRAIN], validation=(X[VALID], Z[VALID]), **QUICK)
    moved = np.count_nonzero(tuned.machine.t != dm.convert(BOOSTED).t)
    assert f"{tuned.report.thresholds_moved} of {len(tuned.machine.t)} moved" in str(tuned.report)
    assert (tuned.report.thresholds_moved > 0) == (moved > 0)
    nothing = (Setting(0.8, 0.0, 0.0, 0.0),)
    perfect = DecisionTreeRegressor().fit(X, Z)
    same = dm.tune(perfect, X, Z, **{**QUICK, "settings": nothing})
    assert str(same.report).count("the source, unchanged") == 2
    assert "trained again" not in str(same.report)


def test_a_model_of_a_numeric_pandas_table_is_written_as_onnx():
    table = pd.DataFrame(X, columns=list("abcd"))
    tuned = dm.tune(lightgbm().fit(table, Z), table, Z, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        written = dm.convert(tuned.machine.to_onnx(operator="v5"))
    assert np.allclose(written.predict(X).ravel(), tuned.machine.predict(table))
