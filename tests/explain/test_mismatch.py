"""Every cause of a difference is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor

import decision_machines as dm


@pytest.fixture(scope="module")
def data():
    X, y = make_regression(300, 4, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def forest(data):
    return RandomForestRegressor(4, max_leaf_nodes=12, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def machine(forest):
    return dm.convert(forest)


def causes(report):
    return {found.cause for found in report.mismatches}


def test_equal_models_have_nothing_to_explain(machine, forest, data):
    report = dm.explain_mismatch(machine, forest, data[0])
    assert not report
    assert str(report) == "equal on all 300 rows, to the bit"


def test_a_turned_missing_answer_is_a_missing_value(machine, forest, data):
    X = data[0].copy()
    root = machine.selection[0]
    X[:5, root] = np.nan
    missing = machine.missing.copy()
    missing[0] *= -1
    report = dm.explain_mismatch(replace(machine, missing=missing), forest, X)
    assert report.rows.tolist() == [0, 1, 2, 3, 4]
    assert causes(report) == {"missing value: NaN takes different sides"}
    first = report.mismatches[0]
    assert (first.row, first.tree, first.node) == (0, 0, 0)


def test_rounding_across_a_threshold_is_named(machine, forest, data):
    """A machine that compares in float64 differs where x rounds across a threshold."""
    exact = np.ravel(forest.estimators_[0].tree_.threshold)[0]
    t32 = np.float32(exact)
    t = np.nextafter(t32, np.float32(-np.inf)) if float(t32) > exact else t32
    above = float(np.nextafter(t, np.float32(np.inf)))
    x = float(t) + 0.25 * (above - float(t))  # above t, and float32(x) is t
    X = data[0][:1].copy()
    X[0, machine.selection[0]] = x
    columns = replace(machine.columns, dtype=np.float64, integers_as=np.float64)
    wide = replace(machine, columns=columns, t=machine.t.astype(np.float64))
    report = dm.explain_mismatch(wide, forest, X)
    assert report
    assert "threshold" in str(report)
    narrow_view = dm.explain_mismatch(machine, forest, X)
    assert not narrow_view


def test_a_boundary_that_is_strict_on_one_side_is_named(machine, forest, data):
    t = machine.t.copy()
    t[0] = np.nextafter(t[0], np.float32(-np.inf))
    X = data[0][:3].copy()
    X[:, machine.selection[0]] = machine.t[0]
    report = dm.explain_mismatch(replace(machine, t=t), forest, X)
    assert causes(report) == {"on the threshold: ≤ on one side, < on the other"}


def test_another_threshold_is_named(machine, forest, data):
    t = machine.t.copy()
    t[0] += 1
    report = dm.explain_mismatch(replace(machine, t=t), forest, data[0])
    assert "different thresholds" in causes(report)


def test_another_base_score_is_named(machine, forest, data):
    output = replace(machine.output, base=np.array([8.0]))
    report = dm.explain_mismatch(replace(machine, output=output), forest, data[0])
    assert len(report.rows) == 300
    assert all(cause.startswith("base score: off by -2.0") for cause in causes(report))


def test_another_average_is_named(machine, forest, data):
    output = replace(machine.output, divisor=8.0)
    report = dm.explain_mismatch(replace(machine, output=output), forest, data[0])
    assert causes(report) == {"scale or average: off by a factor of 2.0"}


def test_other_leaf_values_are_named_with_their_tree(machine, forest, data):
    V = machine.V.copy()
    V[machine.trees.leaves(2)] += 0.5
    report = dm.explain_mismatch(replace(machine, V=V), forest, data[0])
    assert causes(report) == {"different leaf values, first in tree 2"}


def test_the_last_bits_of_the_sum_are_named(data):
    """Multiplying by 1/3 instead of dividing by 3 changes last bits only."""
    forest = RandomForestRegressor(3, max_leaf_nodes=12, random_state=0).fit(*data)
    machine = dm.convert(forest)
    output = replace(machine.output, divisor=1.0, scale=1.0 / 3.0)
    report = dm.explain_mismatch(replace(machine, output=output), forest, data[0])
    assert report
    assert causes(report) == {"summation order or dtype: the last bits of the sum"}


def test_rubbish_is_refused_in_three_parts(machine, forest):
    for X in ([[1, 2]], [["a", "b", "c", "d"]], [1, 2, 3, 4], None):
        with pytest.raises(dm.InputError, match="What to do"):
            dm.explain_mismatch(machine, forest, X)


def test_labels_that_only_the_rows_keep_are_asked_by_their_text():
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    import pandas as pd

    rng = np.random.default_rng(0)
    sex = rng.choice(["Male", "Female", "Other"], 200)
    table = pd.DataFrame({"age": rng.integers(17, 90, 200), "sex": sex})
    small = {"iterations": 4, "depth": 2, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(one_hot_max_size=9, cat_features=["sex"], **small)
    model.fit(table, (table["age"] > 40) & (sex == "Male"))
    machine = dm.convert(model)
    assert not dm.explain_mismatch(machine, model, table)
    moved = np.where(machine.t == machine.t.max(), machine.t + np.float32(20), machine.t)
    report = dm.explain_mismatch(replace(machine, t=moved), model, table)
    assert report
    assert "age = " in str(report)
    assert "asked is age ≤ " in str(report)


def test_a_ranker_is_certified():
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    rng = np.random.default_rng(0)
    X, y, group = rng.standard_normal((200, 3)), rng.integers(3, size=200), np.arange(200) // 10
    small = {"iterations": 4, "depth": 2, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRanker(**small).fit(X, y, group_id=group)
    assert dm.certify(dm.convert(model), model)
