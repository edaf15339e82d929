"""Simpler machines with the same answers, fingerprints, and differences between machines."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from strategies import machines, probe_rows

import decision_machines as dm


def renumbered(machine, rng):
    """The same machine with its tests and its columns in another order, and a column too many."""
    n = len(machine.columns)
    order = rng.permutation(n)
    columns = machine.columns
    if columns.sets is None and not machine.is_oblique:
        columns = replace(
            columns,
            feature=np.append(columns.feature[order], 0),
            rule=np.append(columns.rule[order], dm.Rule.VALUE),
        )
        machine = replace(machine, columns=columns, selection=np.argsort(order)[machine.selection])
    place = np.empty(machine.n_tests, np.int64)  # breadth first within each tree
    for tree in range(machine.n_trees):
        own = machine.trees.tests(tree)
        by_depth = np.argsort(machine.structure.depth[own], kind="stable") + own.start
        place[by_depth] = np.arange(own.start, own.stop)
    back = np.argsort(place)
    children = machine.children[back]
    children = np.where(children >= 0, place[np.maximum(children, 0)], children)
    return replace(
        machine,
        selection=machine.selection[back],
        t=machine.t[back],
        missing=machine.missing[back],
        children=children,
        source="another",
        trees=replace(machine.trees, test_ids=None, leaf_ids=None),
    )


@given(machines(max_trees=4, max_leaves=14))
def test_simplified_machines_answer_alike_to_the_bit(machine):
    smaller = machine.simplify()
    X = probe_rows(machine, max_rows=60)
    assert smaller.margin(X).tobytes() == machine.margin(X).tobytes()
    assert smaller.n_leaves <= machine.n_leaves
    assert smaller.n_trees == machine.n_trees
    assert smaller.boxes().reachable.all()
    assert smaller.simplify().fingerprint() == smaller.fingerprint()
    assert len(smaller.columns) == len(np.unique(smaller.selection))


@given(machines(max_trees=2, max_leaves=10, rules=False, oblique=True))
def test_oblique_machines_are_simplified_too(machine):
    smaller = machine.simplify()
    X = probe_rows(machine, max_rows=40)
    assert smaller.margin(X).tobytes() == machine.margin(X).tobytes()


def test_leaves_of_one_value_become_one_leaf():
    machine = dm.figure_one()
    assert replace(machine, V=np.ones((6, 1))).simplify().n_leaves == 1
    assert replace(machine, V=machine.V.clip(3)).simplify().n_leaves == 4
    assert replace(machine, V=np.array([[0.0], [-0.0]] * 3)).simplify().n_leaves == 6


def test_equal_subtrees_on_both_sides_make_their_test_needless():
    one = dm.figure_one()
    twice = replace(one, selection=np.array([0, 1, 1, 1, 3]), t=np.array([1.0, 4, 4, 2, 5]))
    twice = replace(twice, V=np.array([[1.0], [1], [1], [2], [1], [2]]))
    smaller = twice.simplify()
    assert smaller.n_leaves == 2
    assert smaller.rules()[0].text == "if x[2] ≤ 4 then 1"


def test_contradictions_between_columns_of_one_feature_are_found():
    columns = dm.Columns(
        1,
        feature=np.array([0, 0]),
        rule=np.array([dm.Rule.MEMBER] * 2),
        sets=dm.CategorySets([0, 1, 2], [0, 1], [-1, -1], [1, 1]),
    )
    machine = dm.DecisionMachine(
        columns,
        np.array([0, 1]),
        np.array([0.5, 0.5]),
        np.array([1, 1]),
        np.array([[1, ~2], [~0, ~1]]),
        np.array([[1.0], [2.0], [3.0]]),
        dm.Trees(np.array([0, 2])),
        dm.Output(np.zeros(1)),
    )
    assert machine.boxes().reachable.tolist() == [False, True, True]
    assert machine.simplify().n_leaves == 2


@given(machines(max_trees=3, max_leaves=10))
def test_a_fingerprint_does_not_see_numbering(machine):
    other = renumbered(machine, np.random.default_rng(0))
    assert other.fingerprint() == machine.fingerprint()
    assert not dm.diff(machine, other)


@settings(max_examples=15)
@given(machines(min_trees=1, max_trees=3, min_leaves=2, max_leaves=8, rules=False))
def test_a_fingerprint_sees_every_array(machine):
    own = machine.fingerprint()
    for change in (
        {"t": np.nextafter(machine.t, machine.t.dtype.type(np.inf))},
        {"missing": -machine.missing},
        {"V": machine.V + 1},
        {"output": replace(machine.output, base=machine.output.base + 1)},
        {"output": replace(machine.output, divisor=7.0)},
        {"columns": replace(machine.columns, missing_value=3.0)},
    ):
        other = replace(machine, **change)
        assert other.fingerprint() != own
        assert dm.diff(machine, other)


def test_a_fingerprint_is_the_same_in_another_process():
    code = "import decision_machines as dm; print(dm.figure_one().fingerprint())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == dm.figure_one().fingerprint()


def test_a_converted_and_a_saved_machine_have_one_fingerprint(tmp_path):
    X, y = load_iris(return_X_y=True)
    machine = dm.convert(RandomForestClassifier(5, random_state=0).fit(X, y))
    machine.save(tmp_path / "m.dm")
    assert dm.load(tmp_path / "m.dm").fingerprint() == machine.fingerprint()


@settings(max_examples=30)
@given(
    machines(min_trees=1, max_trees=3, max_leaves=6, n_features=3, values="whole"),
)
def test_a_witness_is_answered_differently_by_both_machines(machine):
    rng = np.random.default_rng(machine.n_tests)
    other = replace(
        machine, t=machine.t + rng.integers(0, 2, machine.n_tests).astype(machine.t.dtype)
    )
    found = dm.diff(machine, other)
    if found.witness is not None:
        x = found.witness.x[None]
        ask = "predict" if found.witness.what == "predictions" else "margin"
        assert not np.array_equal(getattr(machine, ask)(x), getattr(other, ask)(x))
    elif machine.n_trees == 1:  # one tree is searched whole
        X = probe_rows(machine, max_rows=100)
        X = np.concatenate([X, probe_rows(other, max_rows=100)])
        np.testing.assert_array_equal(machine.margin(X), other.margin(X))


def test_a_tree_put_in_does_not_make_the_others_differ():
    X, y = load_diabetes(return_X_y=True)
    long = dm.convert(GradientBoostingRegressor(n_estimators=12, random_state=0).fit(X, y))
    short = long.mask([4])
    found = dm.diff(short, long)
    assert (found.same, found.added, found.removed, found.changed) == (11, (4,), (), ())
    assert dm.diff(long, short).removed == (4,)
    assert found.witness.what == "predictions"


def test_moved_thresholds_and_changed_values_are_counted():
    one = dm.figure_one()
    other = replace(one, t=one.t + np.array([0, 0.5, 0, 0, 2]), V=one.V + (one.V == 3))
    (change,) = dm.diff(one, other).changed
    assert (change.thresholds, change.furthest, change.values, change.largest) == (2, 2.0, 1, 1.0)
    assert "2 thresholds moved, by 2 at most; 1 leaf changed, by 1 at most" in str(change)


def test_machines_written_otherwise_are_proven_to_answer_alike():
    one = dm.figure_one()
    other = replace(one, V=one.V.clip(3))
    found = dm.diff(other, other.simplify())
    assert found
    assert found.same_answers
    assert found.witness is None


def test_the_same_trees_in_another_order_are_said_to_be_so():
    X, y = load_diabetes(return_X_y=True)
    machine = dm.convert(GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, y))
    parts = [machine.tree(i) for i in range(3)]
    found = dm.diff(dm.direct_sum(parts), dm.direct_sum(parts[::-1]))
    assert found.reordered


def test_outputs_that_differ_are_named():
    one = dm.figure_one()
    found = dm.diff(one, replace(one, output=replace(one.output, base=np.array([2.5]))))
    assert found.output == ("base [0.0] → [2.5]",)
    assert found.witness is not None


def test_what_is_no_machine_is_refused():
    with pytest.raises(dm.InputError, match=r"dict[\s\S]*What to do"):
        dm.diff(dm.figure_one(), {})


def test_the_command_says_what_differs_and_exits_with_one(tmp_path):
    import json

    from typer.testing import CliRunner

    from decision_machines.cli.app import app

    one = dm.figure_one()
    one.save(tmp_path / "a.dm")
    replace(one, t=one.t + np.array([0, 0, 0.5, 0, 0])).save(tmp_path / "b.dm")
    run = CliRunner().invoke
    done = run(app, ["diff", str(tmp_path / "a.dm"), str(tmp_path / "a.dm")])
    assert done.exit_code == 0
    assert done.output.startswith("equal")
    done = run(app, ["diff", str(tmp_path / "a.dm"), str(tmp_path / "b.dm")])
    assert done.exit_code == 1
    assert "1 threshold moved, by 0.5 at most" in done.output
    done = run(app, ["diff", str(tmp_path / "a.dm"), str(tmp_path / "b.dm"), "--json"])
    found = json.loads(done.output)
    assert found["different"]
    assert found["changed"][0]["thresholds"] == 1
    assert found["witness"]["a"] != found["witness"]["b"]
