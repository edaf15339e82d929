"""scikit-survival's tree models, against the library itself, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "sksurv",
    reason="scikit-survival is not installed: pip install 'decision-machines[sksurv]'",
)

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import (
    ComponentwiseGradientBoostingSurvivalAnalysis,
    ExtraSurvivalTrees,
    GradientBoostingSurvivalAnalysis,
    RandomSurvivalForest,
)
from sksurv.tree import ExtraSurvivalTree, SurvivalTree

import decision_machines as dm

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
TIMES = np.round(np.exp(X[:, 0] + rng.normal(size=120)), 1) + 1
y = np.array(
    list(zip(rng.random(120) < 0.7, TIMES, strict=True)), [("event", bool), ("time", float)]
)
GAPS = np.where(rng.random(X.shape) < 0.1, np.nan, X)
FUNCTIONS = ("predict_survival_function", "predict_cumulative_hazard_function")

FORESTS = {
    "forest": (lambda: RandomSurvivalForest(5, random_state=0), GAPS),
    "extra trees": (lambda: ExtraSurvivalTrees(4, random_state=0), X),
    "tree": (lambda: SurvivalTree(random_state=0), GAPS),
    "extra tree": (lambda: ExtraSurvivalTree(max_depth=3, random_state=0), X),
    "one leaf": (lambda: SurvivalTree(max_depth=1, min_samples_leaf=60, random_state=0), X),
    "Cox": (lambda: GradientBoostingSurvivalAnalysis(n_estimators=8, random_state=0), X),
    "Cox, dropout": (
        lambda: GradientBoostingSurvivalAnalysis(n_estimators=8, dropout_rate=0.3, random_state=0),
        X,
    ),
}


@pytest.mark.parametrize("name", FORESTS)
def test_risks_and_functions(name, tmp_path):
    make, rows = FORESTS[name]
    model = make().fit(rows, y)
    assembly = dm.convert(model)
    assembly.save(tmp_path / "m.dm")
    loaded = dm.load(tmp_path / "m.dm")
    np.testing.assert_array_equal(assembly.event_times, model.unique_times_)
    for read in (assembly, loaded):
        # One row: NumPy adds its hazards up in another order.
        for some in (rows, rows[:2], rows[:1], rows[7:8]):
            np.testing.assert_array_equal(read.predict(some), model.predict(some))
            for verb in FUNCTIONS:
                theirs = getattr(model, verb)(some, return_array=True)
                np.testing.assert_array_equal(getattr(read, verb)(some), theirs)
    assert dm.certify(assembly, model, rows).verdict == "proven"
    with pytest.raises(dm.InputError, match="probabilities"):
        assembly.predict_proba(rows)


def test_low_memory():
    model = RandomSurvivalForest(4, low_memory=True, random_state=0).fit(X, y)
    assembly = dm.convert(model)
    np.testing.assert_array_equal(assembly.predict(X), model.predict(X))
    np.testing.assert_array_equal(assembly.predict(X[:1]), model.predict(X[:1]))
    with pytest.raises(dm.InputError, match="low_memory"):
        assembly.predict_survival_function(X)
    assert dm.certify(assembly, model, X)


@pytest.mark.parametrize("loss", ["squared", "ipcwls"])
def test_times_to_an_event(loss):
    model = GradientBoostingSurvivalAnalysis(loss=loss, n_estimators=6, random_state=0).fit(X, y)
    machine = dm.convert(model)
    assert isinstance(machine, dm.DecisionMachine)
    np.testing.assert_array_equal(machine.predict(X), model.predict(X))
    assert dm.certify(machine, model, X)


def test_behind_a_scaler():
    pipeline = make_pipeline(StandardScaler(), RandomSurvivalForest(3, random_state=0)).fit(X, y)
    assembly = dm.convert(pipeline)
    np.testing.assert_array_equal(assembly.predict(X), pipeline.predict(X))
    np.testing.assert_array_equal(
        assembly.predict_survival_function(X),
        pipeline.predict_survival_function(X, return_array=True),
    )
    assert dm.certify(assembly, pipeline, X).verdict == "proven"


def test_another_forest_is_found_out():
    assembly = dm.convert(RandomSurvivalForest(3, random_state=0).fit(X, y))
    assert not dm.certify(assembly, RandomSurvivalForest(3, random_state=1).fit(X, y))


def test_refused():
    linear = ComponentwiseGradientBoostingSurvivalAnalysis(n_estimators=3).fit(X, y)
    with pytest.raises(dm.UnsupportedModelError, match="linear functions"):
        dm.convert(linear)
    with pytest.raises(dm.InputError, match="not fitted"):
        dm.convert(RandomSurvivalForest())
    model = RandomSurvivalForest(2, random_state=0).fit(X, y)
    model.estimators_[1].gate_ = 1
    with pytest.raises(dm.UnsupportedModelError, match=r"estimators_\[1\]\.gate_"):
        dm.convert(model)
    boosted = GradientBoostingSurvivalAnalysis(n_estimators=2, random_state=0).fit(X, y)
    baseline = boosted._baseline_model
    for place, part in (
        ("", boosted),
        (r"estimators_\[1\]\.", boosted.estimators_[1, 0]),
        (r"_loss\.", boosted._loss),
        (r"_baseline_model\.", baseline),
        (r"_baseline_model\.cum_baseline_hazard_\.", baseline.cum_baseline_hazard_),
        (r"_baseline_model\.baseline_survival_\.", baseline.baseline_survival_),
    ):
        part._gate = 1
        with pytest.raises(dm.UnsupportedModelError, match=f"^[^:]*: {place}_gate is a field"):
            dm.convert(boosted)
        del part._gate
    dm.convert(boosted)
