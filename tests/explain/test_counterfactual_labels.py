"""A change is something that people can write into their row, and then get the answer promised."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from one_test import one_test

import decision_machines as dm
from decision_machines.machine.label_hash import label_hash

TEXTS = ["own", "rent", "share, flat", "none"]


@functools.cache
def fitted(one_hot_max_size):
    """CatBoost on text, tested label by label or by statistics of labels."""
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "home": rng.choice(TEXTS, n),
            "pay": rng.standard_normal(n).round(2),
        }
    )
    y = (X["home"].isin(TEXTS[1:3]) & (X["pay"] > -1)).astype(int)
    model = catboost.CatBoostClassifier(
        iterations=4,
        depth=2,
        cat_features=["home"],
        one_hot_max_size=one_hot_max_size,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    ).fit(X, y)
    return model, dm.convert(model), X


def replayed(model, row, found):
    """What the library itself answers to the row with the changes written into it."""
    changed = row.astype(object)
    for name, value in found.new_values.items():
        changed[name] = value
    return model.predict(changed.astype({"age": float, "pay": float})).ravel()[0]


@pytest.mark.parametrize("one_hot_max_size", [9, 2], ids=["one-hot", "statistics"])
@pytest.mark.parametrize("told", [False, True], ids=["without data", "with data"])
def test_changes_of_hashed_labels_are_named_and_can_be_replayed(one_hot_max_size, told):
    model, machine, X = fitted(one_hot_max_size)
    names = set()
    for i in range(12):
        row = X.iloc[[i]]
        x = (row, X.iloc[i], X.iloc[i].to_dict(), X.iloc[i].tolist())[i % 4]
        found = machine.counterfactual(x, metric="count", data=X if told else None)
        assert "#" not in str(found).replace("kept as hashes", "")
        assert "another label" not in str(found)
        assert ("not tried: labels of home kept as hashes only" in str(found)) is not told
        assert found or not told
        if found:
            assert replayed(model, row, found) == found.after != found.before
        names |= set(found.new_values)
    assert "home" in names or not told


def test_the_rows_own_label_is_named_though_the_model_does_not_know_it():
    model, machine, X = fitted(9)
    row = X[(X["home"] == "own") & (X["pay"] > 0)].iloc[[0]].assign(home="a, tent")
    found = machine.counterfactual(row, fixed=["age", "pay"], ranges={"home": ["rent", "own"]})
    assert 'home: "a, tent" → ' in str(found)
    assert found.new_values["home"] in ("rent", "own")
    assert replayed(model, row, found) == found.after
    assert "not tried" not in str(found)  # what may be moved to was named


def test_a_label_that_no_test_asks_for_is_called_so_and_has_an_example():
    row = {"colour": "red"}
    machine = one_test(
        0.5,
        rule=dm.Rule.MEMBER,
        name="colour",
        sets=dm.CategorySets([0, 1], [0], [-1], [1]),
        categories={0: (label_hash("red"), label_hash("other"))},
        label_hash="catboost",
        encodes_arrays=True,
    )
    found = machine.counterfactual(row)
    assert "colour: red → any label that the model does not know, such as other 2" in str(found)
    assert machine.predict(pd.DataFrame([found.new_values]))[0] == found.after == 2
    told = machine.counterfactual(row, data=pd.DataFrame({"colour": ["red", "blue"]}))
    assert "colour: red → blue" in str(told)


def test_whole_numbers_stay_whole_where_the_rows_hold_them():
    _, machine, X = fitted(9)
    for x in (X.iloc[0], X.iloc[[0]]):
        found = machine.counterfactual(x, fixed=["home", "pay"], missing_distance=1e6)
        assert all(value is None or value == int(value) for value in found.new_values.values())
    machine, x = dm.figure_one(), [2, 1, 2, 2]
    of_integers = machine.counterfactual(np.array([x]), fixed=["x[1]"])
    assert of_integers.new_values == {"x[3]": 4}
    by_hand = machine.counterfactual(x, fixed=["x[1]"])  # people write 2 for 2.0
    assert 3 < by_hand.new_values["x[3]"] < 4


@pytest.mark.parametrize("one_hot_max_size", [9, 2], ids=["one-hot", "statistics"])
def test_labels_have_no_order_however_a_model_tests_them(one_hot_max_size):
    _, machine, _ = fitted(one_hot_max_size)
    with pytest.raises(dm.InputError, match="categories have no order"):
        machine.is_monotone("home")
