"""Oblique trees, linear leaves, bags of them, and soft answers, through the estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from decision_machines import DecisionMachineClassifier, DecisionMachineRegressor
from decision_machines.errors import InputError


def slanted(m=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, (X @ [1.0, -1.0, 0.5] > 0).astype(int)


def test_an_oblique_tree_of_two_leaves_cuts_along_a_slant():
    X, y = slanted()
    X_new, y_new = slanted(seed=1)
    model = DecisionMachineClassifier(max_leaves=2, oblique=True, n_iterations=30).fit(X, y)
    assert model.machine_.is_oblique
    assert model.machine_.n_leaves <= 2
    assert model.score(X_new, y_new) > 0.95
    assert np.all(model.feature_importances_ > 0.1)


@pytest.mark.parametrize(("max_leaves", "max_depth", "depth"), [(7, None, 2), (8, 1, 1), (1, 5, 0)])
def test_an_oblique_tree_stays_within_leaves_and_depth(max_leaves, max_depth, depth):
    X, y = slanted(120)
    model = DecisionMachineClassifier(
        max_leaves=max_leaves, max_depth=max_depth, oblique=True, n_iterations=5
    ).fit(X, y)
    assert model.machine_.depth <= depth
    assert model.machine_.n_leaves <= max_leaves


def test_bagged_oblique_trees_answer_the_mean_of_their_trees():
    X, y = slanted()
    model = DecisionMachineClassifier(3, max_leaves=4, oblique=True, n_iterations=10).fit(X, y)
    assert model.machine_.n_trees == 3
    single = np.mean([model.machine_.tree(i).margin(X) for i in range(3)], axis=0) * 3
    np.testing.assert_allclose(model.predict_proba(X), single, atol=1e-12)
    assert model.score(X, y) > 0.9


def test_linear_leaves_follow_a_slope_and_bags_of_them_average():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] > 0, 3 * X[:, 1], -X[:, 0]) * 1e6
    model = DecisionMachineRegressor(
        2, max_leaves=2, oblique=True, leaves="linear", n_iterations=6
    ).fit(X, y)
    assert model.machine_.linear is not None
    assert model.machine_.n_trees == 2
    assert model.score(X, y) > 0.7
    parts = [model.machine_.tree(i).predict(X) for i in range(2)]
    np.testing.assert_allclose(model.predict(X), np.sum(parts, axis=0))


def test_soft_answers_are_the_modules_and_the_machine_stays_hard():
    X, y = slanted()
    for options in (
        {"n_trees": 3, "n_iterations": 0},
        {"oblique": True, "n_iterations": 10},
        {"n_trees": 2, "oblique": True, "n_iterations": 5},
    ):
        model = DecisionMachineClassifier(max_leaves=2, soft=True, **options).fit(X, y)
        softs = model.soft_ if isinstance(model.soft_, list) else [model.soft_]
        import torch

        x = torch.from_numpy(model.machine_.features(X))
        margin = sum(soft.margin(x).detach().double() for soft in softs) / len(softs)
        margin = margin.numpy()
        hard = model.machine_.predict_proba(X)
        found = model.predict_proba(X)
        if margin.shape[1] == 2:
            np.testing.assert_allclose(found, margin, atol=1e-9)
        else:
            np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-margin[:, 0])), atol=1e-6)
        assert hard.shape == found.shape
        assert model.score(X, y) > 0.75
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(X), found)


def test_soft_answers_of_few_rows_are_hard():
    X, y = slanted(10)
    model = DecisionMachineClassifier(max_leaves=2, soft=True, n_iterations=0).fit(X, y)
    assert model.soft_ is None
    np.testing.assert_array_equal(model.predict(X), model.machine_.predict(X))


def test_soft_answers_of_numbers():
    X, y = slanted()
    model = DecisionMachineRegressor(max_leaves=4, soft=True, n_iterations=0).fit(X, y * 1e3)
    assert model.score(X, y * 1e3) >= 0.3


def test_oblique_tests_weigh_single_labels():
    X, _ = slanted(200)
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": X[:, 0], "b": rng.choice(["p", "q", "r"], 200)})
    y = (X[:, 0] + 2 * (table["b"] == "p") > 0.5).to_numpy()
    model = DecisionMachineClassifier(max_leaves=2, oblique=True, soft=True, n_iterations=60)
    model.fit(table, y)
    assert np.mean(model.machine_.predict(table) == y) > 0.9
    assert model.score(table, y) > 0.9
    with pytest.raises(InputError, match="text columns"):
        DecisionMachineRegressor(oblique=True, leaves="linear").fit(table, y * 1.0)


def test_linear_leaves_need_oblique_tests():
    X, y = slanted(30)
    with pytest.raises(InputError, match="oblique=True"):
        DecisionMachineRegressor(leaves="linear").fit(X, y)
