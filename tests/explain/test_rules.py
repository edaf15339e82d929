"""Rules say what the paths ask, no more and no less."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from one_test import colour_test
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from strategies import machines, probe_rows

import decision_machines as dm


def holds(machine, condition, x):
    """Whether a value of the feature meets a condition, from the condition's fields alone."""
    columns = machine.columns
    with np.errstate(over="ignore"):
        x = float(columns.dtype.type(x[condition.feature]))
    if x != x:
        return condition.missing
    if condition.categories is not None:
        lowest = -1.0 if columns.sets.negative_fractions else 0.0
        is_category = (x > lowest or x == 0) and x < 2**31
        return (is_category and int(x) in condition.categories) != condition.excludes
    return (condition.lower is None or x > condition.lower) and (
        condition.upper is None or x <= condition.upper
    )


@given(machines(max_trees=3, max_leaves=8, rules=False))
def test_every_row_meets_the_rule_of_its_leaf_and_no_other(machine):
    X = probe_rows(machine, max_rows=20)
    rules, leaves = machine.rules(), machine.apply(X)
    for rule in rules:
        met = [all(holds(machine, c, x) for c in rule.conditions) for x in X]
        np.testing.assert_array_equal(met, leaves[:, rule.tree] == rule.leaf)


@settings(max_examples=30)
@given(machines(max_trees=2, max_leaves=8, rules=True))
def test_category_rules_hold_exactly_where_their_tests_do(machine):
    if np.any(np.isin(machine.columns.rule, [dm.Rule.NAN_AS_ZERO, dm.Rule.ZERO_AS_NAN])):
        keep = np.where(machine.columns.rule == dm.Rule.MEMBER, dm.Rule.MEMBER, dm.Rule.VALUE)
        from dataclasses import replace

        machine = replace(machine, columns=replace(machine.columns, rule=keep))
    X = probe_rows(machine, max_rows=20)
    leaves = machine.apply(X)
    for rule in machine.rules():
        met = [all(holds(machine, c, x) for c in rule.conditions) for x in X]
        np.testing.assert_array_equal(met, leaves[:, rule.tree] == rule.leaf)


def test_tests_of_one_feature_are_merged_to_an_interval():
    rule = dm.figure_one().rules()[1]
    assert rule.text == "if x[1] ≤ 1 and 2 < x[2] ≤ 4 and x[4] ≤ 5 then 2"
    assert [c.tests for c in rule.conditions] == [(0,), (1, 3), (4,)]
    assert (rule.conditions[1].lower, rule.conditions[1].upper) == (2.0, 4.0)


def test_the_path_of_a_row_goes_through_the_chosen_trees_only():
    X, y = load_iris(return_X_y=True)
    from sklearn.ensemble import RandomForestClassifier

    machine = dm.convert(RandomForestClassifier(5, random_state=0).fit(X, y))
    found = machine.rules(X[:2], trees=[3, 1])
    assert [(r.row, r.tree) for r in found] == [(0, 3), (0, 1), (1, 3), (1, 1)]
    assert [r.leaf for r in found] == machine.apply(X[:2])[:, [3, 1]].reshape(-1).tolist()
    assert len(machine.rules(X[:2])) == 10


def test_names_and_classes_are_in_the_words():
    data = load_iris(as_frame=True)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(
        data.data, data.target_names[data.target]
    )
    text = str(dm.convert(model).rules())
    assert "petal width (cm)" in text or "petal length (cm)" in text
    assert "setosa (100%)" in text


def test_labels_of_categories_are_in_the_words():
    machine = colour_test()
    assert [r.text for r in machine.rules()] == [
        "if colour in {red, blue} then 1",
        "if colour not in {red, blue} or missing then 2",
    ]


def test_labels_that_only_a_table_gives_are_in_the_words():
    import pandas as pd
    from lightgbm import LGBMRegressor

    rng = np.random.default_rng(0)
    labels = rng.choice(["red", "green", "blue"], 300)
    table = pd.DataFrame({"size": rng.standard_normal(300), "colour": pd.Categorical(labels)})
    model = LGBMRegressor(
        n_estimators=2, num_leaves=3, min_data_per_group=1, cat_smooth=1, verbose=-1, n_jobs=1
    ).fit(table, (labels == "red").astype(float))
    machine = dm.convert(model)
    assert "colour in {red}" in str(machine.rules())
    found = machine.counterfactual(table[labels == "red"].iloc[:1])
    assert "colour: red → " in str(found)
    assert found.exact


def test_labels_are_in_the_words_though_another_label_column_is_never_tested():
    import pandas as pd
    from lightgbm import LGBMRegressor

    rng = np.random.default_rng(0)
    labels, others = rng.choice(["red", "green", "blue"], 300), rng.choice(["a", "b"], 300)
    table = pd.DataFrame({"other": pd.Categorical(others), "colour": pd.Categorical(labels)})
    model = LGBMRegressor(
        n_estimators=2, num_leaves=2, min_data_per_group=1, cat_smooth=1, verbose=-1, n_jobs=1
    ).fit(table, (labels == "red").astype(float))
    machine = dm.convert(model)
    assert "other" not in str(machine.rules())
    assert "colour in {red}" in str(machine.rules())
    assert dm.certify(machine, model)
    np.testing.assert_array_equal(machine.predict(table), model.predict(table))
    assert dm.convert(machine.to_lightgbm()).equals(dm.convert(model.booster_))


def test_an_oblique_rule_writes_its_weights():
    import scipy.sparse as sp

    one = dm.figure_one()
    from dataclasses import replace

    machine = replace(one, selection=sp.csr_array(one.S.toarray() * 2.0))
    assert machine.rules()[5].text == (
        "if (2·x[1] > 1 or missing) and (2·x[3] > 3 or missing) then 6"
    )


def test_a_tree_of_one_leaf_has_a_rule_without_conditions():
    machine = dm.figure_one().subtree(~2)
    assert [r.text for r in machine.rules()] == ["3"]


def test_rules_print_on_a_rich_console():
    from rich.console import Console

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(dm.figure_one().rules())
    assert "2 < x[2] ≤ 4" in console.export_text()


@pytest.mark.parametrize("trees", [7, [0, 9], "first", 1.5, [[0]]])
def test_trees_that_are_not_there_are_refused(trees):
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().rules(trees=trees)
