"""`max_leaves="auto"`: sizes judged by cross-validation, the smallest within one standard error."""

from __future__ import annotations

import signal
import time

import numpy as np
import pandas as pd
import pytest

from decision_machines import (
    DecisionMachineClassifier,
    DecisionMachineRegressor,
    NonGreedyTreeClassifier,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from decision_machines.errors import InputError
from decision_machines.train.hold_out import folds
from decision_machines.train.sizes import SizePath, sizes_for


def checkers(m, seed, share=0.8):
    """Four squares, and a share of the labels right."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5))
    is_right = rng.uniform(size=m) < share
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0.5) ^ ~is_right).astype(int)


def test_random_labels_get_one_leaf():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    optimal = OptimalTreeClassifier(2, max_leaves="auto").fit(X, y)
    searched = DecisionMachineClassifier(max_leaves="auto", n_iterations=5).fit(X, y)
    for tree in (optimal, searched):
        assert tree.path_.chosen == tree.machine_.n_leaves == 1
        assert len(tree.path_) >= 3
    numbers = OptimalTreeRegressor(2, max_leaves="auto").fit(X, rng.normal(size=200))
    assert numbers.machine_.n_leaves == 1


def test_noise_is_not_learned_and_what_is_there_is():
    gains = []
    for seed in range(3):
        X, y = checkers(1200, seed)
        own, new = slice(200), slice(200, None)
        auto = OptimalTreeClassifier(3, max_leaves="auto").fit(X[own], y[own])
        largest = OptimalTreeClassifier(3).fit(X[own], y[own])
        assert auto.machine_.n_leaves == 4
        gains.append(auto.score(X[new], y[new]) - largest.score(X[new], y[new]))
    assert min(gains) >= 0
    assert np.mean(gains) > 0.01


def test_the_search_is_not_behind_its_largest_size_either():
    gains = []
    for seed in range(3):
        X, y = checkers(1200, seed)
        auto = DecisionMachineClassifier(max_leaves="auto", n_iterations=5).fit(X[:200], y[:200])
        largest = DecisionMachineClassifier(max_leaves=16, n_iterations=5).fit(X[:200], y[:200])
        assert auto.path_.sizes == (1, 2, 3, 4, 6, 8, 12, 16)
        assert auto.machine_.n_leaves < 16
        gains.append(auto.score(X[200:], y[200:]) - largest.score(X[200:], y[200:]))
    assert np.mean(gains) >= 0


def test_the_score_of_a_size_is_that_of_trees_that_have_not_seen_the_row():
    X, y = checkers(100, 0)
    tree = OptimalTreeRegressor(1, max_leaves="auto", random_state=7)
    tree.fit(X, y.astype(float))
    rows = tree._read(X, y.astype(float), None)
    fold = folds(100, 5, 7)
    lost = np.empty(100)
    for i in range(5):
        held = fold == i
        one = OptimalTreeRegressor(1).fit(rows.X[~held], rows.y[~held])
        lost[held] = (one.predict(rows.X[held]) - rows.y[held]) ** 2
    each = 1 - lost / np.var(y)
    assert tree.path_.sizes == (1, 2)
    assert tree.path_.score[1] == pytest.approx(each.mean())
    assert tree.path_.standard_error[1] == pytest.approx(each.std() / 10)


def test_a_weight_of_two_is_a_row_given_twice_and_order_does_not_matter():
    X, y = checkers(120, 2)
    w = np.random.default_rng(0).integers(0, 3, 120)
    often = np.random.default_rng(1).permutation(np.repeat(np.arange(120), w))
    one = OptimalTreeClassifier(2, max_leaves="auto").fit(X, y, w)
    two = OptimalTreeClassifier(2, max_leaves="auto").fit(X[often], y[often])
    assert one.path_.sizes == two.path_.sizes
    assert one.path_.score == pytest.approx(two.path_.score)
    assert np.array_equal(one.machine_.t, two.machine_.t)


def test_the_rule_is_what_it_says():
    path = SizePath("accuracy", (1, 2, 3, 4), (0.5, 0.78, 0.81, 0.8), (0.1, 0.01, 0.02, 0.01))
    assert (path.best, path.chosen) == (3, 3)
    wide = SizePath("accuracy", (1, 2, 3, 4), (0.5, 0.78, 0.81, 0.8), (0.0, 0.0, 0.03, 0.0))
    assert (wide.best, wide.chosen) == (3, 2)
    assert [row["chosen"] for row in wide.as_dicts()] == [False, True, False, False]
    assert "0.7800  0.0000  chosen" in repr(wide)


def test_text_gaps_and_few_rows():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"colour": rng.choice(["red", "green", None], 150), "x": rng.normal(size=150)}
    )
    table.loc[::7, "x"] = np.nan
    y = np.where((table.colour == "red") ^ (table.x > 0), "yes", "no")
    tree = DecisionMachineClassifier(max_leaves="auto", n_iterations=20).fit(table, y)
    assert tree.score(table, y) > 0.95
    few = OptimalTreeClassifier(2, max_leaves="auto").fit(table[:7], y[:7])
    assert few.machine_.n_leaves == 1
    assert few.path_.sizes == (1,)
    again = few.set_params(max_leaves=4).fit(table, y)
    assert not hasattr(again, "path_")


def test_complete_trees_double():
    assert sizes_for(10_000, 32, complete=True) == (1, 2, 4, 8, 16, 32)
    X, y = checkers(30, 0)
    tree = NonGreedyTreeClassifier(max_leaves="auto", n_epochs=1, n_restarts=1).fit(X, y)
    assert tree.machine_.n_leaves <= 3


def test_many_trees_and_soft_ones_are_refused():
    X, y = checkers(60, 0)
    for wrong in ({"n_trees": 3}, {"soft": True}):
        with pytest.raises(InputError, match="max_leaves='auto' with"):
            DecisionMachineRegressor(max_leaves="auto", **wrong).fit(X, y)
    with pytest.raises(InputError, match="'auto'"):
        DecisionMachineRegressor(max_leaves="few").fit(X, y)


def test_the_time_limit_holds_for_sizes_and_tree_together():
    X, y = np.random.default_rng(0).normal(size=(3000, 10)), np.arange(3000) % 2
    tree = OptimalTreeClassifier(5, max_leaves="auto", time_limit=2.0, n_threads=1)
    begin = time.process_time()
    tree.fit(X, y)
    assert time.process_time() - begin < 3.0
    assert tree.bound_ <= tree.objective_


@pytest.fixture
def answers_ctrl_c():
    """Also where the tests run in the background, whose children ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.usefixtures("answers_ctrl_c")
def test_ctrl_c_while_sizes_are_judged(keep, monkeypatch):
    X, y = checkers(200, 0)
    calls = []
    learned = OptimalTreeClassifier._learned

    def interrupted(self, rows, seed):
        calls.append(self.max_leaves)
        if len(calls) == 12:  # the third size
            signal.raise_signal(signal.SIGINT)
        return learned(self, rows, seed)

    monkeypatch.setattr(OptimalTreeClassifier, "_learned", interrupted)
    tree = OptimalTreeClassifier(2, max_leaves="auto", keep_best_on_interrupt=keep)
    if not keep:
        with pytest.raises(KeyboardInterrupt):
            tree.fit(X, y)
        return
    tree.fit(X, y)
    assert tree.path_.sizes == (1, 2)
    assert tree.report_["interrupted"]
    assert tree.predict(X[:1])[0] in (0, 1)


def test_the_picture_says_what_was_chosen():
    plt = pytest.importorskip("matplotlib.pyplot")
    path = SizePath("accuracy", (1, 2, 3), (0.5, 0.78, 0.8), (0.1, 0.01, 0.03))
    drawn = path.plot()
    said = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert "chosen: 2 leaves, accuracy 0.78" in said
    plt.close(drawn.figure_)
