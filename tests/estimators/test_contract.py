"""scikit-learn's own checks of an estimator's contract."""

from __future__ import annotations

import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from decision_machines import (
    DecisionMachineClassifier,
    DecisionMachineRegressor,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    TemplateCodeClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@parametrize_with_checks(
    [
        DecisionMachineClassifier(n_iterations=20),
        DecisionMachineRegressor(n_iterations=20),
        DecisionMachineClassifier(n_trees=4, n_iterations=5),
        DecisionMachineRegressor(n_trees=20, n_iterations=0, learning_rate=0.3),
        NonGreedyTreeClassifier(n_epochs=8),
        NonGreedyTreeRegressor(n_epochs=8),
        TemplateCodeClassifier(n_trees=3),
        TemplateCodeClassifier(GaussianNB(), coding="tree", decoding="logical", n_trees=3),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
