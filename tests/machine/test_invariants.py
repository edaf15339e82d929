"""What makes a machine: every rule is checked, nothing can be changed, parts fit the whole."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    ORDERS,
    machines,
    make_machine,
    margins_of,
    probe_rows,
    templates_of,
    walk_all,
    walk_one,
)

import decision_machines as dm


def two_trees():
    """A tree of three leaves and a tree of two, over two features, with two outputs."""
    return {
        "columns": dm.Columns(2),
        "selection": [0, 1, 1],
        "t": [0.0, 1.0, 2.0],
        "missing": [1, -1, 1],
        "children": [[~0, 1], [~1, ~2], [~3, ~4]],
        "V": np.arange(10.0).reshape(5, 2),
        "trees": dm.Trees([0, 2, 3]),
        "output": dm.Output([0.0, 0.0]),
    }


def refusal(make):
    with pytest.raises(dm.InvariantError) as caught:
        make()
    text = str(caught.value)
    assert "invariant '" in text
    assert "What to do: " in text
    return text


# -- one rule broken at a time --------------------------------------------------------------------

BROKEN = {
    "column past the last": ({"selection": [0, 1, 2]}, "reads one column"),
    "negative column": ({"selection": [0, 1, -1]}, "reads one column"),
    "a column too few": ({"selection": [0, 1]}, "reads one column"),
    "fractional column": ({"selection": [0, 1, 0.5]}, "selection"),
    "oblique S of wrong width": ({"selection": sp.csr_array(np.ones((3, 3)))}, "S has"),
    "oblique S of wrong height": ({"selection": sp.csr_array(np.ones((2, 2)))}, "S has"),
    "oblique S with NaN": ({"selection": sp.csr_array(np.full((3, 2), np.nan))}, "weight"),
    "NaN threshold": ({"t": [0.0, np.nan, 2.0]}, "threshold"),
    "a threshold too many": ({"t": [0.0, 1.0, 2.0, 3.0]}, "t has an entry per test"),
    "thresholds as a matrix": ({"t": [[0.0, 1.0, 2.0]]}, "t has an entry per test"),
    "thresholds as text": ({"t": ["a", "b", "c"]}, "t is"),
    "missing answer 0": ({"missing": [1, 0, 1]}, "missing answers are -1 or +1"),
    "missing answer 2": ({"missing": [1, 2, 1]}, "missing answers are -1 or +1"),
    "missing answer 255": ({"missing": [1, 255, 1]}, "missing"),
    "a missing answer too few": ({"missing": [1, 1]}, "missing has an entry per test"),
    "children of wrong shape": ({"children": [~0, 1, ~1]}, "children has an entry per test"),
    "three children": ({"children": np.zeros((3, 3), int)}, "children has an entry per test"),
    "a test its own child": ({"children": [[0, 1], [~1, ~2], [~3, ~4]]}, "parent"),
    "a child before its parent": ({"children": [[~0, 1], [0, ~2], [~3, ~4]]}, "parent"),
    "a child in another tree": ({"children": [[~0, 1], [~1, 2], [~3, ~4]]}, "in its own tree"),
    "a leaf of another tree": ({"children": [[~0, 1], [~1, ~3], [~2, ~4]]}, "in its own tree"),
    "a leaf past the last": ({"children": [[~0, 1], [~1, ~2], [~3, ~5]]}, "tree"),
    "a test past the last": ({"children": [[~0, 1], [~1, ~2], [~3, 3]]}, "tree"),
    "a leaf with two parents": ({"children": [[~0, 1], [~1, ~1], [~3, ~4]]}, "one parent"),
    "a test without parent": ({"children": [[~0, ~1], [~1, ~2], [~3, ~4]]}, "one parent"),
    "leaves out of order": ({"children": [[~1, 1], [~0, ~2], [~3, ~4]]}, "left to right"),
    "leaves mirrored": ({"children": [[~0, 1], [~1, ~2], [~4, ~3]]}, "left to right"),
    "fractional child": ({"children": [[-1.0, 1.0], [-2.0, -3.0], [-4.5, -5.0]]}, "children"),
    "values of a leaf too few": ({"V": np.zeros((4, 2))}, "values for every leaf"),
    "values of an output too few": ({"V": np.zeros((5, 1))}, "values for every leaf"),
    "values in one dimension": ({"V": np.zeros(5)}, "values for every leaf"),
    "whole values": ({"V": np.zeros((5, 2), dtype=int)}, "values are floats"),
    "complex values": ({"V": np.zeros((5, 2), dtype=complex)}, "values are floats"),
    "text values": ({"V": np.full((5, 2), "a")}, "values are floats"),
    "tests that trees do not cover": ({"trees": dm.Trees([0, 2])}, ""),
    "trees over tests that are not there": ({"trees": dm.Trees([0, 2, 4])}, ""),
    "an output that is not there": (
        {"trees": dm.Trees([0, 2, 3], [0, 2]), "V": np.zeros((5, 1))},
        "trees feed existing outputs",
    ),
    "some trees feeding all outputs": (
        {"trees": dm.Trees([0, 2, 3], [0, -1]), "V": np.zeros((5, 1))},
        "",
    ),
    "bases for other outputs": ({"output": dm.Output([0.0])}, "values for every leaf"),
    "weights of a median for other trees": (
        {"output": dm.Output([0.0, 0.0], aggregate="median", weights=[1.0])},
        "weight",
    ),
    "linear leaves too few": (
        {
            "linear": dm.LinearLeaves(
                np.zeros((4, 2)), np.zeros(5, int), np.zeros(0, int), np.zeros((0, 2))
            )
        },
        "linear",
    ),
    "linear leaves on a feature that is not there": (
        {"linear": dm.LinearLeaves(np.zeros((5, 2)), [0, 1, 1, 1, 1, 1], [2], np.ones((1, 2)))},
        "linear",
    ),
}


def test_the_machine_that_the_broken_ones_start_from_is_whole():
    machine = dm.DecisionMachine(**two_trees())
    assert machine.apply([[0, 0], [1, 1], [1, 2], [np.nan, np.nan]]).tolist() == [
        [0, 0],
        [1, 0],
        [2, 0],
        [1, 1],
    ]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_rule_is_named(broken):
    change, rule = BROKEN[broken]
    assert rule in refusal(lambda: dm.DecisionMachine(**{**two_trees(), **change}))


def test_a_threshold_that_float32_columns_cannot_hold_is_refused():
    """Rounding it here would move the tie; the reader must choose the largest float32 below."""
    parts = {**two_trees(), "columns": dm.Columns(2, np.float32)}
    assert "float32" in refusal(lambda: dm.DecisionMachine(**{**parts, "t": [0.0, 0.1, 2.0]}))
    assert dm.DecisionMachine(**parts).t.dtype == np.float32


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: dm.Trees([1, 2]), "start"),
        (lambda: dm.Trees([0, 2, 1]), "start"),
        (lambda: dm.Trees([]), "start"),
        (lambda: dm.Trees([[0, 1]]), "start"),
        (lambda: dm.Trees([0, 1.5]), "test_start"),
        (lambda: dm.Trees([0, 1], [0, 1]), "output per tree"),
        (lambda: dm.Trees([0, 1], test_ids=[1, 2]), "test_ids"),
        (lambda: dm.Trees([0, 1], leaf_ids=[1]), "leaf_ids"),
        (lambda: dm.Columns(-1), "column"),
        (lambda: dm.Columns(2, np.int32), "dtype"),
        (lambda: dm.Columns(2, np.float16), "dtype"),
        (lambda: dm.Columns(2, feature=[2]), "features"),
        (lambda: dm.Columns(2, feature=[-1]), "features"),
        (lambda: dm.Columns(2, rule=[0]), "rule"),
        (lambda: dm.Columns(2, rule=[0, 7]), "rule"),
        (lambda: dm.Columns(2, rule=[0, dm.Rule.MEMBER]), "set"),
        (lambda: dm.Columns(2, sets=dm.CategorySets([0, 1], [1], [1], [-1])), "set"),
        (lambda: dm.Columns(2, names=("a",)), "name"),
        (lambda: dm.CategorySets([0, 2], [1, 1], [-1, -1], [1]), "category sets"),
        (lambda: dm.CategorySets([0, 2], [2, 1], [-1, -1], [1]), "category sets"),
        (lambda: dm.CategorySets([0, 1], [-1], [1], [-1]), "category sets"),
        (lambda: dm.CategorySets([0, 1], [1], [2], [1]), "category sets"),
        (lambda: dm.CategorySets([0, 1], [1], [1], [2]), "category sets"),
        (lambda: dm.CategorySets([0, 2], [1], [1], [-1]), "category sets"),
        (lambda: dm.CategorySets([0, 1], [1], [1, 1], [-1]), "category sets"),
        (lambda: dm.CategorySets([0, 1], [1], [1], [-1, 1]), "category sets"),
        (lambda: dm.Output([0.0], np.int32), "dtype"),
        (lambda: dm.Output(0.0), "base"),
        (lambda: dm.Output([[0.0]]), "base"),
        (lambda: dm.Output([0.0], divisor=0), "divisor"),
        (lambda: dm.Output([0.0], divisor=np.nan), "divisor"),
        (lambda: dm.Output([0.0], aggregate="mode"), "aggregate"),
        (lambda: dm.Output([0.0, 0.0], groups=(0, 1)), "groups"),
        (lambda: dm.Output([0.0, 0.0], groups=(1, 2)), "groups"),
        (lambda: dm.LinearLeaves([[0.0]], [0, 2], [0], [[1.0]]), "linear"),
        (lambda: dm.LinearLeaves([[0.0]], [1, 1], [0], [[1.0]]), "linear"),
        (lambda: dm.LinearLeaves([[0.0]], [0, 1], [0], [[1.0], [2.0]]), "linear"),
        (lambda: dm.LinearLeaves([[0.0]], [0, 1], [0], [[1.0, 2.0]]), "linear"),
    ],
)
def test_a_part_that_breaks_its_rule_is_refused(make, rule):
    assert rule in refusal(make).lower()


@pytest.mark.parametrize("output", [{"link": "magic"}, {"decision": "magic"}])
def test_an_unknown_link_or_decision_is_named(output):
    """At the latest where it would be used."""
    with pytest.raises(dm.DecisionMachinesError, match="magic"):
        dm.DecisionMachine(**{**two_trees(), "output": dm.Output([0.0, 0.0], **output)}).predict(
            [[0, 0]]
        )


# -- frozen ---------------------------------------------------------------------------------------


def arrays_of(part, name=""):
    """Every NumPy array that a machine holds in its fields, with its name."""
    if isinstance(part, np.ndarray):
        yield name, part
    elif sp.issparse(part):
        yield from ((f"{name}.{a}", getattr(part, a)) for a in ("data", "indices", "indptr"))
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from arrays_of(getattr(part, field.name), f"{name}.{field.name}")
    elif isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from arrays_of(item, f"{name}[{i}]")


def full_machine():
    """A machine that uses every field that holds an array."""
    return dm.DecisionMachine(
        columns=dm.Columns(
            2,
            feature=[0, 1, 1],
            rule=[dm.Rule.VALUE, dm.Rule.MEMBER, dm.Rule.VALUE],
            sets=dm.CategorySets([0, 2], [1, 4], [-1, 1], [0]),
            names=("a", "b"),
        ),
        selection=[0, 1, 2],
        t=[0.0, 0.5, 2.0],
        missing=[1, -1, 1],
        children=[[~0, 1], [~1, ~2], [~3, ~4]],
        V=np.arange(10.0).reshape(5, 2),
        trees=dm.Trees([0, 2, 3], test_ids=[7, 8, 9], leaf_ids=[1, 2, 3, 4, 5]),
        output=dm.Output([1.0, 2.0], classes=(np.array(["no", "yes"]),), weights=[1.0, 1.0]),
        linear=dm.LinearLeaves(np.ones((5, 2)), [0, 1, 1, 1, 1, 1], [1], np.ones((1, 2))),
        source="a test",
    )


def oblique_machine():
    return dm.DecisionMachine(
        **{**two_trees(), "selection": sp.csr_array(np.array([[1.0, 2.0], [0.5, 0.0], [0, -1.0]]))}
    )


MAKERS = (dm.figure_one, full_machine, oblique_machine)


@pytest.mark.parametrize("make", MAKERS)
def test_all_arrays_are_read_only(make):
    writeable = [name for name, array in arrays_of(make()) if array.flags.writeable]
    assert writeable == []


@pytest.mark.parametrize("make", MAKERS)
def test_all_fields_are_frozen(make):
    machine = make()
    for part in (machine, machine.columns, machine.trees, machine.output):
        for field in dataclasses.fields(part):
            with pytest.raises(AttributeError):
                setattr(part, field.name, None)


def test_a_machine_does_not_change_with_the_arrays_it_was_made_from():
    parts = two_trees()
    parts.update(
        {name: np.array(parts[name]) for name in ("selection", "t", "missing", "children")}
    )
    parts["t"] = parts["t"].astype(np.float64)
    parts["selection"] = parts["selection"].astype(np.int32)
    parts["children"] = parts["children"].astype(np.int32)
    parts["missing"] = parts["missing"].astype(np.int8)
    machine, wanted = dm.DecisionMachine(**parts), dm.DecisionMachine(**two_trees())
    for name in ("selection", "t", "missing", "children", "V"):
        parts[name][...] = 0  # still the caller's to write
    assert machine.equals(wanted)


def test_an_oblique_machine_does_not_change_with_its_matrix():
    S = sp.csr_array(np.array([[1.0, 2.0], [0.5, 0.0], [0, -1.0]]))
    machine = dm.DecisionMachine(**{**two_trees(), "selection": S})
    S.data[:] = 0  # still the caller's to write
    assert machine.equals(oblique_machine())


@pytest.mark.parametrize("make", MAKERS)
def test_a_machine_does_not_change_with_the_matrices_it_shows(make):
    machine = make()
    for shown in (machine.S, machine.B):
        if shown.data.flags.writeable:
            shown.data[:] = 3
    assert machine.equals(make())
    assert set(machine.B.toarray().ravel().tolist()) <= {-1, 0, 1}
    np.testing.assert_array_equal(machine.S.toarray(), make().S.toarray())


COPIES = {
    "pickle": lambda machine: pickle.loads(pickle.dumps(machine)),
    "oldest pickle": lambda machine: pickle.loads(pickle.dumps(machine, protocol=2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "replace": dataclasses.replace,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("make", MAKERS)
def test_copies_are_equal_and_as_frozen(make, way):
    machine, other = make(), COPIES[way](make())
    assert other.equals(machine)
    assert machine.equals(other)
    assert other.source == machine.source
    assert [name for name, array in arrays_of(other) if array.flags.writeable] == []
    np.testing.assert_array_equal(other.B.toarray(), machine.B.toarray())


@given(machines())
@settings(max_examples=25)
def test_a_pickled_machine_predicts_alike(machine):
    other = pickle.loads(pickle.dumps(machine))
    assert other.equals(machine)
    X = probe_rows(machine, max_rows=20)
    np.testing.assert_array_equal(other.margin(X), machine.margin(X))


@pytest.mark.parametrize(
    "change",
    [
        {"t": [0.0, 1.0, 2.5]},
        {"t": [-0.0, 1.0, 2.0]},
        {"missing": [1, 1, 1]},
        {"selection": [1, 1, 1]},
        {"V": np.zeros((5, 2))},
        {"V": np.arange(10, dtype=np.float32).reshape(5, 2)},
        {"trees": dm.Trees([0, 2, 3], leaf_ids=[1, 2, 3, 4, 5])},
        {"output": dm.Output([0.0, 1.0])},
        {"output": dm.Output([0.0, 0.0], np.float32)},
        {"output": dm.Output([0.0, 0.0], divisor=2.0)},
        {"columns": dm.Columns(2, np.float32)},
        {"columns": dm.Columns(2, names=("a", "b"))},
        {"columns": dm.Columns(2, rule=[1, 0])},
        {"columns": dm.Columns(2, feature=[1, 0])},
        {"children": [[1, ~2], [~0, ~1], [~3, ~4]]},
    ],
)
def test_equals_sees_every_difference(change):
    machine = dm.DecisionMachine(**two_trees())
    other = dm.DecisionMachine(**{**two_trees(), **change})
    assert not machine.equals(other)
    assert not other.equals(machine)


def test_equals_leaves_the_source_aside():
    machine = dm.DecisionMachine(**two_trees())
    assert machine.equals(dm.DecisionMachine(**two_trees(), source="elsewhere"))


# -- small, deep, empty, wide ---------------------------------------------------------------------


def test_a_one_leaf_tree_is_a_machine():
    machine = make_machine([1], np.random.default_rng(0), rules=False, plain_output=True)
    assert (machine.n_trees, machine.n_leaves, machine.n_tests, machine.depth) == (1, 1, 0, 0)
    assert machine.B.shape == (1, 0)
    X = probe_rows(machine)
    assert machine.apply(X).tolist() == [[0]] * len(X)
    np.testing.assert_array_equal(machine.margin(X), np.repeat(machine.V, len(X), axis=0))


def test_a_machine_without_features_predicts_its_leaf():
    machine = dm.DecisionMachine(
        dm.Columns(0),
        [],
        [],
        [],
        np.empty((0, 2), int),
        [[3.0]],
        dm.Trees([0, 0]),
        dm.Output([0.0]),
    )
    assert machine.predict(np.empty((4, 0))).tolist() == [3.0] * 4


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", ["left", "right", "zigzag"])
def test_a_chain_of_depth_300_is_a_machine(shape, order):
    rng = np.random.default_rng(1)
    machine = make_machine([301], rng, shapes=(shape,), orders=(order,), rules=False)
    assert machine.depth == 300
    np.testing.assert_array_equal(machine.B.toarray(), templates_of(machine.children))
    X = probe_rows(machine, max_rows=25)
    np.testing.assert_array_equal(machine.apply(X), walk_all(machine, X))
    assert dm.column_rank(machine).tolist() == [300]
    assert dm.exit_is_unique(machine).tolist() == [True]


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_an_empty_forest_answers_its_base(n_outputs):
    machine = make_machine([], np.random.default_rng(2), n_outputs=n_outputs, rules=False)
    assert (machine.n_trees, machine.n_leaves, machine.n_tests, machine.depth) == (0, 0, 0, 0)
    assert machine.B.shape == (0, 0)
    assert machine.S.shape == (0, 3)
    X = probe_rows(machine)
    assert machine.apply(X).shape == (len(X), 0)
    np.testing.assert_array_equal(machine.margin(X), margins_of(machine, X))
    assert machine.equals(pickle.loads(pickle.dumps(machine)))
    assert dm.column_rank(machine).shape == (0,)
    assert dm.exit_is_unique(machine).shape == (0,)


@given(machines())
def test_counts_are_as_the_parts_say(machine):
    tests = np.diff(machine.trees.test_start)
    assert machine.n_trees == len(tests)
    assert machine.n_tests == tests.sum() == len(machine.t)
    assert machine.n_leaves == (tests + 1).sum() == len(machine.V)
    assert machine.n_outputs == len(machine.output.base)
    assert machine.n_features == machine.columns.n_features
    np.testing.assert_array_equal(np.diff(machine.trees.leaf_start), tests + 1)
    np.testing.assert_array_equal(np.bincount(machine.trees.of_test, minlength=len(tests)), tests)
    np.testing.assert_array_equal(
        np.bincount(machine.trees.of_leaf, minlength=len(tests)), tests + 1
    )
    depths = np.abs(machine.B.toarray().astype(int)).sum(axis=1)
    assert machine.depth == depths.max(initial=0)
    assert machine.is_narrow == bool(len(tests) and (machine.trees.feeds >= 0).all())
    assert machine.nbytes >= machine.V.nbytes + machine.t.nbytes + machine.children.nbytes


@given(machines())
@settings(max_examples=25)
def test_selection_matrix_is_one_hot(machine):
    S = machine.S.toarray()
    assert S.shape == (machine.n_tests, len(machine.columns.feature))
    assert (S.sum(axis=1) == 1).all()
    assert (np.count_nonzero(S, axis=1) == 1).all()
    np.testing.assert_array_equal(S.argmax(axis=1), machine.selection)


def test_a_forest_of_many_outputs_stays_narrow():
    """A boosted model of 100 classes holds one value per leaf, not 100."""
    machine = make_machine([31] * 100, np.random.default_rng(3), n_outputs=100, narrow=True)
    assert machine.V.shape == (3100, 1)
    X = probe_rows(machine, max_rows=3)[:5]
    assert machine.margin(X).shape == (5, 100)
    np.testing.assert_array_equal(machine.margin(X), margins_of(machine, X))


# -- parts of a machine ---------------------------------------------------------------------------


@given(machines(max_trees=4, values="whole", dtype=np.float64, plain_output=True))
def test_margins_of_the_trees_sum_to_the_forests(machine):
    X = probe_rows(machine, max_rows=30)
    total = np.zeros((len(X), machine.n_outputs))
    for i in range(machine.n_trees):
        tree = machine.tree(i)
        assert tree.n_trees == 1
        assert tree.n_outputs == machine.n_outputs
        np.testing.assert_array_equal(tree.apply(X)[:, 0], machine.apply(X)[:, i])
        total += tree.margin(X)
    np.testing.assert_array_equal(machine.margin(X), total)


@pytest.mark.parametrize("base_first", [False, True])
@pytest.mark.parametrize(("divisor", "scale"), [(1.0, 1.0), (4.0, 1.0), (1.0, 0.5), (2.0, 0.25)])
def test_a_trees_margin_is_what_it_adds_to_the_sum(divisor, scale, base_first):
    """The sum of `Output`'s first step: before it is divided, scaled and given its base."""
    output = dm.Output([8.0], base_first=base_first, divisor=divisor, scale=scale)
    machine = dataclasses.replace(dm.figure_one(), output=output)
    assert machine.tree(0).margin([[2, 1, 2, 2]]).item() == 5


