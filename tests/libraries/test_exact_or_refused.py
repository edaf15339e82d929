"""The law of every writer: it answers as the machine does, bit for bit, or refuses."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import treelite
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from strategies import machines, make_machine, probe_rows

import decision_machines as dm


def ask_xgboost(machine, X):
    model = machine.to_xgboost(margins=True)
    with np.errstate(over="ignore"):
        X = X.astype(np.float32)
    # XGBoost takes no infinity.
    X = X[~np.any(np.isinf(X), axis=1)]
    data = xgboost.DMatrix(
        X, feature_names=model.feature_names, feature_types=model.feature_types, nthread=1
    )
    return model, X, model.predict(data, output_margin=True)


def ask_lightgbm(machine, X):
    model = machine.to_lightgbm(margins=True)
    # Raw scores are sums; where a machine averages, answers are the averages.
    return model, X, model.predict(X, num_threads=1)


def ask_sklearn(machine, X):
    model = machine.to_sklearn(margins=True)
    if type(model).__name__.startswith("Gradient"):
        X = np.nan_to_num(X)
    with config_context(assume_finite=True), np.errstate(over="ignore"):
        return model, X, model.predict(X)


def ask_treelite(machine, X):
    model = machine.to_treelite(margins=True)
    with np.errstate(over="ignore"):
        X = X.astype(machine.output.dtype)
    return None, X, treelite.gtil.predict(model, X, nthread=1, pred_margin=True)


def ask_onnx(operator):
    def ask(machine, X):
        with warnings.catch_warnings():
            warnings.simplefilter("error", dm.InexactWarning)
            model = machine.to_onnx(operator=operator, margins=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        with np.errstate(over="ignore"):
            X = X.astype(machine.columns.dtype)
        return model, X, session.run(None, {"X": X})[0]

    return ask


ASK = {
    "xgboost": ask_xgboost,
    "lightgbm": ask_lightgbm,
    "sklearn": ask_sklearn,
    "treelite": ask_treelite,
    "onnx v3": ask_onnx("v3"),
    "onnx v5": ask_onnx("v5"),
}


def equal_or_refused(machine, target):
    """Whether the machine was written."""
    try:
        model, X, found = ASK[target](machine, probe_rows(machine, 60))
    except (dm.UnsupportedModelError, dm.InexactWarning):
        return False
    ours = machine.margin(X)
    assert np.array_equal(ours, np.asarray(found).reshape(ours.shape), equal_nan=True)
    if model is not None:
        back = dm.convert(model)
        again = back.response(X) if target == "lightgbm" or "onnx" in target else back.margin(X)
        assert np.array_equal(ours, again.reshape(ours.shape), equal_nan=True)
    return True


@pytest.mark.parametrize("target", ASK)
@settings(max_examples=25)
@given(machine=machines(max_trees=3, max_leaves=8))
def test_any_machine_is_written_exactly_or_refused(target, machine):
    equal_or_refused(machine, target)


FITTING = {
    "xgboost": {"dtype": np.float32, "output_dtype": np.float32, "plain_output": True},
    "lightgbm": {"plain_output": True},
    "sklearn": {"plain_output": True, "n_outputs": 1},
    "treelite": {"plain_output": True},
    "onnx v3": {"dtype": np.float32, "output_dtype": np.float32},
    "onnx v5": {},
}


@pytest.mark.parametrize("target", ASK)
@settings(max_examples=20)
@given(
    leaves=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
    n_outputs=st.integers(1, 3),
    narrow=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    base=st.booleans(),
    base_first=st.booleans(),
)
def test_machines_that_fit_are_written(
    target, leaves, seed, n_outputs, narrow, dtype, base, base_first
):
    given = {"n_outputs": n_outputs, "narrow": narrow, "dtype": dtype, "values": "real"}
    machine = make_machine(
        leaves, np.random.default_rng(seed), **{**given, **FITTING[target]}, rules=False
    )
    # LightGBM knows no threshold about 0; no other has such a limit.
    t = np.where(np.abs(machine.t) < 1e-30, machine.t.dtype.type(0.25), machine.t)
    output = machine.output
    if base:
        rng = np.random.default_rng(seed)
        drawn = rng.standard_normal(len(output)).astype(output.dtype)
        output = replace(output, base=drawn, base_first=base_first)
    if "onnx" not in target:
        output = replace(output, divisor=1.0, scale=1.0)
    assert equal_or_refused(replace(machine, t=t, output=output), target)


def set_machine(rng, *, dtype, outside, negative_fractions, whole, nan_goes_outside, most=40):
    """Two trees of tests on category sets, members going one way and all else the other."""
    n_sets, n_tests = 3, 7
    members = [np.flatnonzero(rng.random(most) < 0.3) for _ in range(n_sets)]
    members[0] = np.array([0, 1, 3, most - 1])
    sets = dm.CategorySets(
        np.cumsum([0, *map(len, members)]),
        np.concatenate(members),
        np.full(sum(map(len, members)), -outside),
        np.full(n_sets, outside),
        negative_fractions=negative_fractions,
        whole=whole,
    )
    machine = make_machine([5, 4], rng, dtype=dtype, rules=False, values="real", plain_output=True)
    columns = dm.Columns(
        3,
        dtype,
        feature=np.array([0, 1, 2, 0, 1, 1]),
        rule=np.repeat([dm.Rule.VALUE, dm.Rule.MEMBER], 3),
        sets=sets,
    )
    selection = rng.integers(6, size=n_tests)
    selection[:3] = [3, 4, 5]
    is_member = selection >= 3
    return replace(
        machine,
        columns=columns,
        selection=selection,
        t=np.where(is_member, 0.5, rng.standard_normal(n_tests)).astype(dtype),
        missing=np.where(
            is_member, outside if nan_goes_outside else -outside, rng.choice([-1, 1], n_tests)
        ),
        output=replace(machine.output, base=machine.output.base.astype(dtype), dtype=dtype),
    )


def with_a_large_member(machine):
    """Every set with a category beyond 30 more: ONNX Runtime then cuts fractions off."""
    sets = machine.columns.sets
    parts = np.split(sets.members, sets.start[1:-1])
    parts = [np.append(part[part < 33], 33) for part in parts]
    start = np.cumsum([0, *map(len, parts)])
    answer = np.full(start[-1], -sets.outside[0])
    sets = replace(sets, start=start, members=np.concatenate(parts), answer=answer)
    return replace(machine, columns=replace(machine.columns, sets=sets))


@pytest.mark.parametrize("outside", [-1, 1])
@pytest.mark.parametrize("nan_goes_outside", [True, False])
@pytest.mark.parametrize(
    ("target", "dtype", "negative_fractions", "whole"),
    [
        ("xgboost", np.float32, False, False),
        ("lightgbm", np.float64, True, False),
        ("treelite", np.float32, False, False),
        ("treelite", np.float64, False, False),
        ("onnx v3", np.float32, False, False),
        ("onnx v3", np.float32, True, False),
        ("onnx v3", np.float32, False, True),
        ("onnx v5", np.float32, True, False),
        ("onnx v5", np.float64, True, False),
        ("onnx v5", np.float32, False, True),
        ("onnx v5", np.float64, False, True),
    ],
)
def test_category_sets_are_written(
    target, dtype, negative_fractions, whole, outside, nan_goes_outside
):
    for seed in range(3):
        machine = set_machine(
            np.random.default_rng(seed),
            dtype=dtype,
            outside=outside,
            negative_fractions=negative_fractions,
            whole=whole,
            nan_goes_outside=nan_goes_outside,
            most=29 if whole and target == "onnx v5" else 40,
        )
        if target == "onnx v5" and not whole:
            machine = with_a_large_member(machine)
        written = equal_or_refused(machine, target)
        # To LightGBM, NaN is outside of every set.
        assert written == (target != "lightgbm" or nan_goes_outside)


@pytest.mark.parametrize("target", ["lightgbm", "onnx v3"])
def test_zeros_that_are_missing_are_written(target):
    dtype = np.float64 if target == "lightgbm" else np.float32
    for seed in range(5):
        rng = np.random.default_rng(seed)
        machine = make_machine(
            [6, 5], rng, rules=False, dtype=dtype, output_dtype=dtype, plain_output=True
        )
        rule = np.array([dm.Rule.ZERO_AS_NAN, dm.Rule.VALUE, dm.Rule.ZERO_AS_NAN])
        t = np.where(np.abs(machine.t) < 1e-30, dtype(0.25), machine.t)
        columns = replace(machine.columns, rule=rule)
        assert equal_or_refused(replace(machine, columns=columns, t=t), target)


@pytest.mark.parametrize("target", ASK)
def test_oblique_and_linear_machines_are_refused_or_written(target):
    rng = np.random.default_rng(0)
    oblique = make_machine([4, 3], rng, oblique=True, rules=False)
    assert not equal_or_refused(oblique, target)
    plain = make_machine([4, 3], rng, rules=False, plain_output=True)
    plain = replace(plain, t=np.where(np.abs(plain.t) < 1e-30, 0.25, plain.t))
    n = plain.n_leaves
    linear = dm.LinearLeaves(
        rng.standard_normal((n, 1)),
        np.arange(n + 1),
        rng.integers(3, size=n),
        rng.standard_normal((n, 1)),
    )
    assert equal_or_refused(replace(plain, linear=linear), target) == (target == "lightgbm")


@pytest.mark.parametrize("target", ASK)
def test_a_machine_without_trees_is_written_or_refused(target):
    machine = make_machine([], np.random.default_rng(0), rules=False, plain_output=True)
    equal_or_refused(machine, target)


@pytest.mark.parametrize(
    ("package", "write"),
    [
        ("xgboost", "to_xgboost"),
        ("lightgbm", "to_lightgbm"),
        ("sklearn", "to_sklearn"),
        ("treelite", "to_treelite"),
        ("onnx", "to_onnx"),
    ],
)
def test_a_library_that_is_not_installed_names_its_extra(package, write, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dm.MissingLibraryError, match=rf"decision-machines\[{package}\]"):
        getattr(dm.figure_one(), write)()
