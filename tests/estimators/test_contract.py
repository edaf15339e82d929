"""scikit-learn's own checks of an estimator's contract."""

from __future__ import annotations

import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from decision_machines import (
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
    TemplateCodeClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@parametrize_with_checks(
    [
        NonGreedyTreeClassifier(n_epochs=8),
        NonGreedyTreeRegressor(n_epochs=8),
        TemplateCodeClassifier(n_trees=3),
        TemplateCodeClassifier(GaussianNB(), coding="tree", decoding="logical", n_trees=3),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
