"""A row and a box are given as people have them: by names, with labels, or as numbers."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from one_test import colour_test
from read_conditions import conditions_of, holds

import decision_machines as dm

LIBRARIES = ("xgboost", "lightgbm", "catboost", "sklearn")


@functools.cache
def people():
    """Rows with numbers, whole numbers and labels; `town` decides nothing."""
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "sex": rng.choice(["Male", "Female"], n),
            "pay": rng.standard_normal(n).round(2),
            "town": rng.choice(["p", "q, r", "s"], n),
        }
    )
    y = ((frame["age"] > 40) & (frame["sex"] == "Male") | (frame["pay"] > 1)).astype(int)
    return frame, y


@functools.cache
def fitted(library):
    """(machine, the table it was trained on) of a boosted model with labels."""
    pytest.importorskip(library, reason=f"{library} is not installed")
    frame, y = people()
    labelled = frame.astype({"sex": "category", "town": "category"})
    if library == "xgboost":
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True, n_jobs=1)
    elif library == "lightgbm":
        from lightgbm import LGBMClassifier

        small = {"n_estimators": 5, "num_leaves": 5, "n_jobs": 1, "verbose": -1}
        model = LGBMClassifier(min_data_per_group=1, cat_smooth=1, **small)
    elif library == "catboost":
        from catboost import CatBoostClassifier

        labelled = frame
        small = {"iterations": 5, "depth": 3, "verbose": 0, "allow_writing_files": False}
        model = CatBoostClassifier(
            one_hot_max_size=9, cat_features=["sex", "town"], thread_count=1, **small
        )
    else:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    return dm.convert(model.fit(labelled, y)), labelled


def ways(table, i):
    """Row i in every way in which people have it."""
    one = table.iloc[[i]]
    yield "Series", table.iloc[i]
    yield "dictionary", table.iloc[i].to_dict()
    yield "dictionary in another order", dict(reversed(table.iloc[i].to_dict().items()))
    yield "list of a dictionary", [table.iloc[i].to_dict()]
    yield "table of one row", one
    yield "list", table.iloc[i].tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_row_means_the_same_in_every_way_that_people_have_it(library):
    machine, table = fitted(library)
    for i in (0, 7, 11):
        one = table.iloc[[i]]
        for way, x in ways(table, i):
            rules = machine.rules(x)
            assert [r.leaf for r in rules] == machine.apply(one)[0].tolist(), way
            found = machine.counterfactual(x)
            assert found.before == machine.predict(one)[0], way
            assert found.after != found.before
            assert machine.code_margin(x).flips >= 1
            np.testing.assert_array_equal(
                machine.proximity(x, table).toarray(), machine.proximity(one, table).toarray()
            )
            np.testing.assert_array_equal(
                machine.nearest(x, table).weights.toarray(),
                machine.nearest(one, table).weights.toarray(),
            )
            curve = machine.ice(x, "pay", grid=[0.0, 2.0]).individual
            np.testing.assert_array_equal(
                curve, machine.ice(one, "pay", grid=[0.0, 2.0]).individual
            )


@pytest.mark.parametrize("library", LIBRARIES)
def test_rules_of_a_table_name_labels_and_are_true_of_their_rows(library):
    machine, table = fitted(library)
    rules = machine.rules(table.iloc[:50])
    names = set()
    for rule in rules:
        row = table.iloc[rule.row]
        for text in conditions_of(rule.text):
            name = next(n for n in table.columns if n in text.split(" ")[0:3])
            names.add(name)
            assert holds(text, name, row[name], machine.columns), (text, row[name])
            if name == "age":  # whole numbers, as the table says
                assert "." not in text
    assert "sex" in names
    assert any("Male" in rule.text or "Female" in rule.text for rule in rules)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_box_is_given_by_names_and_labels(library):
    machine, table = fitted(library)
    men = table[table["sex"] == "Male"]
    found = machine.bounds({"sex": "Male", "age": 20}, {"age": 30, "pay": 0})
    inside = men[(men["age"] >= 20) & (men["age"] <= 30) & (men["pay"] <= 0)]
    margins = machine.margin(inside)
    assert len(inside)
    assert np.all(found.lower <= margins)
    assert np.all(margins <= found.upper)
    one = table.iloc[3]
    point = machine.bounds(one, one)
    np.testing.assert_array_equal(point.lower, machine.margin(table.iloc[[3]])[0])
    np.testing.assert_array_equal(point.upper, point.lower)
    same = machine.bounds(table.iloc[[3]], table.iloc[[3]])
    np.testing.assert_array_equal(same.lower, point.lower)
    either = machine.bounds({"sex": ["Male", "Female"]})
    assert np.all(either.lower <= machine.margin(table).min(axis=0))


def test_a_label_in_a_box_holds_its_feature_there():
    machine = colour_test()
    assert machine.bounds({"colour": "green"}).upper == 2
    assert machine.bounds({"colour": "green"}).lower == 2
    assert machine.bounds(None, {"colour": {"red", "blue"}}).upper == 1
    assert machine.bounds({"colour": ["red", "green"]}).upper == 2
    assert machine.bounds(["blue"], ["blue"]).upper == 1


@pytest.mark.parametrize(
    "box",
    [
        ({"colour": "grey"},),
        ({"colour": "red"}, {"colour": "blue"}),
        ({"shade": "red"},),
        ([1, 2],),
        (7,),
    ],
    ids=str,
)
def test_a_box_that_means_nothing_is_refused(box):
    with pytest.raises(dm.InputError, match="What to do"):
        colour_test().bounds(*box)


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_may_change_is_given_by_names_and_labels(library):
    machine, table = fitted(library)
    i = int(
        np.flatnonzero((table["sex"] == "Female") & (table["pay"] < 0) & (table["age"] > 45))[0]
    )
    x = table.iloc[i]
    free = machine.counterfactual(x, fixed=["pay", "age"], missing_distance=np.inf)
    if free:
        assert list(free.changes) == [1]
    held = machine.counterfactual(x, fixed="pay", ranges={"sex": ["Female"]})
    assert 1 not in held.changes
    scaled = machine.counterfactual(x, scale=table[["age", "pay"]].std())
    same = machine.counterfactual(x, scale=[table["age"].std(), 1, table["pay"].std(), 1])
    assert scaled.distance == same.distance
    whole = machine.counterfactual(x, integers=["age"], fixed=["sex", "pay"])
    if whole:
        assert whole.row[0] == int(whole.row[0])


def test_a_range_of_labels_confines_a_category():
    machine = colour_test()
    assert machine.counterfactual(["green"], ranges={"colour": ["blue"]}).row[0] == 2
    assert machine.counterfactual({"colour": "green"}, ranges={"colour": "red"}).row[0] == 0
    assert machine.counterfactual(["red"], ranges={"colour": {"red", "blue"}}).row is None


def test_a_printed_counterfactual_read_back_has_the_promised_answer():
    machine, table = fitted("xgboost")
    for i in range(20):
        found = machine.counterfactual(table.iloc[i])
        row = table.iloc[i].to_dict()
        for line in str(found).splitlines()[1:-1]:
            name, _, change = line.strip().partition(": ")
            after = change.split(" → ")[1]
            row[name] = after if name in ("sex", "town") else float(after)
        read = pd.DataFrame([row]).astype(table.dtypes.to_dict() | {"age": float})
        assert machine.predict(read)[0] == found.after


def test_a_grid_takes_labels_and_tells_them():
    machine, table = fitted("xgboost")
    found = machine.partial_dependence(table, "sex", grid=["Male", "Female"])
    assert found.labels == (("Male", "Female"),)
    whole = machine.partial_dependence(table, "sex")
    np.testing.assert_array_equal(whole.average, found.average[:, ::-1])
    assert whole.labels == (("Female", "Male"),)
    with pytest.raises(dm.InputError, match="'Mail' for sex"):
        machine.partial_dependence(table, "sex", grid=["Mail"])


def test_names_with_spaces_are_found_as_lightgbm_writes_them():
    columns = dm.Columns(1, names=("net_pay",))
    machine = dm.figure_one()
    from dataclasses import replace

    machine = replace(machine.tree(0), columns=replace(machine.columns, names=tuple("abcd")))
    assert machine.bounds({"a": 0}).exact
    from decision_machines.machine.feature_names import feature_number

    assert feature_number(columns, "net pay") == 0


def test_a_row_without_all_features_is_refused_by_name():
    machine, table = fitted("xgboost")
    row = table.iloc[0].to_dict()
    del row["pay"]
    with pytest.raises(dm.InputError, match="missing 'pay'"):
        machine.rules(row)
    with pytest.raises(dm.InputError, match="3 values"):
        machine.counterfactual(["a", 1, 2])


def test_pictures_take_a_row_by_names():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    import matplotlib

    matplotlib.use("Agg")
    machine, table = fitted("lightgbm")
    drawn = machine.plot_tree(tree=1, x=table.iloc[0], X=table)
    leaf = machine.apply(table.iloc[[0]])[0, 1]
    assert drawn.path[-1] == machine.tree(1).n_tests + leaf
    texts = [text.get_text() for text in drawn.ax_.texts]
    assert any("Female" in text or "Male" in text for text in texts)
    machine, table = fitted("xgboost")
    machine.plot_boundary(table, features=("age", "pay"), at=table.iloc[0], resolution=5)
