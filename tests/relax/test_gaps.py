"""Soft thresholds stand between values: zeros, integers and flags are answered in the limit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from relax_forests import exit_weights, make_forest
from strategies import machines, probe_rows

import decision_machines as dm
from decision_machines.machine import Rule
from decision_machines.relax import soft_tree
from decision_machines.relax.forms import FORMS
from decision_machines.relax.gaps import RESOLUTION, ZERO_TEST, Gaps

LIMIT_FORMS = [
    {"form": "soft_tree"},
    {"form": "softmax", "query": "relu"},
    {"form": "sparsemax", "query": "relu"},
]


def lost(net, X):
    """How much the module's margins are away from those of its machine, at most, row by row."""
    with torch.no_grad():
        margin = net.margin(torch.as_tensor(net.machine.features(X), dtype=torch.float64))
    return np.abs(margin.numpy() - net.machine.margin(X)).max(1)


def table(m=400, seed=0):
    """Zero-inflated amounts, flags, counts, and a continuous column."""
    rng = np.random.default_rng(seed)
    amount = np.where(rng.random(m) < 0.6, 0.0, rng.lognormal(3, 2, m).round(2))
    flag = rng.integers(2, size=m).astype(float)
    count = rng.poisson(3, m) - 2.0
    real = rng.standard_normal(m)
    X = np.stack([amount, flag, count, real], 1)
    y = (amount > 0) + 2 * flag * (count > 0) + 0.3 * np.sin(2 * real) + 0.1 * (count > 2)
    return X, y + 0.05 * rng.standard_normal(m)


def lightgbm_model(X, y):
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMRegressor(n_estimators=20, num_leaves=8, verbose=-1).fit(X, y)


def xgboost_model(X, y):
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBRegressor(n_estimators=20, max_depth=4, n_jobs=1).fit(X, y)


def sklearn_model(X, y):
    ensemble = pytest.importorskip("sklearn.ensemble")
    return ensemble.RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, y)


MODELS = [lightgbm_model, xgboost_model, sklearn_model]


@pytest.mark.parametrize("options", LIMIT_FORMS, ids=lambda options: options["form"])
@pytest.mark.parametrize("model", MODELS)
def test_rows_given_are_answered_in_the_limit_at_temperatures_in_use(model, options):
    X, y = table()
    machine = dm.convert(model(X, y))
    found = [lost(machine.soften(tau=tau, data=X, **options), X).max() for tau in (1.0, 1e-2, 1e-4)]
    # The continuous column's gaps are narrow; every other column has gaps of .01 at least.
    assert found[0] > found[1]
    assert lost(machine.soften(tau=1e-7, data=X, **options), X).max() < 1e-3
    lumpy = machine.soften(tau=1e-4, data=X, **options)
    narrow = lumpy.gaps.high - lumpy.gaps.low < 5e-3
    assert found[2] < 1e-3 or narrow.any()


@pytest.mark.parametrize("model", MODELS)
def test_without_rows_zeros_integers_and_flags_are_answered_in_the_limit(model):
    X, y = table()
    machine = dm.convert(model(X, y))
    assert lost(machine.soften(tau=1e-16), X).max() < 1e-4
    assert lost(machine.soften(tau=1e-16), table(seed=1)[0]).max() < 1e-4


def test_zero_was_at_half_a_gate_at_any_temperature():
    X, y = table()
    machine = dm.convert(lightgbm_model(X, y))
    is_zero_test = np.abs(machine.t) <= ZERO_TEST
    assert is_zero_test.any()
    net = machine.soften("soft_tree", tau=1e-9)
    with torch.no_grad():
        net.t.copy_(torch.tensor(machine.t))  # where the library put them
    assert np.mean(lost(net, X) > 1e-3) > 0.5
    assert np.all(lost(machine.soften("soft_tree", tau=1e-9), X) < 1e-3)
    assert np.all(lost(machine.soften("soft_tree", tau=1e-3, data=X[:, :]), X)[X[:, 0] == 0] < 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("has_kernel", [True, False])
@settings(max_examples=30)
@given(machine=machines(max_trees=3, max_leaves=8, min_trees=1), seed=st.integers(0, 9))
def test_every_representable_row_is_answered_in_the_limit(dtype, has_kernel, machine, seed):
    """On thresholds, and one unit in the last place beside them."""
    if dtype == torch.float32 and machine.columns.dtype != np.float32:
        dtype = torch.float64
    t = machine.t.astype(np.float64)
    is_usual = (np.abs(t) > 1e-9) & (np.abs(t) < 1e9) | (t == 0) | np.isinf(t)
    machine = machine if is_usual.all() else with_thresholds(machine, np.where(is_usual, t, seed))
    X = probe_rows(machine, max_rows=40)
    near_zero = (X != 0) & (np.abs(X) < 1e-7)  # counts as zero
    X = np.where(near_zero, 0.0, X)
    with pytest.MonkeyPatch.context() as patch:
        if not has_kernel:
            patch.setattr(dm.relax.module, "has_kernel", lambda q, V: False)
            patch.setattr(soft_tree, "has_kernel", lambda q, V: False)
        net = machine.soften("soft_tree", tau=1e-28, dtype=dtype)
        weights = net(torch.from_numpy(X), return_weights=True)[1]
        assert torch.all(exit_weights(machine, weights, torch.from_numpy(X)) > 0.999)
        finite = np.where(np.isfinite(machine.V), machine.V, 1.0)
        size = np.abs(finite).max(initial=1.0) * machine.n_trees
        if size < 1e6:
            assert np.all(lost(net, X) <= 1e-3 * size)


def with_thresholds(machine, t):
    from dataclasses import replace

    return replace(machine, t=t.astype(machine.columns.dtype))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10)
