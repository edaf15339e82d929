"""Facts that several rooms share: each is told in one place, and is right there."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from strategies import machines, make_machine, probe_rows

import decision_machines as dm
from decision_machines.machine import Accepted, compose
from decision_machines.machine.coded import coded
from decision_machines.machine.feature_names import columns_of_features, feature_number, known_as
from decision_machines.machine.look_ups import LookUps
from decision_machines.machine.values import wide_values

# ---------------------------------------------------------------------- the direct sum


def no_look_ups():
    """A table without keys, and no column of it."""
    none = np.empty(0)
    starts = np.zeros(2)
    return LookUps(
        *(none, none, starts, none, none, none, none, none),
        *(np.zeros(1), none, starts, none, np.ones(1), np.zeros(1)),
    )


OTHER_COLUMNS = {
    "n_features": None,
    "dtype": None,
    "names": ("a", "b", "c"),
    "categories": {0: ("x", "y")},
    "absent": float("nan"),
    "missing_value": -999.0,
    "integers_as": np.float32,
    "table_categories": (("x",),),
    "encodes_arrays": True,
    "label_hash": "catboost",
    "refuses_new_labels": True,
    "look_ups": no_look_ups(),
    "edges": {0: (0.5,)},
    "accepted": Accepted(*(np.zeros(3), np.ones(3)), *(np.ones(3, bool), np.ones(3, bool))),
}
"""Another value of each property of the columns that a direct sum cannot join."""
OTHER_OUTPUT = {
    "aggregate": "max",
    "weights": np.ones(2),
    "link": "exp",
    "link_params": None,
    "decision": "margin",
    "decision_params": None,
    "classes": (np.array(["a", "b"]),),
    "groups": (0, 1, 2),
    "squeeze": False,
}


def one_machine():
    return make_machine([3, 4], np.random.default_rng(5), n_features=3, n_outputs=2, rules=False)


def test_every_property_is_joined_or_must_be_equal():
    assert set(compose.JOINED_COLUMNS) | set(OTHER_COLUMNS) == {f.name for f in fields(dm.Columns)}
    assert set(compose.SUMMED_OUTPUT) | set(OTHER_OUTPUT) == {f.name for f in fields(dm.Output)}


@pytest.mark.parametrize("name", [n for n, value in OTHER_COLUMNS.items() if value is not None])
def test_machines_that_read_their_data_otherwise_are_not_summed(name):
    machine = one_machine()
    other = replace(machine, columns=replace(machine.columns, **{name: OTHER_COLUMNS[name]}))
    for pair in ([machine, other], [other, machine]):
        with pytest.raises(dm.InputError, match=rf"columns\.{name}"):
            dm.direct_sum(pair)
    assert dm.direct_sum([other, other]).n_trees == 4  # equal in both, it does no harm


@pytest.mark.parametrize(
    "name", [n for n, v in OTHER_OUTPUT.items() if v is not None and n != "aggregate"]
)
def test_machines_that_answer_otherwise_are_not_summed(name):
    machine = one_machine()
    changes = {name: OTHER_OUTPUT[name]}
    if name == "classes":
        changes["groups"] = (0, 2)
    if name == "groups":
        changes["classes"] = None
    other = replace(machine, output=replace(machine.output, **changes))
    with pytest.raises(dm.InputError, match=rf"output\.{name}"):
        dm.direct_sum([machine, other])


def test_other_parameters_of_a_link_and_a_decision_are_not_summed():
    machine = one_machine()
    for name, how in (
        ("link_params", {"link": "expit", "link_params": (2.0,)}),
        ("decision_params", {"decision": "inlier", "decision_params": (2.0,)}),
    ):
        plain = {key: value for key, value in how.items() if key != name}
        a = replace(machine, output=replace(machine.output, **plain))
        b = replace(machine, output=replace(machine.output, **how))
        with pytest.raises(dm.InputError, match=rf"output\.{name}"):
            dm.direct_sum([a, b])


def test_machines_of_other_links_are_summed_by_their_margins():
    machine = one_machine()
    other = replace(machine, output=replace(machine.output, link="exp"))
    margins = [replace(m, output=m.output.as_margins()) for m in (machine, other)]
    X = probe_rows(machine, 10)
    np.testing.assert_allclose(dm.direct_sum(margins).margin(X), 2 * machine.margin(X))


def test_a_value_read_as_missing_is_not_lost_in_a_sum():
    """Before, the sum of machines took the first one's, and routed the others' rows wrongly."""
    machine = one_machine()
    other = replace(machine, columns=replace(machine.columns, missing_value=-1.0))
    both = dm.direct_sum([other, other], [1.0, 1.0])
    X = np.full((1, 3), -1.0)
    np.testing.assert_allclose(both.margin(X), 2 * other.margin(X))
    with pytest.raises(dm.InputError, match="missing_value"):
        dm.direct_sum([machine, other])


# ---------------------------------------------------------------------- read-only labels


def test_labels_of_a_machine_cannot_be_changed():
    labels = {1: ["a", "b"]}
    columns = dm.Columns(2, categories=labels)
    with pytest.raises(TypeError):
        columns.categories[1] = ("c",)
    labels[1].append("c")
    labels[0] = ["d"]
    assert dict(columns.categories) == {1: ("a", "b")}


@pytest.mark.parametrize(
    "rebuilt",
    [
        copy.copy,
        copy.deepcopy,
        replace,
        lambda part: pickle.loads(pickle.dumps(part)),
        *(lambda part, n=n: pickle.loads(pickle.dumps(part, n)) for n in range(2, 6)),
    ],
)
def test_read_only_labels_are_copied_pickled_and_replaced(rebuilt):
    machine = one_machine()
    machine = replace(machine, columns=replace(machine.columns, categories={2: ("a", 1.5, None)}))
    assert rebuilt(machine).equals(machine)
    found = rebuilt(machine.columns)
    assert dict(found.categories) == {2: ("a", 1.5, None)}
    with pytest.raises(TypeError):
        found.categories[2] = ()


# ---------------------------------------------------------------------- coded rows, wide values


def test_a_coded_machine_takes_the_codes_of_labels():
    machine = one_machine()
    columns = replace(machine.columns, categories={0: ("a", "b")}, encodes_arrays=True)
    labelled = replace(machine, columns=columns)
    X = np.array([["b", 0.5, 1.0], ["a", 2.0, -1.0]], object)
    codes = labelled.features(X)
    assert np.array_equal(codes[:, 0], [1.0, 0.0])
    assert np.array_equal(coded(labelled).margin(codes), labelled.margin(X))
    assert coded(machine) is machine


@given(machine=machines())
def test_wide_values_are_the_values_of_every_output(machine):
    wide = wide_values(machine)
    assert wide.shape == (machine.n_leaves, machine.n_outputs)
    assert wide.dtype == machine.V.dtype
    for tree in range(machine.n_trees):
        leaves, feeds = machine.trees.leaves(tree), int(machine.trees.feeds[tree])
        if feeds == dm.machine.ALL_OUTPUTS:
            assert np.array_equal(wide[leaves], machine.V[leaves])
        else:
            assert np.array_equal(wide[leaves, feeds], machine.V[leaves, 0])
            assert not np.any(np.delete(wide[leaves], feeds, axis=1))


# ---------------------------------------------------------------------- names, trees, columns


def test_names_with_spaces_are_found_as_lightgbm_writes_them():
    columns = dm.Columns(2, names=("house_size", "age"))
    assert feature_number(columns, "house size") == 0
    assert known_as("a b", {"a b", "a_b"}) == "a b"
    assert columns_of_features(columns.names, ["age", "house size"]) == ["house size", "age"]
    assert columns_of_features(("a b",), ["a_b", "a b"]) == ["a b"]


@pytest.mark.parametrize("trees", [2, -3, [5], [0, 1.0], "a", [[0]], {"a"}, object()])
def test_trees_that_do_not_exist_are_refused_everywhere(trees):
    machine = one_machine()
    for ask in (machine.trees.choose, machine.mask, machine.boxes, machine.mask_projection):
        with pytest.raises(dm.InputError, match="choosing trees"):
            ask(trees)
    with pytest.raises(dm.InputError, match="choosing trees"):
        machine.rules(trees=trees)
    pytest.importorskip("matplotlib")
    with pytest.raises(dm.InputError, match="choosing trees"):
        machine.plot_templates(trees=trees)


def test_trees_are_one_several_or_all():
    trees = one_machine().trees
    assert trees.choose(None).tolist() == [0, 1]
    assert trees.choose(-1).tolist() == [1]
    assert trees.choose(iter([1, 0])).tolist() == [1, 0]
    assert trees.choose([]).tolist() == []
    with pytest.raises(dm.InputError, match="choosing trees"):
        one_machine().mask(None)


@given(machine=machines())
def test_columns_are_what_their_keys_say(machine):
    columns = machine.columns
    again = columns.with_keys(columns.column_keys())
    X = probe_rows(machine, 10)
    assert np.array_equal(again.read(X), columns.read(X), equal_nan=True)
    assert again.column_keys() == columns.column_keys()
