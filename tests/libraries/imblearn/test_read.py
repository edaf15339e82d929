"""imbalanced-learn's models and pipelines, against the library itself, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

imblearn = pytest.importorskip(
    "imblearn",
    reason="imbalanced-learn is not installed: pip install 'decision-machines[imblearn]'",
)

from imblearn.ensemble import (  # noqa: E402
    BalancedBaggingClassifier,
    BalancedRandomForestClassifier,
    EasyEnsembleClassifier,
    RUSBoostClassifier,
)
from imblearn.over_sampling import SMOTE, RandomOverSampler  # noqa: E402
from imblearn.pipeline import make_pipeline  # noqa: E402
from imblearn.under_sampling import RandomUnderSampler  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.tree import DecisionTreeClassifier  # noqa: E402

import decision_machines as dm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def rows(n_classes):
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=n_classes, weights=[0.75, 0.15, 0.1][:n_classes],
        random_state=0,
    )  # fmt: skip
    return X, np.array(["no", "perhaps", "yes"])[y]


MODELS = {
    "balanced forest": lambda: BalancedRandomForestClassifier(7, random_state=0),
    "balanced forest, replaced": lambda: BalancedRandomForestClassifier(
        7, sampling_strategy="all", replacement=True, bootstrap=False, random_state=0
    ),
    "balanced bag": lambda: BalancedBaggingClassifier(n_estimators=4, random_state=0),
    "balanced bag of some features": lambda: BalancedBaggingClassifier(
        n_estimators=4, max_features=0.5, random_state=0
    ),
    "balanced bag with SMOTE": lambda: BalancedBaggingClassifier(
        n_estimators=3, sampler=RandomOverSampler(), random_state=0
    ),
    "balanced bag of forests": lambda: BalancedBaggingClassifier(
        RandomForestClassifier(3, random_state=0), n_estimators=2, random_state=0
    ),
    "easy ensemble": lambda: EasyEnsembleClassifier(
        3, AdaBoostClassifier(n_estimators=4, random_state=0), random_state=0
    ),
    "boost": lambda: RUSBoostClassifier(n_estimators=8, random_state=0),
    "boost of deeper trees": lambda: RUSBoostClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=5, random_state=0
    ),
    "pipeline": lambda: make_pipeline(
        StandardScaler(), SMOTE(random_state=0), RandomForestClassifier(5, random_state=0)
    ),
    "sampler alone": lambda: make_pipeline(
        RandomUnderSampler(random_state=0), BalancedRandomForestClassifier(4, random_state=0)
    ),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_equal(name, n_classes, tmp_path):
    X, y = rows(n_classes)
    model = MODELS[name]().fit(X, y)
    machine = dm.convert(model)
    for given in (X, X[:1], X.astype(np.float32)):
        if name == "pipeline":
            # A scaler computes in float32 where it is given float32.
            machine = dm.convert(model, given)
        np.testing.assert_array_equal(machine.predict_proba(given), model.predict_proba(given))
        np.testing.assert_array_equal(machine.predict(given), model.predict(given))
    machine = dm.convert(model)
    machine.save(tmp_path / "m.dm")
    loaded = dm.load(tmp_path / "m.dm")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", ["balanced forest", "balanced bag", "boost", "pipeline"])
def test_certified(name):
    X, y = rows(3)
    model = MODELS[name]().fit(X, y)
    machine = dm.convert(model)
    assert dm.certify(machine, model, X).verdict == "proven"
    other = MODELS[name]().fit(X[::2], y[::2])
    if machine.n_trees == dm.convert(other).n_trees:
        assert not dm.certify(machine, other)


def test_names_its_library():
    X, y = rows(2)
    machine = dm.convert(BalancedRandomForestClassifier(2, random_state=0).fit(X, y))
    assert machine.source == "imbalanced-learn BalancedRandomForestClassifier"


@pytest.mark.parametrize("name", ["balanced forest", "balanced bag", "easy ensemble", "boost"])
def test_unknown_field(name):
    X, y = rows(2)
    model = MODELS[name]().fit(X, y)
    member = model.estimators_[0]
    parts = [model, member, member.steps[-1][1]] if hasattr(member, "steps") else [model, member]
    for part in parts:
        part.gate_ = 3
        with pytest.raises(dm.UnsupportedModelError, match="gate_ is a field"):
            dm.convert(model)
        del part.gate_
    dm.convert(model)


def test_replaced_answers_are_refused():
    class Louder(BalancedRandomForestClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X) ** 2

    X, y = rows(2)
    with pytest.raises(dm.UnsupportedModelError, match="predict_proba of its own"):
        dm.convert(Louder(2, random_state=0).fit(X, y))


def test_what_is_no_model():
    with pytest.raises(dm.UnsupportedModelError, match="SMOTE"):
        dm.convert(SMOTE())
    with pytest.raises(dm.InputError, match="class"):
        dm.convert(BalancedRandomForestClassifier)
    with pytest.raises(dm.InputError, match="not fitted"):
        dm.convert(BalancedRandomForestClassifier())
