"""Members that feed each other: chains, boosting from a model, stacks that pass features on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import decision_machines as dm

X, LABELS = make_multilabel_classification(150, 5, n_classes=3, random_state=0)
X = X + np.random.default_rng(0).normal(size=X.shape)
Z, THREE = make_classification(150, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
TWO = np.where(THREE > 0, "yes", "no")
VALUES = Z[:, 0] + Z[:, 1] ** 2


def forest():
    return RandomForestClassifier(3, max_depth=5, random_state=0)


def boost(**settings):
    return GradientBoostingClassifier(n_estimators=3, random_state=0, **settings)


def regress(**settings):
    return GradientBoostingRegressor(n_estimators=3, random_state=0, **settings)


MODELS = {
    "chain": (lambda: ClassifierChain(forest(), order=[2, 0, 1]), X, LABELS),
    "chain of probabilities": (
        lambda: ClassifierChain(boost(), chain_method="predict_proba"), X, LABELS
    ),
    "chain of scores": (
        lambda: ClassifierChain(boost(), chain_method="decision_function"), X, LABELS
    ),
    "chain of values": (
        lambda: RegressorChain(DecisionTreeRegressor(max_depth=3), order=[1, 0]), X, X[:, :2] ** 2
    ),
    "from a forest": (
        lambda: regress(init=RandomForestRegressor(3, random_state=0)), Z, VALUES
    ),
    "from a tree": (
        lambda: regress(init=DecisionTreeRegressor(max_depth=2), loss="huber"), Z, VALUES
    ),
    "three classes from a forest": (lambda: boost(init=forest()), Z, THREE),
    "two classes from a tree": (
        lambda: boost(init=DecisionTreeClassifier(max_depth=2)), Z, TWO
    ),
    "exponential from a forest": (lambda: boost(init=forest(), loss="exponential"), Z, TWO),
    "passthrough, linear": (
        lambda: StackingClassifier([("a", forest())], passthrough=True, cv=2), Z, THREE
    ),
    "passthrough, forest": (
        lambda: StackingClassifier([("a", forest())], forest(), passthrough=True, cv=2), Z, TWO
    ),
    "passthrough, values": (
        lambda: StackingRegressor(
            [("a", DecisionTreeRegressor(max_depth=3))], passthrough=True, cv=2
        ),
        Z,
        VALUES,
    ),
    "bag of boosters": (lambda: BaggingClassifier(boost(), 2, random_state=0), Z, THREE),
    "bag of histograms": (
        lambda: BaggingClassifier(HistGradientBoostingClassifier(max_iter=2), 2, random_state=0),
        Z,
        TWO,
    ),
    "bag of values": (lambda: BaggingRegressor(regress(), 2, random_state=0), Z, VALUES),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_equal(name, tmp_path):
    make, rows, targets = MODELS[name]
    model = make().fit(rows, targets)
    assembly = dm.convert(model)
    assembly.save(tmp_path / "m.dm")
    for read in (assembly, dm.load(tmp_path / "m.dm")):
        for given in (rows, rows[:1], rows.astype(np.float32)):
            np.testing.assert_array_equal(read.predict(given), model.predict(given))
            if hasattr(model, "predict_proba"):
                np.testing.assert_array_equal(read.predict_proba(given), model.predict_proba(given))
    assert dm.certify(assembly, model, rows).verdict == "proven"


@pytest.mark.parametrize("name", ["chain", "passthrough, linear", "three classes from a forest"])
def test_tables_by_name(name):
    make, rows, targets = MODELS[name]
    table = pd.DataFrame(rows, columns=list("abcde"))
    model = make().fit(table, targets)
    assembly = dm.convert(model)
    np.testing.assert_array_equal(assembly.predict(table), model.predict(table))
    np.testing.assert_array_equal(assembly.predict(table[list("edcba")]), model.predict(table))
    with pytest.raises(dm.InputError):
        assembly.predict(table.rename(columns={"a": "other"}))


def test_refused():
    from_histograms = regress(init=HistGradientBoostingRegressor(max_iter=2)).fit(Z, VALUES)
    with pytest.raises(dm.UnsupportedModelError, match="rounded to float32"):
        dm.convert(from_histograms)
    behind = make_pipeline(StandardScaler(), ClassifierChain(forest())).fit(X, LABELS)
    with pytest.raises(dm.UnsupportedModelError, match="chain"):
        dm.convert(behind)
    stack = StackingClassifier([("a", forest())], passthrough=True, cv=2)
    with pytest.raises(dm.UnsupportedModelError, match="passthrough"):
        dm.convert(make_pipeline(StandardScaler(), stack).fit(Z, TWO))


def test_verbs_of_an_assembly_work_or_are_refused_by_name():
    assembly = dm.convert(MODELS["bag of boosters"][0]().fit(Z, THREE))
    for verb in ("apply", "row_function", "shap_values", "explore", "rules", "soften"):
        with pytest.raises(dm.UnsupportedModelError, match=verb):
            getattr(assembly, verb)
    for verb in ("margin", "response"):  # which assemblies of soft trees have
        with pytest.raises(dm.UnsupportedModelError, match=verb):
            getattr(assembly, verb)(Z)
    for verb in ("predict_survival_function", "predict_parameters", "predict_quantiles"):
        with pytest.raises(dm.InputError, match=verb):
            getattr(assembly, verb)(Z)
    with pytest.raises(dm.UnsupportedModelError, match="event_times"):
        _ = assembly.event_times
    pytest.importorskip("torch", reason="the rest asks for tuning, which needs torch")
    with pytest.raises(dm.UnsupportedModelError, match="assembly"):
        dm.tune(assembly, Z, THREE)