@given(machine=machines(max_trees=3, max_leaves=8), seed=st.integers(0, 99))
def test_a_machine_centred_by_rows_hardens_to_itself(form, machine, seed):
    X = probe_rows(machine, max_rows=20)
    for dtype in (None, torch.float32):
        net = machine.soften(form, data=X, dtype=dtype)
        assert net.harden().equals(machine)
        assert net.float().harden().equals(machine)
        assert np.array_equal(net.double().harden().t, machine.t)


@given(machine=machines(max_trees=2, max_leaves=8, oblique=True))
def test_an_oblique_machine_centred_by_rows_hardens_to_itself(machine):
    net = machine.soften("soft_tree", data=probe_rows(machine, max_rows=20))
    assert np.array_equal(net.harden().t, machine.t)


@settings(max_examples=30)
@given(machine=machines(max_trees=3, max_leaves=8, min_trees=1), seed=st.integers(0, 99))
def test_thresholds_centred_by_rows_route_those_rows_alike(machine, seed):
    X = probe_rows(machine, max_rows=40)
    gaps = Gaps.of(machine, X)
    assert np.all((gaps.low <= machine.t) | ~np.isfinite(machine.t))
    assert np.all((gaps.high > machine.t) | ~np.isfinite(machine.t))
    at = gaps.thresholds(torch.float64)
    z = machine.columns.read(machine.features(X)).astype(np.float64)[:, machine.selection]
    soft = z - at.soft.numpy() - at.nudge.numpy() <= 0
    finite = np.isfinite(z) & np.isfinite(machine.t)
    assert np.array_equal(soft[finite], (z <= machine.t)[finite])


def test_a_trained_test_hardens_to_where_its_gate_is_one_half():
    machine = make_forest([4], seed=1)
    X = np.repeat(np.arange(-3.0, 4.0)[:, None], 4, 1)
    net = machine.soften("soft_tree", data=X)
    assert np.array_equal(net.t.detach(), np.floor(machine.t) + 0.5)  # amid whole numbers
    with torch.no_grad():
        net.t[0] += 0.25
    hard = net.harden()
    assert hard.t[0] == net.t[0].item()
    assert np.array_equal(hard.t[1:], machine.t[1:])


def test_straight_through_answers_as_its_hardened_machine_when_centred():
    machine, X = make_forest([8, 8], seed=1), np.random.default_rng(0).standard_normal((200, 4))
    net = machine.soften("straight_through", data=X, learn=("t", "V"))
    rows = torch.from_numpy(X)
    fresh = np.random.default_rng(1).standard_normal((500, 4))
    assert np.array_equal(net(torch.from_numpy(fresh)).detach(), machine.margin(fresh))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        (net(rows) - 1).square().mean().backward()
        optimiser.step()
    assert np.array_equal(net(torch.from_numpy(fresh)).detach(), net.harden().margin(fresh))


def test_rows_on_one_side_only_leave_room_on_the_other():
    machine = dm.figure_one()
    net = machine.soften("soft_tree", data=np.tile([[1.0, 4.0, 3.0, 5.0]], (3, 1)), tau=0.01)
    # Rows stand on four of the thresholds and go left there: the middle is off them.
    assert net.t.tolist() == [1.5, 6.0, 4.5, 2.0, 7.5]


def test_what_a_column_can_hold_without_rows():
    machine = make_forest([5], seed=0, n_features=1)
    t = np.array([1e-35, -1e-35, 0.25, 0.0])
    machine = with_thresholds(machine, t)
    gaps = Gaps.of(machine)
    near = RESOLUTION * 0.25
    np.testing.assert_allclose(gaps.low[[0, 1, 3]], [0.0, -near, 0.0])
    np.testing.assert_allclose(gaps.high[[0, 1, 3]], [near, 0.0, near])
    assert gaps.low[2] == 0.25
    assert gaps.high[2] == np.nextafter(machine.t[2], machine.t.dtype.type(1))


def test_a_category_s_column_holds_0_and_1():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.integers(6, size=(300, 2)).astype(float)
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, min_data_per_group=1)
    machine = dm.convert(model.fit(X, X[:, 0] % 3, categorical_feature=[0]))
    is_member = machine.columns.rule[machine.selection] == Rule.MEMBER
    assert is_member.any()
    for data in (None, X):
        gaps = Gaps.of(machine, data)
        assert np.all(gaps.low[is_member] == 0)
        assert np.all(gaps.high[is_member] == 1)


def test_data_may_be_a_table_a_tensor_or_empty():
    machine, X = make_forest([5], seed=0), np.random.default_rng(0).standard_normal((20, 4))
    by_rows = machine.soften("soft_tree", data=X).t
    assert torch.equal(machine.soften("soft_tree", data=torch.from_numpy(X)).t, by_rows)
    empty = machine.soften("soft_tree", data=X[:0])
    assert torch.equal(empty.t, machine.soften("soft_tree").t)
    with pytest.raises(dm.InputError):
        machine.soften("soft_tree", data=X[:, :2])
