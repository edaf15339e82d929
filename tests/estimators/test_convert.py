"""Our own estimators are models like any other: converted, certified, asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import decision_machines as dm
from decision_machines import (
    DecisionMachineClassifier,
    DecisionMachineRegressor,
    NonGreedyTreeClassifier,
    TemplateCodeClassifier,
)
from decision_machines.errors import InputError, UnsupportedModelError

QUICK = {"max_leaves": 5, "n_iterations": 3}
ESTIMATORS = [
    DecisionMachineClassifier(**QUICK),
    DecisionMachineClassifier(n_trees=3, **QUICK),
    DecisionMachineRegressor(n_trees=2, **QUICK),
]


def table(m=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=m),
            "colour": rng.choice(["red", "green", "blue"], m),
            "age": np.where(rng.uniform(size=m) < 0.2, np.nan, rng.integers(18, 90, m)),
        }
    )
    y = (X["colour"] == "red").to_numpy() * 2 + (X["size"] > 0.3).to_numpy() * 1
    return X, y


@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
def test_a_fitted_estimator_is_its_machine_and_answers_alike_on_text_and_gaps(model):
    X, y = table()
    model = clone(model).fit(X, y)
    machine = dm.convert(model)
    assert machine is model.machine_
    X.loc[0, "colour"] = "a label that nobody saw"
    np.testing.assert_array_equal(machine.predict(X), model.predict(X))
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(machine.predict_proba(X), model.predict_proba(X))
    assert dm.certify(machine, model, X).holds


def test_an_estimator_of_one_class_answers_alike():
    X, _ = table()
    model = DecisionMachineClassifier(**QUICK).fit(X, np.full(len(X), "yes"))
    machine = dm.convert(model)
    np.testing.assert_array_equal(machine.predict(X), model.predict(X))
    np.testing.assert_array_equal(machine.predict_proba(X), model.predict_proba(X))


def test_an_oblique_tree_is_converted():
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    model = NonGreedyTreeClassifier(max_leaves=4, n_epochs=1).fit(X, y)
    np.testing.assert_array_equal(dm.convert(model).predict(X), model.predict(X))


def test_a_search_and_a_pipeline_around_an_estimator_are_converted_and_certified():
    X, y = table()
    search = GridSearchCV(DecisionMachineClassifier(**QUICK), {"max_leaves": [2, 4]}, cv=2)
    search.fit(X, y)
    pipe = make_pipeline("passthrough", DecisionMachineClassifier(**QUICK)).fit(X, y)
    for model in (search, pipe):
        machine = dm.convert(model)
        np.testing.assert_array_equal(machine.predict(X), model.predict(X))
        assert dm.certify(machine, model, X).holds


def test_another_machine_is_not_certified():
    X, y = table()
    model = DecisionMachineClassifier(**QUICK).fit(X, y)
    other = DecisionMachineClassifier(max_leaves=3, n_iterations=3).fit(X, y)
    assert not dm.certify(other.machine_, model).holds


def test_what_a_machine_cannot_answer_for_is_refused_with_what_to_do():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    with pytest.raises(InputError, match="not fitted"):
        dm.convert(DecisionMachineClassifier())
    with pytest.raises(InputError, match="fitted"):
        dm.convert(DecisionMachineClassifier)
    code = TemplateCodeClassifier(DecisionMachineClassifier(**QUICK)).fit(X, np.arange(60) % 3)
    with pytest.raises(UnsupportedModelError, match="one by one"):
        dm.convert(code)
    soft = DecisionMachineClassifier(**QUICK).fit(X, y)
    soft.soft_ = [object()]
    with pytest.raises(UnsupportedModelError, match="machine_"):
        dm.convert(soft)

    class Mine(DecisionMachineClassifier):
        def predict(self, X):
            return super().predict(X)[::-1]

    with pytest.raises(UnsupportedModelError, match="a predict of its own"):
        dm.convert(Mine(**QUICK).fit(X, y))
