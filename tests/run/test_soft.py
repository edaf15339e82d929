"""Soft trees without torch: the native kernel, files, streams, and where they come from."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_machine

import decision_machines as dm
from decision_machines.errors import (
    InputError,
    InvariantError,
    ModelFormatError,
    UnsupportedModelError,
)
from decision_machines.machine.soft import hard_as_soft, hard_of, soft_sum, soft_trees
from decision_machines.run.soft import cut_bound


def soft_example(seed=0, sizes=(5, 1, 8, 3), dtype=np.float64, n_outputs=1, hard=0.2):
    rng = np.random.default_rng(seed)
    machine = make_machine(list(sizes), rng, n_features=4, n_outputs=n_outputs, values="real")
    slope = np.exp(rng.normal(size=machine.n_tests))
    slope[rng.random(machine.n_tests) < hard] = np.inf
    t = machine.t.astype(float) + rng.normal(size=machine.n_tests)
    return soft_trees(machine, slope, t, dtype=dtype)


def rows(seed=0, m=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4)) * 3
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0], X[1] = np.inf, -np.inf
    return X


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 3),
)
def test_the_kernel_computes_the_reference(seed, sizes, dtype, n_outputs):
    soft = soft_example(seed, sizes, dtype, n_outputs)
    X = rows(seed, 70)
    native, plain = soft.margin(X), soft.margin(X, engine="reference")
    size = 1 + np.abs(hard_of(soft).V).max() * len(sizes)
    assert np.abs(native - plain).max() < size * (2e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(n_threads):
    soft, X = soft_example(3, (40,) * 30), rows(1, 3000)
    one = soft.margin(X, n_threads=1)
    assert np.array_equal(one, soft.margin(X, n_threads=n_threads))


@pytest.mark.parametrize("skip", [1e-4, 1e-2, 0.3])
def test_what_is_skipped_changes_no_more_than_the_bound(skip):
    soft, X = soft_example(4, (60, 100)), np.tile(rows(2)[5:6], (128, 1)) + 1e-3
    X = np.concatenate([rows(5, 500), X])
    change = np.abs(soft.margin(X, skip=skip) - soft.margin(X))
    assert np.all(change <= cut_bound(soft, skip) + 1e-9)


def test_infinite_slopes_are_the_machine_itself():
    machine = make_machine([5, 9, 1], np.random.default_rng(0), n_features=4, values="real")
    X = rows()
    assert np.allclose(hard_as_soft(machine).margin(X), machine.margin(X), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_frozen_module_answers_as_the_module(dtype):
    torch = pytest.importorskip("torch")
    machine = make_machine([5, 9, 1, 30], np.random.default_rng(7), n_features=4, values="real")
    net = machine.soften("soft_tree", tau=0.7, slope=1.3, dtype=getattr(torch, dtype))
    X = rows(3)
    x = torch.from_numpy(machine.features(X))
    with torch.no_grad():
        net.t += 0.1
        assert np.allclose(net.frozen().margin(X), net.margin(x).numpy(), rtol=1e-5, atol=1e-5)
        net.leaves.V *= 2.0  # frozen again after a change
        assert np.allclose(net.frozen().margin(X), net.margin(x).numpy(), rtol=1e-5, atol=1e-5)
        net.mask([1])
        assert np.allclose(net.frozen().margin(X), net.margin(x).numpy(), rtol=1e-5, atol=1e-5)
    assert net.frozen() is net.frozen()
    assert np.array_equal(net.predict(X), net.frozen().predict(X))


def test_an_oblique_module_is_frozen_with_its_weights():
    torch = pytest.importorskip("torch")
    machine = make_machine([5, 9], np.random.default_rng(1), n_features=4, values="real")
    net = machine.soften("soft_tree", learn=("t", "S", "V"), dtype=torch.float64)
    with torch.no_grad():
        net.selection.S += 0.1 * torch.randn(net.selection.S.shape, dtype=torch.float64)
        X = rows(3)[2:]
        expected = net.margin(torch.from_numpy(machine.features(X))).numpy()
    assert hard_of(net.frozen()).is_oblique
    assert np.allclose(net.frozen().margin(X), expected, rtol=1e-4, atol=1e-4)
    assert np.allclose(net.frozen().margin(X, engine="reference"), expected, rtol=1e-4, atol=1e-4)


def test_modules_that_are_more_than_soft_trees_are_refused_and_predict_by_torch():
    torch = pytest.importorskip("torch")
    machine = dm.figure_one()
    net = machine.soften("softmax", tau=0.5, dtype=torch.float64)
    with pytest.raises(UnsupportedModelError, match="softmax"):
        net.frozen()
    X = np.array([[2.0, 1, 2, 2]])
    assert np.allclose(net.predict(X), net(torch.from_numpy(X)).detach().numpy().ravel())


def test_a_sum_of_soft_trees_is_soft_trees():
    one, two, X = soft_example(1), soft_example(2, (7, 2), hard=0.0), rows()
    total = soft_sum([one, two], [0.25, 2.0])
    expected = 0.25 * one.margin(X) + 2 * two.margin(X)
    assert np.allclose(total.margin(X), expected, rtol=1e-12)
    with pytest.raises(InputError, match="soft trees"):
        soft_sum([dm.Assembly("mean of values", (dm.figure_one(),))])


def test_hard_trees_among_soft_ones_are_exact_in_float32():
    hard = make_machine([5, 9, 1], np.random.default_rng(0), n_features=4, values="real")
    t = np.random.default_rng(1).choice([0.1, 0.3, 1 / 3], hard.n_tests)  # not float32's
    hard, soft = replace(hard, t=t), soft_example(2, (7, 2), np.float32, hard=0.0)
    X = np.random.default_rng(2).choice([0.1, 0.3, 1 / 3, 0.2, np.nan], (500, 4))
    total = soft_sum([hard_as_soft(hard), soft])
    assert total.numbers["t"].dtype == np.float32
    assert np.allclose(total.margin(X), hard.margin(X) + soft.margin(X), rtol=1e-6, atol=1e-6)
    assert np.allclose(total.margin(X, n_threads=2), total.margin(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_file_holds_soft_trees_and_loading_it_needs_no_torch(tmp_path, dtype):
    soft, path, X = soft_example(5, dtype=dtype), tmp_path / "soft.dm", rows()
    soft.save(path)
    assert np.array_equal(dm.load(path).predict(X), soft.predict(X), equal_nan=True)
    program = (
        "import sys, decision_machines as dm; soft = dm.load(sys.argv[1]);"
        "print(soft.predict([[1.0, 2, 3, 4]]).tolist()); assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == soft.predict([[1.0, 2, 3, 4]]).tolist()


def test_a_file_with_wrong_numbers_is_refused(tmp_path):
    from decision_machines.libraries.own.safetensors import read_container
    from decision_machines.libraries.own.write import container, dm_bytes

    metadata, arrays = read_container(dm_bytes(soft_example()), "testing")
    for name, wrong in (
        ("numbers.slope", -arrays["numbers.slope"]),
        ("numbers.t", arrays["numbers.t"][1:]),
        ("numbers.nudge", arrays["numbers.nudge"] * np.nan),
        ("numbers.slope", arrays["numbers.slope"].astype(np.float32)),
        ("numbers.more", arrays["numbers.slope"]),
    ):
        path = tmp_path / "wrong.dm"
        path.write_bytes(b"".join(container({**arrays, name: wrong}, metadata)))
        with pytest.raises(ModelFormatError):
            dm.load(path)


def test_what_is_not_soft_trees_has_no_margin():
    other = dm.Assembly("mean of values", (dm.figure_one(),))
    for verb in ("margin", "response"):
        with pytest.raises(UnsupportedModelError, match=verb):
            getattr(other, verb)([[2, 1, 2, 2]])
    with pytest.raises(InvariantError, match="slope"):
        dm.Assembly("soft trees", (dm.figure_one(),), {}, {"kind": ("numbers",)})


@pytest.mark.parametrize(
    ("given", "words"),
    [({"engine": "walk"}, "engine"), ({"n_threads": 0}, "n_threads"), ({"skip": 1.0}, "skip")],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        soft_example().margin(rows(), **given)


def test_soft_trees_are_streamed(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    soft, X = soft_example(6), rows()[2:]
    names = [f"f{i}" for i in range(4)]
    machine = hard_of(soft)
    named = replace(machine, columns=replace(machine.columns, names=tuple(names)))
    soft = soft_trees(named, **soft.numbers)
    table = pyarrow.table(dict(zip(names, X.T, strict=True)))
    pq.write_table(table, tmp_path / "rows.parquet")
    from decision_machines.stream import score

    score(soft, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")["prediction"].to_numpy()
    assert np.array_equal(found, soft.predict(table))


def test_a_soft_estimator_is_converted_to_what_it_answers():
    pytest.importorskip("torch")
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True, as_frame=True)
    model = dm.DecisionMachineClassifier(
        oblique=True, soft=True, n_iterations=5, max_leaves=4, random_state=0
    )
    model.fit(X, y)
    soft = dm.convert(model)
    assert soft.rule == "soft trees"
    assert np.array_equal(soft.predict_proba(X), model.predict_proba(X))
    assert dm.certify(soft, model).holds
