"""Boosted trees: sums of searched trees, and of histograms where data are large."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1

from decision_machines.train.forests import boosted, boosted_trees


def waves(m=300, seed=0):
    X, y = make_friedman1(m, n_features=5, random_state=seed)
    return X, y


def error(machine, X, y):
    return float(np.mean((machine.predict(X) - y) ** 2) / np.var(y))


def test_the_loss_falls_with_every_tree_and_searched_trees_fall_faster():
    X, y = waves()
    greedy, searched = (
        boosted_trees(X, y, n_trees=15, max_leaves=6, n_iterations=n, patience=None, verbose=False)
        for n in (0, 30)
    )
    losses = [row["loss"] for row in greedy.history]
    assert np.all(np.diff(losses) < 0)
    assert searched.history[-1]["loss"] < losses[-1]


def test_rows_held_out_end_it_and_all_rows_are_learned_from():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)  # nothing to learn
    found = boosted_trees(X, y, n_trees=50, n_iterations=0, patience=3, verbose=False)
    assert found.machine.n_trees < 15
    X, y = waves()
    found = boosted_trees(X, y, n_trees=30, max_leaves=6, n_iterations=0, verbose=False)
    assert found.machine.n_trees > 20
    assert error(found.machine, *waves(seed=1)) < 0.35


def test_history_is_the_loss_of_the_machine():
    X, y = waves()
    found = boosted_trees(
        X[:200],
        y[:200],
        validation=(X[200:], y[200:]),
        n_trees=8,
        n_iterations=0,
        patience=50,
        verbose=False,
    )
    scale = np.mean((y[:200] - y[:200].mean()) ** 2)
    last = found.history[found.machine.n_trees - 1]
    assert np.mean((found.machine.predict(X[:200]) - y[:200]) ** 2) / scale == pytest.approx(
        last["loss"], rel=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_get_probabilities_by_the_link(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    machine = boosted_trees(
        X, y, n_classes=n_classes, n_trees=10, max_leaves=4, n_iterations=5, verbose=False
    ).machine
    P = machine.predict_proba(X)
    assert P.shape == (len(X), n_classes)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(machine.predict(X), P.argmax(axis=1))
    assert np.mean(machine.predict(X) == y) > 0.95


def test_a_start_is_kept_and_gone_on_from():
    X, y = waves()
    options = {"max_leaves": 6, "n_iterations": 0, "patience": None, "verbose": False}
    first = boosted_trees(X, y, n_trees=5, **options)
    more = boosted_trees(X, y, n_trees=4, start=first.machine, **options)
    whole = boosted_trees(X, y, n_trees=9, **options)
    assert more.machine.n_trees == 9
    np.testing.assert_allclose(more.machine.predict(X), whole.machine.predict(X))


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_large_data_are_left_to_histograms(monkeypatch, n_classes):
    monkeypatch.setattr(boosted, "MOST_SEARCHED", 0)
    X, y = waves(400)
    if n_classes is not None:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    else:
        y = y * 1e20
    found = boosted_trees(X, y, n_classes=n_classes, n_trees=40, max_leaves=8, verbose=False)
    assert found.report["grown by"] == "histograms"
    if n_classes is None:
        assert error(found.machine, X, y) < 0.1
    else:
        assert np.mean(found.machine.predict(X) == y) > 0.9
