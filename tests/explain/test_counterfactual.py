"""Counterfactuals against every input there is, and confirmed by the machine itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from all_inputs import values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from one_test import colour_test
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from strategies import machines, make_machine

import decision_machines as dm

PLAIN = {"rules": False, "n_features": 3}


def classifying(machine):
    """The machine with its three outputs as classes, where it has three."""
    if machine.n_outputs != 3:
        return machine
    output = replace(machine.output, decision="argmax", classes=(np.array(["a", "b", "c"]),))
    return replace(machine, output=output)


def nearest_of_all(machine, x, metric, meets, *, fixed=(), scale=None):
    """(distance, changes) of the nearest input that meets the goal, by trying all."""
    pools = []
    for f in range(machine.n_features):
        others = [] if f in fixed or np.isnan(x[f]) else values_of(machine, f, missing=False)
        pools.append([x[f], *(v for v in others if np.isfinite(v) and v != x[f])])
    rows = np.stack([g.reshape(-1) for g in np.meshgrid(*pools, indexing="ij")], axis=1)
    rows = rows[meets(machine.predict(rows))]
    if not len(rows):
        return None
    change = np.where(rows == x, 0.0, np.abs(rows - x)) / (1.0 if scale is None else scale)
    change = np.nan_to_num(change)
    far, count = change.max(axis=1), np.count_nonzero(change, axis=1)
    at = np.lexsort((count, far) if metric == "linf" else (far, count))[0]
    return far[at], count[at]


def a_row(machine, seed):
    rng = np.random.default_rng(seed)
    x = np.round(3 * rng.standard_normal(machine.n_features), 1)
    x[rng.random(len(x)) < 0.15] = np.nan
    return machine.features(x[None])[0].astype(float)


@settings(max_examples=60)
@given(
    machines(max_trees=3, min_trees=1, max_leaves=7, n_outputs=None, **PLAIN),
    st.sampled_from(["linf", "count"]),
    st.sampled_from([(), (0,), (0, 2)]),
    st.integers(0, 1000),
)
def test_the_nearest_other_answer_is_the_nearest_of_all_inputs(machine, metric, fixed, seed):
    machine = classifying(machine)
    x = a_row(machine, seed)
    scale = np.array([1.0, 2.0, 0.25])
    before = machine.predict(x[None])[0]

    def meets(answers):
        return (answers != before).reshape(len(answers), -1).any(axis=1)

    expected = nearest_of_all(machine, x, metric, meets, fixed=fixed, scale=scale)
    found = machine.counterfactual(x, metric=metric, fixed=fixed, scale=scale)
    assert found.exact
    if expected is None:
        assert not found
        return
    assert found.distance == pytest.approx(expected[0], rel=1e-12)
    if metric == "count":
        assert found.n_changed == expected[1] == found.lower
    else:
        assert found.lower == found.distance
    assert meets(machine.predict(found.row[None]))[0]
    assert set(found.changes).isdisjoint(fixed)


@settings(max_examples=40)
@given(
    machines(max_trees=1, min_trees=1, max_leaves=8, n_outputs=1, values="whole"),
    st.integers(-8, 8),
    st.integers(0, 1000),
)
def test_a_target_range_is_met_in_machines_with_rules_and_categories(machine, low, seed):
    x = a_row(machine, seed)
    found = machine.counterfactual(x, (low, low + 3), missing_distance=2.0)
    values = [v for v in np.unique(machine.margin(_many(machine))) if low <= v <= low + 3]
    if found:
        assert low <= machine.predict(found.row[None])[0] <= low + 3
    else:
        assert not values


def _many(machine):
    """Rows over all values of the features, drawn where there are too many."""
    rng = np.random.default_rng(0)
    pools = [values_of(machine, f, infinite=False) for f in range(machine.n_features)]
    return np.stack([rng.choice(pool, 3000) for pool in pools], axis=1)


def reachable_values(machine, feature, x):
    """(value, distance) of every value that a search may move a feature to, by its meaning."""
    columns, dtype = machine.columns, machine.columns.dtype
    up, down = dtype.type(np.inf), dtype.type(-np.inf)
    own = [c for c in np.unique(machine.selection).tolist() if columns.feature[c] == feature]
    if np.isnan(x) or not own:
        return [(x, 0.0)]
    if all(columns.rule[c] == dm.Rule.MEMBER for c in own):
        whole = [float(k) for k in (*range(-2, 15), 2**31, 2**32)]
        return [(x, 0.0)] + [(k, 1.0) for k in whole if k != x]
    edges = values_of(machine, feature, missing=False, infinite=False)
    near = [float(np.nextafter(dtype.type(v), end)) for v in edges for end in (up, down)]
    found = [v for v in (*edges, *near) if np.isfinite(v) and v != x]
    return [(x, 0.0)] + [(v, abs(v - x)) for v in sorted(set(found))]


@settings(max_examples=60)
@given(
    machines(max_trees=1, min_trees=1, max_leaves=6, n_features=3, rules=True, n_outputs=1),
    st.sampled_from(["linf", "count"]),
    st.integers(0, 1000),
)
def test_columns_of_every_rule_are_searched_exactly(machine, metric, seed):
    x = a_row(machine, seed)
    pools = [reachable_values(machine, f, x[f]) for f in range(3)]
    grids = np.meshgrid(*([v for v, _ in pool] for pool in pools), indexing="ij")
    rows = np.stack([g.reshape(-1) for g in grids], axis=1)
    grids = np.meshgrid(*([d for _, d in pool] for pool in pools), indexing="ij")
    change = np.stack([g.reshape(-1) for g in grids], axis=1)
    differs = machine.predict(rows) != machine.predict(x[None])[0]
    found = machine.counterfactual(x, metric=metric)
    assert bool(found) == bool(differs.any())
    if found:
        far, count = change[differs].max(axis=1), np.count_nonzero(change[differs], axis=1)
        at = np.lexsort((count, far) if metric == "linf" else (far, count))[0]
        assert found.distance == far[at]
        assert found.n_changed == count[at]


def test_integers_and_ranges_are_kept():
    machine = dm.figure_one()
    found = machine.counterfactual([2, 1, 2, 2], fixed=["x[1]"], integers=["x[3]"])
    assert found.row.tolist() == [2, 1, 4, 2]
    assert not machine.counterfactual([2, 1, 2, 2], fixed=["x[1]"], ranges={"x[3]": (0, 3)})
    found = machine.counterfactual([2, 1, 2, 2], fixed=["x[1]"], ranges={2: (3.5, 9)})
    assert found.row.tolist() == [2, 1, 3.5, 2]


def test_a_number_becomes_missing_only_where_that_has_a_distance():
    machine = dm.figure_one()
    assert not machine.counterfactual([0, 5, 0, 0], (6, 6), fixed=[0])
    found = machine.counterfactual([0, 5, 0, 0], (5, 5), ranges={0: (-9, 1)}, missing_distance=3)
    assert np.isnan(found.row[0])
    assert found.distance == 3
    assert machine.counterfactual([np.nan, 0, 0, 0], (1, 1)).row is None
    found = machine.counterfactual([np.nan, 0, 0, 0], (1, 1), missing_distance=1)
    assert found.row[0] <= 1


def test_a_changed_category_is_called_by_its_label():
    machine = colour_test()
    found = machine.counterfactual([2.0])
    assert "colour: blue → green" in str(found)
    assert found.distance == 1


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(10, max_leaf_nodes=12, random_state=0),
        GradientBoostingClassifier(n_estimators=20, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_counterfactuals_of_fitted_models_change_their_own_predictions(model):
    X, y = load_breast_cancer(return_X_y=True)
    model.fit(X, y)
    machine = dm.convert(model)
    for i in (0, 100, 300):
        found = machine.counterfactual(X[i], scale=X.std(axis=0), budget=1500)
        assert model.predict(found.row[None])[0] != model.predict(X[i : i + 1])[0]
        assert 0 < found.lower <= found.distance
        ball = X[i] + found.lower * X.std(axis=0) * 0.999 * np.random.default_rng(i).uniform(
            -1, 1, (2000, X.shape[1])
        )
        assert np.all(model.predict(ball) == model.predict(X[i : i + 1]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"aggregate": "max"}, "the max of its trees"), ({"link": "onnx"}, "cannot bound")],
)
def test_forests_that_cannot_be_bounded_are_refused_with_the_reason(change, reason):
    machine = make_machine([3, 3], np.random.default_rng(0), rules=False, plain_output=True)
    machine = replace(machine, output=replace(machine.output, **change))
    with pytest.raises(dm.DecisionMachinesError, match=reason):
        machine.counterfactual([0.0, 0.0, 0.0])


def test_several_targets_change_where_any_of_them_does():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(8, max_depth=3, random_state=0).fit(X, np.stack([y, y > 1], 1))
    found = dm.convert(model).counterfactual(X[60])
    assert np.any(model.predict(found.row[None]) != model.predict(X[60:61]))
    assert found.exact


def test_a_target_class_is_reached():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(15, max_depth=3, random_state=0).fit(X, y)
    found = dm.convert(model).counterfactual(X[0], 2)
    assert model.predict(found.row[None]) == [2]
    assert found.after == 2


def test_a_budget_too_small_leaves_honest_bounds():
    X, y = load_breast_cancer(return_X_y=True)
    machine = dm.convert(RandomForestClassifier(30, random_state=0).fit(X, y))
    tight = machine.counterfactual(X[0], scale=X.std(axis=0), budget=1)
    loose = machine.counterfactual(X[0], scale=X.std(axis=0), budget=3000)
    assert tight.lower <= loose.distance
    assert loose.lower <= tight.distance
    assert tight.lower <= tight.distance


def test_a_machine_with_one_answer_has_no_counterfactual():
    machine = dm.figure_one()
    found = replace(machine, V=np.ones((6, 1))).counterfactual([2, 1, 2, 2])
    assert not found
    assert found.exact
    assert "no input" in str(found)


def test_an_input_that_meets_the_target_is_its_own_counterfactual():
    found = dm.figure_one().counterfactual([2, 1, 2, 2], (5, 5))
    assert found.distance == 0
    assert found.changes == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": "l2"},
        {"budget": 0},
        {"fixed": ["weight"]},
        {"fixed": [4]},
        {"ranges": {0: (2, 1)}},
        {"ranges": [1]},
        {"scale": -1},
        {"scale": [1, 2]},
        {"scale": "big"},
        {"missing_distance": 0},
        {"target": "red"},
        {"target": (3, 1)},
        {"target": 5.0},
    ],
    ids=str,
)
def test_rubbish_is_refused_in_words(wrong):
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().counterfactual([2, 1, 2, 2], **wrong)


@pytest.mark.parametrize("x", [[1, 2], [[1, 2, 3, 4], [1, 2, 3, 4]], ["a", "b", "c", "d"]])
def test_rows_that_are_none_are_refused(x):
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().counterfactual(x)


def test_oblique_machines_are_refused():
    machine = make_machine([4], np.random.default_rng(0), rules=False, oblique=True)
    with pytest.raises(dm.UnsupportedModelError, match=r"oblique[\s\S]*What to do"):
        machine.counterfactual([0, 0, 0])
