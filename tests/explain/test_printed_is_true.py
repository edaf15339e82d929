"""What is printed for a row, read back by a parser of its own, is true of that row."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from read_conditions import conditions_of, holds
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

import decision_machines as dm
from decision_machines.show.tree import TreeDisplay

NUMBERS = ["age", "pay", "hours"]
TEXTS = ["town", "job"]


@functools.cache
def people():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "pay": (rng.standard_normal(n) * 1000).round(1) / 7,
            "hours": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 60, n)),
            "town": rng.choice(["p", "q, r", "s", "{t}"], n),
            "job": rng.choice(["clerk", "smith", "nurse"], n),
        }
    )
    score = (frame["age"] > 40) & (frame["town"] != "p") | (frame["pay"] > 100)
    return frame, np.where(score ^ (rng.random(n) < 0.1), "yes", "no")


def encoded(text, number):
    return make_column_transformer((text, TEXTS), (number, NUMBERS))


def scaled(step):
    return make_pipeline(SimpleImputer(), step)


PLAIN = {
    "DecisionTree": DecisionTreeClassifier(random_state=0),
    "RandomForest": RandomForestClassifier(4, max_depth=6, random_state=0),
    "ExtraTrees": ExtraTreesClassifier(4, max_depth=6, random_state=0),
    "DecisionMachine": dm.DecisionMachineClassifier(random_state=0),
}
FILLED = {
    "GradientBoosting": GradientBoostingClassifier(n_estimators=6, random_state=0),
    "OptimalTree": dm.OptimalTreeClassifier(max_depth=2),
}
SAME = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
ONE_HOT = OneHotEncoder(handle_unknown="ignore")
MIXED = {
    "one-hot and scaled": encoded(ONE_HOT, scaled(StandardScaler())),
    "ordinal and quantiles": encoded(
        OrdinalEncoder(**SAME), scaled(QuantileTransformer(n_quantiles=20))
    ),
    "target and power": encoded(TargetEncoder(), scaled(PowerTransformer())),
    "falling": encoded(ONE_HOT, scaled(FunctionTransformer(np.negative))),
    "ranges": encoded(ONE_HOT, scaled(KBinsDiscretizer(n_bins=4, strategy="uniform"))),
}


def false_conditions(machine, rows):
    """Printed conditions that do not hold of their row, and how many were read."""
    read, wrong = 0, []
    for rule in machine.rules(rows):
        row = rows.iloc[rule.row]
        for said in conditions_of(str(rule)):
            name = next(n for n in rows.columns if n in said.split())
            read += 1
            if not holds_of(said, name, row[name], machine.columns):
                wrong.append((said, row[name]))
    return wrong, read


def holds_of(said, name, value, columns):
    """A condition on ranges of numbers says each of them as a label: "x in {≥ 1 and < 2}"."""
    if list(columns.names).index(name) not in columns.edges:
        return holds(said, name, value, columns)
    among = said.partition("{")[2].rpartition("}")[0].split(", ")
    is_in = any(
        all(holds(f"{name} {part}", name, float(value), columns) for part in one.split(" and "))
        for one in among
    )
    return is_in == (" not in " not in said)


@pytest.mark.parametrize("name", PLAIN)
def test_rules_of_trees_with_gaps_hold_of_their_rows(name):
    frame, y = people()
    X = frame[NUMBERS]
    wrong, read = false_conditions(dm.convert(PLAIN[name].fit(X, y)), X.head(80))
    assert read > 80
    assert not wrong


@pytest.mark.parametrize("name", FILLED)
def test_rules_of_trees_without_gaps_hold_of_their_rows(name):
    frame, y = people()
    X = frame[NUMBERS].fillna(0)
    wrong, read = false_conditions(dm.convert(FILLED[name].fit(X, y)), X.head(80))
    assert read > 80
    assert not wrong


def test_rules_of_regressors_and_of_tables_with_text_hold_of_their_rows():
    frame, y = people()
    numbers = frame[NUMBERS].fillna(0)
    labelled = frame.astype(dict.fromkeys(TEXTS, "category"))
    hist = HistGradientBoostingClassifier(max_iter=6, categorical_features="from_dtype")
    for model, X, target in (
        (RandomForestRegressor(3, max_depth=5, random_state=0), numbers, frame["pay"]),
        (ExtraTreeRegressor(max_depth=6, random_state=0), numbers, frame["pay"]),
        (hist, labelled, y),
        (dm.DecisionMachineClassifier(random_state=0), frame, y),
    ):
        wrong, read = false_conditions(dm.convert(model.fit(X, target)), X.head(80))
        assert read > 80
        assert not wrong


@pytest.mark.parametrize("name", MIXED)
def test_rules_and_changes_of_folded_pipelines_are_true_of_raw_rows(name):
    frame, y = people()
    for learner in (
        DecisionTreeClassifier(max_depth=6, random_state=0),
        RandomForestClassifier(4, max_depth=5, random_state=0),
    ):
        pipeline = make_pipeline(MIXED[name], learner).fit(frame, y)
        machine = dm.convert(pipeline)
        wrong, read = false_conditions(machine, frame.dropna().head(60))
        assert read > 60
        assert not wrong
        for i in range(6):
            found = machine.counterfactual(frame.iloc[i], metric="count", budget=200)
            changed = frame.iloc[[i]].assign(**found.new_values)
            assert pipeline.predict(changed)[0] == found.after != found.before


def test_ranges_of_a_folded_discretiser_are_asked_for_by_numbers():
    frame, y = people()
    steps = encoded(ONE_HOT, scaled(KBinsDiscretizer(n_bins=4, strategy="uniform")))
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    machine = dm.convert(make_pipeline(steps, tree).fit(frame, y))
    assert machine.columns.edges
    rows = pd.concat([frame.assign(age=age) for age in (17, 20, 25)])
    given = machine.margin(rows)
    bounds = machine.bounds({"age": 17}, {"age": 25})
    assert np.all(bounds.lower <= given.min(axis=0))
    assert np.all(bounds.upper >= given.max(axis=0))
    young = machine.bounds({"age": 17, "town": "s"}, {"age": 20})
    old = machine.bounds({"age": 80, "town": "s"}, {"age": 89})
    assert not np.array_equal([young.lower, young.upper], [old.lower, old.upper])
    for i in range(40):
        found = machine.counterfactual(
            frame.iloc[i], fixed=["pay", "hours", "town", "job"], ranges={"age": (17, 60)}
        )
        assert all(17 <= value <= 60 and value == int(value) for value in found.new_values.values())


def test_the_text_of_every_drawn_test_says_where_rows_go():
    frame, y = people()
    X = frame.astype(dict.fromkeys(TEXTS, "category"))
    model = HistGradientBoostingClassifier(
        max_iter=2, max_leaf_nodes=10, categorical_features="from_dtype"
    )
    machine = dm.convert(model.fit(X, y))
    for tree in range(machine.n_trees):
        one = machine.tree(tree)
        for i in range(30):
            plot = TreeDisplay(machine, tree=tree, x=X.iloc[[i]])
            for test in range(one.n_tests):
                if test not in plot.path:
                    continue
                said = plot._words(test).replace("\n", " ")
                name = next(n for n in X.columns if n in said.split())
                goes_left = holds(said, name, X.iloc[i][name], machine.columns)
                left, right = (c if c >= 0 else one.n_tests + ~c for c in one.children[test])
                assert (left if goes_left else right) in plot.path
