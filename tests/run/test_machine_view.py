"""What is handed to the compiled code is checked there, part by part, and named where wrong."""

import gc
import sys

import numpy as np
import pytest
from strategies import make_machine

import decision_machines as dm
from decision_machines import _native
from decision_machines.run.engines import native
from decision_machines.run.engines.machine_view import machine_view

SCALAR = "scalar"


def parts(**changes):
    """The keywords of a machine of one tree of two tests, three leaves."""
    found = {
        "columns": {
            "n_features": 2,
            "feature": np.array([0, 1], np.int32),
            "rule": np.zeros(2, np.uint8),
            "single": False,
            "integers_single": False,
            "missing_value": np.nan,
            "absent": 0.0,
        },
        "trees": {
            "children": np.array([[1, -3], [-1, -2]], np.int32),
            "test_start": np.array([0, 2]),
            "feeds": np.zeros(1, np.int32),
        },
        "tests": {
            "t": np.zeros(2),
            "missing": np.ones(2, np.int8),
            "selection": np.array([0, 1], np.int32),
        },
        "output": {
            "V": np.arange(3.0)[:, None],
            "narrow": True,
            "base": np.zeros(1),
            "base_first": True,
            "divisor": 1.0,
            "scale": 1.0,
            "aggregate": _native.Machine.Aggregate.sum,
        },
    }
    for name, values in changes.items():
        found[name] = found.get(name, {}) | values
    return found


CLASSES = {
    name: getattr(_native.Machine, name.capitalize())
    for name in ("columns", "sets", "trees", "tests", "output", "linear")
}


def view(**changes):
    made = {name: CLASSES[name](**given) for name, given in parts(**changes).items()}
    return _native.Machine(**made)


def predict(machine, X):
    out = np.empty((len(X), 1))
    assert _native.Engine(machine, SCALAR).array(X, out, False, 1)
    return out[:, 0].tolist()


def test_a_machine_by_its_parts_predicts():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert predict(view(), X) == [0.0, 1.0, 2.0]


def test_an_engine_holds_the_arrays_that_it_reads():
    engine = _native.Engine(view(), SCALAR)  # nothing else holds them
    gc.collect()
    others = [np.full(3, np.nan) for _ in range(1000)]  # where freed arrays would have been
    out = np.empty((1, 1))
    assert engine.array(np.array([[1.0, 0.0]]), out, False, 1)
    assert out[0, 0] == 2.0
    assert len(others) == 1000


WRONG = {
    "a feature beyond the last": ("columns", {"feature": np.array([0, 2], np.int32)}, "feature"),
    "rules for some columns": ("columns", {"rule": np.zeros(1, np.uint8)}, "n_columns"),
    "an unknown rule": ("columns", {"rule": np.array([0, 9], np.uint8)}, "rule"),
    "a rule of sets without sets": ("columns", {"rule": np.array([0, 3], np.uint8)}, "set"),
    "tests beyond the trees": ("trees", {"test_start": np.array([0, 1])}, "test_start"),
    "an output that is not there": ("trees", {"feeds": np.ones(1, np.int32)}, "output"),
    "a column that is not there": ("tests", {"selection": np.array([0, 5], np.int32)}, "column"),
    "too few thresholds": ("tests", {"t": np.zeros(1)}, "n_tests"),
    "neither selection nor weights": ("tests", {"selection": None}, "either"),
    "too few leaves": ("output", {"V": np.zeros((2, 1))}, "n_leaves"),
    "values for another number of outputs": ("output", {"V": np.zeros((3, 2))}, "n_outputs"),
}


@pytest.mark.parametrize("case", WRONG)
def test_parts_that_do_not_fit_are_named(case):
    part, change, word = WRONG[case]
    with pytest.raises(ValueError, match=word):
        view(**{part: change})


def test_weights_have_the_dtype_of_the_columns():
    weights = _native.Machine.Weights(
        start=np.array([0, 1, 2]),
        column=np.array([0, 1], np.int32),
        weight=np.ones(2, np.float32),
    )
    with pytest.raises(ValueError, match="dtype"):
        view(tests={"selection": None, "weights": weights})


def test_linear_leaves_fit_the_leaves():
    linear = {
        "start": np.array([0, 1, 1, 1]),
        "feature": np.array([0], np.int32),
        "intercept": np.zeros((3, 1)),
        "coefficient": np.ones((1, 1)),
        "constant": np.zeros((3, 1)),
        "single": False,
    }
    assert predict(view(linear=linear), np.array([[-2.0, 0.0], [1.0, 0.0]])) == [-2.0, 0.0]
    with pytest.raises(ValueError, match="n_leaves"):
        view(linear=linear | {"intercept": np.zeros((2, 1))})
    with pytest.raises(ValueError, match="feature"):
        view(linear=linear | {"feature": np.array([2], np.int32)})


def test_an_array_of_another_dtype_is_refused_and_not_copied():
    with pytest.raises(TypeError):
        view(tests={"selection": np.array([0, 1])})
    with pytest.raises(TypeError):
        view(output={"V": np.zeros((3, 1), np.float16)})


def test_an_unknown_kernel_is_named_with_those_there_are():
    with pytest.raises(dm.InputError, match="auto, select, record, twig, deep, pack, raw, oblique"):
        native.compile_plan(dm.figure_one(), target="auto", kernel="quick")


def kernels(machine, kernel, target=SCALAR):
    return set(native.compile_plan(machine, target=target, kernel=kernel).describe().kernels)


def test_a_kernel_that_cannot_run_the_machine_is_replaced():
    rng = np.random.default_rng(0)
    small = make_machine([6, 5, 4], rng, n_features=3)
    for kernel in ("select", "deep", "raw"):
        assert kernels(small, kernel) == {kernel}
    assert kernels(small, "pack") == {"deep"}  # plain code has no permute of bytes
    assert kernels(small, "oblique") <= {"select", "deep"}
    large = make_machine([5000, 3], rng, n_features=3)
    plan = native.compile_plan(large, target=SCALAR, kernel="select").describe()
    assert plan.kernels == ["deep", "select"]


def test_a_view_holds_the_machines_own_arrays():
    machine = make_machine([50, 40], np.random.default_rng(1), n_features=3)
    own = [machine.children, machine.missing, machine.selection, machine.trees.test_start]
    before = [sys.getrefcount(array) for array in own]
    held = machine_view(machine)
    assert all(sys.getrefcount(array) > count for array, count in zip(own, before, strict=True))
    del held
    assert [sys.getrefcount(array) for array in own] == before