@given(machines(min_trees=1, max_trees=3, max_leaves=12, values="whole"), st.data())
def test_a_subtree_answers_as_its_tree_does_below_the_node(machine, data):
    """Rows that pass a node leave by the same leaf, with the same value, in the sub-machine."""
    tree = data.draw(st.integers(0, machine.n_trees - 1))
    tests, leaves = machine.trees.tests(tree), machine.trees.leaves(tree)
    nodes = [*range(tests.start, tests.stop), *(~i for i in range(leaves.start, leaves.stop))]
    node = data.draw(st.sampled_from(nodes))
    B = machine.templates(tree).toarray()
    below = np.flatnonzero(B[:, node - tests.start]) if node >= 0 else [~node - leaves.start]
    part = machine.subtree(node)
    assert part.n_trees == 1
    assert part.n_leaves == len(below)
    X = probe_rows(machine, max_rows=40)
    exits = machine.apply(X)[:, tree]
    passes = np.isin(exits, below)
    np.testing.assert_array_equal(part.apply(X)[passes, 0] + below[0], exits[passes])
    np.testing.assert_array_equal(part.margin(X)[passes], machine.tree(tree).margin(X)[passes])
    np.testing.assert_array_equal(part.apply(X), walk_all(part, X))


def test_the_subtree_at_a_root_is_the_tree():
    machine = make_machine([4, 1, 6], np.random.default_rng(4))
    assert machine.subtree(0).equals(machine.tree(0))
    assert machine.subtree(~4).equals(machine.tree(1))
    assert machine.subtree(3).equals(machine.tree(2))


@pytest.mark.parametrize("node", [5, ~6, 10**12, 0.5, "root"])
def test_a_subtree_of_no_node_is_refused(node):
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().subtree(node)


@pytest.mark.parametrize("i", [1, -2, 0.5, "first"])
def test_a_tree_that_is_not_there_is_refused(i):
    with pytest.raises(dm.InputError, match="What to do"):
        dm.figure_one().tree(i)


def test_trees_keep_their_own_names():
    machine = full_machine()
    assert machine.mask([0]).trees.leaf_ids.tolist() == [4, 5]
    assert machine.mask([0]).trees.test_ids.tolist() == [9]


def test_the_plain_walk_knows_the_worked_example():
    """The oracle of these tests, checked by hand."""
    assert walk_one(dm.figure_one(), [2, 1, 2, 2]) == [4]
    assert walk_one(full_machine(), [1, 1]) == [1, 0]
    assert walk_one(full_machine(), [1, 4]) == [2, 1]
    assert walk_one(full_machine(), [1, 9]) == [1, 1]
