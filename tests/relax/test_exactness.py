"""What every form has in common with the tree: exact, exact in the limit, or not, and the proof."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from relax_forests import exit_weights, make_forest, make_rows
from strategies import machines, probe_rows

import decision_machines as dm
from decision_machines.relax import forms
from decision_machines.relax.forms import FORMS
from decision_machines.relax.queries import log_sigmoid, relu_pair

EXACT = ["logical", "delta", "relu", "straight_through"]
FIGURE_ROW = torch.tensor([[2.0, 1.0, 2.0, 2.0]], dtype=torch.float64)


def by_form(form, **options):
    return pytest.param({"form": form, **options}, id="-".join([form, *options.values()]))


def test_every_form_says_how_exact_it_is():
    for name, form in FORMS.items():
        says = getattr(forms, name).__doc__
        assert f"Exact: {form.exact}" in says
        assert "at the start" in says
        assert forms.exactness(form) == form.exact


# -- yes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", EXACT)
@given(machine=machines(max_trees=4, max_leaves=12))
def test_exact_forms_give_the_machine_s_margins_to_the_bit(form, machine):
    X = probe_rows(machine, max_rows=40)
    net = machine.soften(form, output="margin")
    margins = net(torch.from_numpy(X)).detach().numpy()
    assert np.array_equal(margins.astype(machine.output.dtype), machine.margin(X), equal_nan=True)


@pytest.mark.parametrize("form", EXACT)
@settings(max_examples=25)
@given(machine=machines(max_trees=3, max_leaves=10, min_trees=1))
def test_exact_forms_put_all_weight_on_the_exit_leaf(form, machine):
    X = torch.from_numpy(probe_rows(machine, max_rows=40))
    weights = machine.soften(form)(X, return_weights=True)[1]
    assert torch.equal(exit_weights(machine, weights, X), torch.ones(len(X), machine.n_trees))
    assert torch.equal(weights.sum(-1), torch.full((len(X),), float(machine.n_trees)))


@pytest.mark.parametrize("form", EXACT)
@settings(max_examples=25)
@given(machine=machines(max_trees=3, max_leaves=10, oblique=True))
def test_exact_forms_take_oblique_machines(form, machine):
    X = np.round(probe_rows(machine, max_rows=30), 2)
    X = np.where(np.abs(X) < 1e6, X, np.nan)  # where sums of a few terms cannot round apart
    net = machine.soften(form, output="margin", dtype=torch.float64)
    x = X.astype(np.float32).astype(np.float64) if machine.columns.dtype == np.float32 else X
    margins = net(torch.from_numpy(x)).detach().numpy()
    exits = machine.apply(x)
    weights = net(torch.from_numpy(x), return_weights=True)[1]
    same = exit_weights(machine, weights, torch.from_numpy(x)).numpy() == 1
    # Rounding in another order of the sum may flip a test that stands on its threshold.
    rounding = np.abs(_oblique_gap(machine, x)) < 1e-5
    assert np.all(same | _touches(machine, rounding))
    assert margins.shape == (len(X), machine.n_outputs)
    assert exits.shape == same.shape


def _oblique_gap(machine, X):
    z = np.nan_to_num(machine.columns.read(X).astype(np.float64), nan=0.0)
    return z @ machine.S.toarray().T.astype(np.float64) - machine.t


def _touches(machine, is_near):
    of_test = machine.trees.of_test
    return (
        np.stack([is_near[:, of_test == tree].any(1) for tree in range(machine.n_trees)], 1)
        if (machine.n_trees)
        else np.zeros((len(is_near), 0), bool)
    )


def test_relu_form_sends_ties_left():
    machine = dm.figure_one()
    on_every_threshold = torch.tensor([[1.0, 2.0, 3.0, 5.0], [1.0, 4.0, 3.0, 5.0]])
    net = machine.soften("relu")
    assert torch.equal(net(on_every_threshold)[:, 0], torch.tensor([1.0, 2.0]).double())
    assert machine.predict(on_every_threshold.numpy()).tolist() == [1.0, 2.0]


def test_relu_pair_is_F_relu_of_W_x_minus_b():
    machine = dm.figure_one()
    S, t, B = machine.S.toarray(), machine.t, machine.B.toarray()
    W, b = np.concatenate([S, -S]), np.concatenate([t, -t])
    F = -np.concatenate([B < 0, B > 0], axis=1).astype(float)
    X = make_rows(50).numpy() * 3
    h = np.maximum(X @ W.T - b, 0) @ F.T
    left, right = relu_pair(torch.from_numpy(X @ S.T - t).T)
    ours = left.numpy().T @ (B < 0).T + right.numpy().T @ (B > 0).T
    np.testing.assert_allclose(ours, h, atol=1e-12)
    assert np.array_equal(h.argmax(1), machine.apply(X)[:, 0])


def test_float32_modules_of_float64_machines_are_exact_on_float32_rows():
    machine = make_forest(seed=3, n_outputs=1)
    t = machine.t.astype(np.float32)
    X = np.repeat(np.unique(np.concatenate([t, np.nextafter(t, -9), np.nextafter(t, 9)])), 4)
    X = torch.from_numpy(X.reshape(-1, 4))
    weights = machine.soften("logical", dtype=torch.float32)(X, return_weights=True)[1]
    assert bool(torch.all(exit_weights(machine, weights, X) == 1))


# -- in the limit ---------------------------------------------------------------------------------

LIMITS = [
    by_form("soft_tree"),
    by_form("softmax", query="relu"),
    by_form("softmax", query="sign", keys="normalised"),
    by_form("softmax", query="tanh", keys="normalised"),
    by_form("softmax", query="log_sigmoid"),
    by_form("sparsemax", query="relu"),
    by_form("sparsemax", query="tanh", keys="normalised"),
    by_form("entmax15", query="relu"),
    by_form("entmax15", query="sign", keys="normalised"),
    by_form("entmax", query="relu"),
    by_form("softmax", query="tanh", keys="normalised", weights="argmax"),
    by_form("softmax", query="log_sigmoid", weights="argmax"),
]


@pytest.mark.parametrize("options", LIMITS)
def test_forms_exact_in_the_limit_reach_the_tree_as_tau_falls(options):
    machine, X = make_forest([7, 1, 16, 4], seed=1), make_rows(64)
    lost = []
    for tau in (1.0, 1e-2, 1e-4, 1e-6):
        net = machine.soften(tau=tau, output="margin", **options)
        margin, weights = net(X, return_weights=True)
        lost.append((1 - exit_weights(machine, weights, X)).max().item())
    assert net.form.exact == "in the limit"
    assert lost[-1] < 1e-9
    assert lost[0] > lost[-1] or lost[0] < 1e-9
    np.testing.assert_allclose(margin.detach().numpy(), machine.margin(X.numpy()), atol=1e-8)


@pytest.mark.parametrize("options", LIMITS)
def test_forms_exact_in_the_limit_follow_missing_answers(options):
    machine, X = make_forest([7, 1, 16, 4], seed=1), make_rows(64)
    X[torch.rand(X.shape, generator=torch.Generator().manual_seed(0)) < 0.3] = torch.nan
    weights = machine.soften(tau=1e-6, **options)(X, return_weights=True)[1]
    assert (1 - exit_weights(machine, weights, X)).max().item() < 1e-9


@given(seed=st.integers(0, 1000), tau=st.sampled_from([2.0, 0.5, 0.1, 0.01]))
def test_the_soft_tree_is_within_its_bound(seed, tau):
    machine, X = make_forest([9, 1, 5], seed=seed), make_rows(20, seed=seed)
    slope = np.random.default_rng(seed).uniform(0.5, 2.0, machine.n_tests)
    net = machine.soften("soft_tree", tau=tau, slope=slope, output="margin")
    margin, weights = net(X, return_weights=True)
    q = slope * (X.numpy()[:, machine.selection] - machine.t) / tau
    sigma = np.exp(-np.logaddexp(0, np.abs(q)))
    exits = machine.apply(X.numpy()) + machine.trees.leaf_start[:-1]
    on_path = np.abs(machine.B.toarray())[exits]  # (m, T, J)
    bound = np.minimum((on_path * sigma[:, None, :]).sum(-1), 1)
    lost = (1 - exit_weights(machine, weights, X)).detach().numpy()
    assert np.all(lost <= bound + 1e-12)
    spans = [np.ptp(machine.V[machine.trees.leaves(i)], axis=0) for i in range(machine.n_trees)]
    error = np.abs(margin.detach().numpy() - machine.margin(X.numpy()))
    assert np.all(error <= bound @ np.array(spans) + 1e-9)


@given(seed=st.integers(0, 1000), tau=st.sampled_from([1.0, 0.3, 0.1]))
def test_softmax_over_the_relu_pair_is_within_its_bound(seed, tau):
    machine, X = make_forest([9, 5], seed=seed), make_rows(20, seed=seed)
    weights = machine.soften("softmax", query="relu", tau=tau)(X, return_weights=True)[1]
    exits = machine.apply(X.numpy()) + machine.trees.leaf_start[:-1]
    q = np.abs(X.numpy()[:, machine.selection] - machine.t)
    on_path = np.abs(machine.B.toarray())[exits]
    nearest = np.where(on_path == 1, q[:, None, :], np.inf).min(-1)
    bound = (np.array([9, 5]) - 1) * np.exp(-nearest / tau)
    lost = (1 - exit_weights(machine, weights, X)).detach().numpy()
    assert np.all(lost <= bound + 1e-12)


@pytest.mark.parametrize(
    ("options", "width"),
    [({"form": "sparsemax"}, 1.0), ({"form": "entmax15"}, 2.0), ({"form": "entmax"}, 2.0)],
)
@settings(max_examples=20)
@given(seed=st.integers(0, 200))
def test_sparse_forms_are_the_tree_once_every_margin_is_wide_enough(options, width, seed):
    machine, X = make_forest([9, 5], seed=seed), make_rows(20, seed=seed)
    tau = 0.05
    weights = machine.soften(query="relu", tau=tau, **options)(X, return_weights=True)[1]
    exits = machine.apply(X.numpy()) + machine.trees.leaf_start[:-1]
    q = np.abs(X.numpy()[:, machine.selection] - machine.t)
    on_path = np.abs(machine.B.toarray())[exits]
    nearest = np.where(on_path == 1, q[:, None, :], np.inf).min(-1)
    kept = exit_weights(machine, weights, X).detach().numpy()
    np.testing.assert_allclose(kept[nearest >= width * tau], 1.0, atol=1e-9)


@pytest.mark.parametrize(("form", "factor"), [("sparsemax", 2.0), ("entmax15", 1.0)])
def test_sparse_forms_of_the_sign_are_the_tree_once_tau_is_small_enough(form, factor):
    machine, X = make_forest([9, 5, 30], seed=2), make_rows(50)
    tau = factor / machine.depth
    net = machine.soften(form, query="sign", keys="normalised", tau=tau)
    weights = net(X, return_weights=True)[1]
    np.testing.assert_allclose(exit_weights(machine, weights, X).detach(), 1.0, atol=1e-12)


def test_at_a_threshold_a_soft_gate_is_one_half_at_any_temperature():
    machine = dm.figure_one()
    x = torch.tensor([[1.0, 9.0, 9.0, 9.0]], dtype=torch.float64)  # x[1] = t
    for tau in (1.0, 1e-6):
        weights = machine.soften("soft_tree", tau=tau)(x, return_weights=True)[1]
        assert weights[0, :4].sum().item() == pytest.approx(0.5)


# -- no -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [1.0, 1e-2, 1e-6])
@pytest.mark.parametrize("form", ["softmax", "sparsemax", "entmax15", "entmax", "multi_head"])
def test_affine_queries_miss_the_worked_example_at_any_temperature(form, tau):
    net = dm.figure_one().soften(form, tau=tau)
    assert net.form.exact == "no"
    weights = net(FIGURE_ROW, return_weights=True)[1]
    assert weights.argmax().item() == 1  # v2, where the tree says v5
    assert dm.figure_one().apply(FIGURE_ROW.numpy()).item() == 4


@pytest.mark.parametrize("keys", ["templates", "normalised"])
def test_affine_queries_agree_with_figure_one_only_in_part(keys):
    machine = dm.figure_one()
    X = torch.from_numpy(np.random.default_rng(0).uniform(0, 6, (4000, 4)))
    weights = machine.soften("softmax", keys=keys, tau=1e-6)(X, return_weights=True)[1]
    share = np.mean(weights.argmax(-1).numpy() == machine.apply(X.numpy())[:, 0])
    assert 0.5 < share < 0.95


def test_sign_queries_over_plain_templates_miss_shallow_leaves():
    # The exit leaf asks 1 test; a leaf of depth 4 fails that one and passes the other three.
    children = np.array([[~0, 1], [2, ~4], [3, ~3], [~1, ~2]])
    machine = dm.DecisionMachine(
        columns=dm.Columns(4),
        selection=np.arange(4),
        t=np.zeros(4),
        missing=np.ones(4),
        children=children,
        V=np.arange(5.0)[:, None],
        trees=dm.Trees(np.array([0, 4])),
        output=dm.Output(np.zeros(1)),
    )
    x = -torch.ones(1, 4, dtype=torch.float64)
    assert machine.predict(x.numpy()) == 0
    for query in ("sign", "tanh"):
        net = machine.soften("softmax", query=query, keys="templates", tau=1e-3)
        assert net.form.exact == "no"
        assert net(x).item() == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
@pytest.mark.parametrize("tau", [1.0, 1e-6])
def test_positive_part_spreads_its_weight_at_any_temperature(alpha, tau):
    net = dm.figure_one().soften("positive_part", alpha=alpha, tau=tau)
    weights = net(FIGURE_ROW, return_weights=True)[1]
    assert weights.max() < 0.9
    assert weights.sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("feature_map", ["elu", "relu", "exp", "random"])
def test_linear_attention_spreads_its_weight_at_any_temperature(feature_map):
    for tau in (1.0, 1e-3):
        net = dm.figure_one().soften("linear", feature_map=feature_map, tau=tau)
        weights = net(FIGURE_ROW, return_weights=True)[1]
        assert weights[0, 4] < 0.9


# -- the soft tree's own equations ----------------------------------------------------------------


def test_log_sigmoid_sums_are_exp_of_ln_M_times_one():
    machine, X = dm.figure_one(), make_rows(30)
    B = machine.B.toarray().astype(float)
    q = X.numpy() @ machine.S.toarray().T - machine.t
    M = np.where(B != 0, 1 / (1 + np.exp(-B[None] * q[:, None, :])), 1.0)
    p = np.exp(np.log(M) @ np.ones(machine.n_tests))
    weights = machine.soften("soft_tree")(X, return_weights=True)[1].detach().numpy()
    np.testing.assert_allclose(weights, p, atol=1e-14)
    left, right = (side.numpy() for side in log_sigmoid(torch.from_numpy(q.T)))
    np.testing.assert_allclose(np.exp(left.T @ (B < 0).T + right.T @ (B > 0).T), p, atol=1e-14)
    np.testing.assert_allclose(p.sum(1), 1.0)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_every_form_averages_the_values_of_each_tree(form, seed):
    machine, X = make_forest([9, 1, 5], seed=seed), make_rows(20, seed=seed)
    X[0, 0] = torch.nan
    margin = machine.soften(form, output="margin")(X).detach().numpy()
    values = [machine.V[machine.trees.leaves(i)] for i in range(machine.n_trees)]
    assert np.all(margin >= sum(v.min(0) for v in values) - 1e-9)
    assert np.all(margin <= sum(v.max(0) for v in values) + 1e-9)
