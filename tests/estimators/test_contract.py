"""scikit-learn's own checks of an estimator's contract."""

from __future__ import annotations

import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from decision_machines import (
    DecisionMachineClassifier,
    DecisionMachineRegressor,
    LeafEncoder,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    TemplateCodeClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@parametrize_with_checks(
    [
        DecisionMachineClassifier(n_iterations=5),
        DecisionMachineRegressor(n_iterations=5),
        DecisionMachineClassifier(n_trees=4, n_iterations=5),
        DecisionMachineRegressor(n_trees=8, n_iterations=0, learning_rate=0.5),
        LeafEncoder(random_state=0),
        LeafEncoder(DecisionTreeRegressor(random_state=0), output="index"),
        NonGreedyTreeClassifier(n_epochs=2, n_restarts=1),
        NonGreedyTreeRegressor(n_epochs=2, n_restarts=1),
        OptimalTreeClassifier(max_depth=2),
        OptimalTreeRegressor(max_depth=2),
        OptimalTreeClassifier(max_depth=2, max_leaves="auto"),
        OptimalTreeRegressor(max_depth=2, max_leaves="auto"),
        TemplateCodeClassifier(n_trees=3),
        TemplateCodeClassifier(GaussianNB(), coding="tree", decoding="logical", n_trees=3),
        TemplateCodeClassifier(GaussianNB(), coding="sparse", n_columns=4),
        TemplateCodeClassifier(GaussianNB(), coding="one_vs_one", decoding="hamming"),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
