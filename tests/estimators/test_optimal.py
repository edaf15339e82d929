"""Optimal trees as estimators: tables, gaps, categories, weights, limits, interruption."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from decision_machines import OptimalTreeClassifier, OptimalTreeRegressor
from decision_machines.errors import InputError


def noisy(m=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    z = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(scale=0.5, size=m)
    return X, z


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_it_is_never_behind_cart(depth):
    X, z = noisy()
    y = (z > 0).astype(int)
    tree = OptimalTreeClassifier(depth).fit(X, y)
    cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
    assert tree.is_optimal_
    assert tree.gap_ == 0
    assert tree.objective_ == pytest.approx(np.mean(tree.predict(X) != y))
    assert tree.objective_ <= np.mean(cart.predict(X) != y)
    numbers = OptimalTreeRegressor(depth).fit(X, z)
    grown = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, z)
    assert numbers.objective_ == pytest.approx(np.mean((numbers.predict(X) - z) ** 2))
    assert numbers.objective_ <= np.mean((grown.predict(X) - z) ** 2) + 1e-12


def test_four_levels_start_from_a_search_and_end_with_a_proof():
    X, y = load_iris(return_X_y=True)
    tree = OptimalTreeClassifier(4).fit(X, y)
    assert tree.is_optimal_
    assert tree.objective_ == 0


def test_balanced_weights_minimise_the_mean_error_of_the_classes():
    X, z = noisy()
    y = np.array(["rare", "common"])[(z > -1.2).astype(int)]
    tree = OptimalTreeClassifier(2, class_weight="balanced").fit(X, y)
    wrong = tree.predict(X) != y
    of_classes = np.mean([wrong[y == label].mean() for label in ("rare", "common")])
    assert tree.objective_ == pytest.approx(of_classes)
    plain = OptimalTreeClassifier(2).fit(X, y).predict(X) != y
    assert of_classes <= np.mean([plain[y == label].mean() for label in ("rare", "common")])


def test_absolute_error_has_medians_in_its_leaves():
    X, z = noisy(m=80)
    z[::7] += 50.0
    tree = OptimalTreeRegressor(2, criterion="absolute_error").fit(X, z)
    leaf = tree.apply(X)[:, 0]
    for i in range(tree.machine_.n_leaves):
        lower = np.sort(z[leaf == i])[(np.sum(leaf == i) - 1) // 2]
        assert tree.machine_.V[i, 0] == lower
    assert tree.objective_ == pytest.approx(np.abs(tree.predict(X) - z).mean())


def test_a_table_with_text_gaps_and_unseen_labels():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue", None], 200),
            "size": np.where(rng.uniform(size=200) < 0.2, np.nan, rng.normal(size=200)),
        }
    )
    y = (table.colour.isin(["red", "blue"]) ^ (table["size"].fillna(9.0) > 0)).astype(int)
    tree = OptimalTreeClassifier(2).fit(table, y)
    assert tree.objective_ == 0
    assert tree.is_optimal_
    assert (tree.predict(table) == y).all()
    unseen = pd.DataFrame({"colour": ["violet"], "size": [np.nan]})
    assert tree.predict(unseen)[0] in (0, 1)
    assert "colour" in str(tree.machine_.rules())


def test_many_labels_are_refused_by_name():
    table = pd.DataFrame({"town": [f"t{i % 8}" for i in range(40)], "x": np.arange(40.0)})
    with pytest.raises(InputError, match="column 'town' has 8 labels"):
        OptimalTreeClassifier(2).fit(table, np.arange(40) % 2)


def test_gaps_may_be_told_from_all_else():
    X = np.array([[np.nan], [1.0], [np.nan], [5.0], [3.0]])
    y = np.array([1, 0, 1, 0, 0])
    tree = OptimalTreeClassifier(1).fit(X, y)
    assert tree.objective_ == 0
    assert tree.predict([[np.nan], [-9.0], [99.0]]).tolist() == [1, 0, 0]


def test_a_single_label_may_be_told_from_gaps():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"colour": ["red", None, "red", None], "size": [1.0, 1.0, 2.0, 2.0]})
    tree = OptimalTreeClassifier(1).fit(table, [0, 1, 0, 1])
    assert tree.objective_ == 0
    assert tree.predict(table).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_the_time_limit_holds(weights):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 12)), rng.integers(0, 2, 4000)
    w = {None: None, "whole": rng.integers(1, 4, 4000), "real": rng.uniform(1, 2, 4000)}[weights]
    begin = time.process_time()
    tree = OptimalTreeClassifier(5, time_limit=1.0, n_threads=1).fit(X, y, w)
    assert time.process_time() - begin < 2.0
    assert not tree.is_optimal_
    assert 0 <= tree.bound_ < tree.objective_ < 0.5
    assert len(tree.history_) == 0 or tree.history_[-1]["gap"] >= tree.gap_ - 1e-12


def test_wrong_parameters_are_refused():
    X, z = noisy(m=20)
    for wrong in ({"max_depth": 6}, {"leaf_penalty": -1}, {"time_limit": 0}, {"max_leaves": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            OptimalTreeRegressor(**wrong).fit(X, z)
    with pytest.raises(InputError, match="criterion"):
        OptimalTreeRegressor(criterion="quantile").fit(X, z)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import decision_machines as dm
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X, y = rng.normal(size=(4000, 12)), rng.integers(0, 2, 4000)
dm.OptimalTreeClassifier(2).fit(X[:50], y[:50])  # all is imported now
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
tree = dm.OptimalTreeClassifier(5, n_threads=2, keep_best_on_interrupt=sys.argv[1] == "keep")
try:
    tree.fit(X, y)
    print("kept", tree.report_["interrupted"], tree.bound_ < tree.objective_ < 0.5)
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.parametrize(("keep", "said"), [("keep", "kept True True"), ("end", "ended")])
def test_ctrl_c_ends_the_search(keep, said):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), keep],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.strip() == said, done.stderr
