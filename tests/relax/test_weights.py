"""The weights axis: every choice against its definition, its limits, and its gradient."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from relax_forests import exit_weights, make_forest, make_rows
from scipy.optimize import minimize

import decision_machines as dm
from decision_machines.relax import weights
from decision_machines.relax.budgets import constrained_sparsemax
from decision_machines.relax.grouped import (
    decreasing,
    fusedmax,
    oscarmax,
    total_variation_step,
)
from decision_machines.relax.noise import gumbel_noise

NEW = [
    {"weights": "sigsoftmax"},
    {"weights": "weighted_softmax", "prior": "drawn"},
    {"weights": "gumbel"},
    {"weights": "gumbel_hard"},
    {"weights": "sampled"},
    {"weights": "top_k", "k": 3},
    {"weights": "sparsegen", "strength": 0.4},
    {"weights": "sparsegen", "strength": -1.0},
    {"weights": "sparsehourglass", "strength": 0.3},
    {"weights": "fusedmax", "strength": 0.2},
    {"weights": "oscarmax", "strength": 0.05},
    {"weights": "constrained_sparsemax", "budget": 0.4},
    {"weights": "entmax", "alpha": 1.4, "learn": ("t", "V", "alpha")},
]


def name_of(options):
    return "-".join(map(str, options.values())) if isinstance(options, dict) else ""


def soften(machine, options, **others):
    options = {"query": "relu", "keys": "templates", **others, **options}
    if isinstance(options.get("prior"), str):
        options["prior"] = np.random.default_rng(0).uniform(0.2, 3.0, machine.n_leaves)
    return machine.soften(None, **options)


def scores(*shape, seed=0, scale=1.0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape) * scale)


# -- against the definitions, by another algorithm ------------------------------------------------


def by_quadratic_programme(p, n_extra=0, price=0.0, below=(), upper=None):
    """argmin of ½ ‖w - p‖² + price · Σ u over the simplex, where A w ≤ u for each A of `below`."""
    n = len(p)
    start = np.concatenate([np.full(n, 1 / n), np.ones(n_extra)])
    limits = [{"type": "eq", "fun": lambda v: v[:n].sum() - 1}]
    limits += [{"type": "ineq", "fun": lambda v, A=A: v[n:] - A @ v[:n]} for A in below if n_extra]
    bounds = [(0, u) for u in (np.ones(n) if upper is None else upper)] + [(0, 2)] * n_extra
    found = minimize(
        lambda v: 0.5 * np.sum((v[:n] - p) ** 2) + price * v[n:].sum(),
        start,
        jac=lambda v: np.concatenate([v[:n] - p, np.full(n_extra, price)]),
        bounds=bounds,
        constraints=limits,
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.x[:n]


def small_problems(n_problems, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n_problems):
        n = int(rng.integers(2, 7))
        yield rng, rng.normal(size=n) * rng.choice([0.3, 1.0, 3.0]), rng.choice([0.02, 0.1, 0.5])


def test_fusedmax_is_the_projection_with_a_price_on_jumps():
    for _, p, strength in small_problems(12, seed=1):
        D = np.diff(np.eye(len(p)), axis=0)
        expected = by_quadratic_programme(p, len(D), strength, (D, -D))
        np.testing.assert_allclose(fusedmax(torch.tensor(p), strength), expected, atol=1e-5)


def test_oscarmax_is_the_projection_with_a_price_on_the_larger_of_each_pair():
    for _, p, strength in small_problems(12, seed=2):
        pairs = [(i, j) for i in range(len(p)) for j in range(i)]
        first, second = (np.eye(len(p))[[pair[side] for pair in pairs]] for side in (0, 1))
        expected = by_quadratic_programme(p, len(pairs), strength, (first, second))
        np.testing.assert_allclose(oscarmax(torch.tensor(p), strength), expected, atol=1e-5)


def test_constrained_sparsemax_is_the_projection_with_budgets():
    for rng, p, _ in small_problems(12, seed=3):
        budget = rng.uniform(0.1, 1.0, len(p))
        budget *= rng.uniform(1.0, 2.0) / budget.sum()
        expected = by_quadratic_programme(p, upper=np.minimum(budget, 1.0))
        found = constrained_sparsemax(torch.tensor(p), torch.tensor(budget))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sparsegen_is_the_projection_less_a_share_of_its_own_size():
    for _, p, _ in small_problems(8, seed=4):
        for strength in (-1.0, 0.6):
            # ½ ‖w - p‖² - ½ λ ‖w‖² is, up to a factor and a constant, ½ ‖w - p / (1 - λ)‖².
            expected = by_quadratic_programme(p / (1 - strength))
            found = weights.sparsegen(torch.tensor(p)[None, :, None], None, strength)[0, :, 0]
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sparsehourglass_is_the_projection_of_rescaled_scores():
    for _, p, q in small_problems(8, seed=5):
        n = len(p)
        expected = by_quadratic_programme(p * (1 + n * q) / (abs(p.sum()) + n * q))
        found = weights.sparsehourglass(torch.tensor(p)[None, :, None], None, q)[0, :, 0]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sparsehourglass_lies_between_scale_and_shift_invariance():
    p = scores(1, 5, 4, scale=2.0)
    near_0 = [weights.sparsehourglass(c * p, None, 1e-9) for c in (1.0, 7.0)]
    torch.testing.assert_close(near_0[0], near_0[1], atol=1e-6, rtol=0)
    torch.testing.assert_close(
        weights.sparsehourglass(p, None, 1e9), weights.sparsemax(p, None), atol=1e-6, rtol=0
    )


def test_the_smooth_ones_are_their_formulas():
    p, prior = scores(3, 5, 4), scores(3, 5, 1, seed=1)
    e = p.exp() * p.sigmoid()
    torch.testing.assert_close(weights.sigsoftmax(p, None), e / e.sum(1, keepdim=True))
    e = p.exp() * prior.exp()
    torch.testing.assert_close(weights.weighted_softmax(p, None, prior), e / e.sum(1, keepdim=True))
    noise = scores(3, 5, 4, seed=2)
    e = ((p + noise) / 0.3).exp()
    torch.testing.assert_close(weights.gumbel(p, None, noise, 0.3), e / e.sum(1, keepdim=True))


def test_entmax_with_a_number_for_each_tree_is_the_entmax_package_s():
    import entmax

    p, alpha = scores(3, 5, 4), torch.tensor([1.2, 1.5, 1.9])[:, None, None].double()
    side = scores(3, 5, 4, seed=1)
    found = []
    for w in (weights.entmax, lambda p, _, a: entmax.entmax_bisect(p, a, dim=1)):
        x, a = p.clone().requires_grad_(), alpha.clone().requires_grad_()
        given = w(x, None, a)
        grads = torch.autograd.grad((given * side).sum(), (x, a))
        found.append((given.detach(), *grads))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@settings(max_examples=60)
@given(
    p=st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9),
    strength=st.sampled_from([0.0, 0.25, 0.5, 1.0, 10.0]),
)
def test_the_step_of_total_variation_meets_its_conditions(p, strength):
    """u = running sum of p - y is ±λ where y jumps, between elsewhere, and 0 at the end."""
    y, group = (part.numpy() for part in total_variation_step(torch.tensor(p).double(), strength))
    u = np.cumsum(np.array(p) - y)
    assert abs(u[-1]) < 1e-9
    assert np.all(np.abs(u[:-1]) <= strength + 1e-9)
    jumps = np.diff(y)
    np.testing.assert_allclose(
        -u[:-1][jumps != 0], strength * np.sign(jumps[jumps != 0]), atol=1e-9
    )
    if strength:
        # Places of one group are equal; those of two may be only where u is at its limit.
        parted = np.diff(group) != 0
        assert np.all(parted[jumps != 0])
        np.testing.assert_allclose(np.abs(u[:-1][parted]), strength, atol=1e-9)


@settings(max_examples=40)
@given(p=st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_pooling_is_scikit_learns_isotonic_regression(p):
    from sklearn.isotonic import isotonic_regression

    found = decreasing(torch.tensor(p, dtype=torch.float64))[0].numpy()
    np.testing.assert_allclose(found, isotonic_regression(p, increasing=False), atol=1e-9)


def test_neighbours_share_weight_under_fusedmax_and_the_like_under_oscarmax():
    p = torch.tensor([0.5, 0.4, -3.0, 0.45])
    fused, oscar = fusedmax(p, 0.1), oscarmax(p, 0.1)
    assert fused[0] == fused[1] > 0
    assert fused[3] != fused[1]
    assert oscar[0] == oscar[1] == oscar[3] > oscar[2]


# -- padding, forests, one leaf -------------------------------------------------------------------


@pytest.mark.parametrize("options", NEW, ids=name_of)
def test_trees_of_a_ragged_forest_are_weighed_as_if_each_stood_alone(options):
    machine, X = make_forest([5, 1, 7, 6, 2], seed=1), make_rows(30)
    net = soften(machine, options, tau=0.5).eval()
    with torch.no_grad():
        together = net.by_tree(net(X, return_weights=True)[1])
        for i in range(machine.n_trees):
            part = dict(options)
            if "prior" in part:
                own = np.random.default_rng(0).uniform(0.2, 3.0, machine.n_leaves)
                part["prior"] = own[machine.trees.leaves(i)]
            alone = soften(machine.tree(i), part, tau=0.5).eval()(X, return_weights=True)[1]
            torch.testing.assert_close(together[i], alone)
            torch.testing.assert_close(alone.sum(-1), torch.ones(30).double())
            assert bool((alone >= 0).all())


# -- exact, in the limit or not -------------------------------------------------------------------

NEVER = ("sparsehourglass", "constrained_sparsemax")
LIMITS = [options for options in NEW if options["weights"] not in NEVER]


@pytest.mark.parametrize("query", ["relu", "log_sigmoid", "tanh"])
@pytest.mark.parametrize("options", LIMITS, ids=name_of)
def test_weights_that_are_exact_in_the_limit_reach_the_tree_as_tau_falls(options, query):
    machine, X = make_forest([7, 1, 16, 4], seed=1), make_rows(64)
    keys = "normalised" if query == "tanh" else "templates"
    lost = []
    for tau in (1.0, 1e-3, 1e-6):
        net = soften(machine, options, query=query, keys=keys, tau=tau, output="margin")
        margin, found = net(X, return_weights=True)
        lost.append((1 - exit_weights(machine, found, X)).max().item())
    assert net.form.exact == "in the limit"
    assert lost[0] > 1e-3
    assert lost[-1] < 1e-9
    np.testing.assert_allclose(margin.detach(), machine.margin(X.numpy()), atol=1e-8)


def smallest_margins(machine, X):
    """(m, T) the smallest abs(S z - t) on every exit path."""
    exits = machine.apply(X.numpy()) + machine.trees.leaf_start[:-1]
    q = np.abs(X.numpy()[:, machine.selection] - machine.t)
    on_path = np.abs(machine.B.toarray())[exits]
    return np.where(on_path == 1, q[:, None, :], np.inf).min(-1)


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({"weights": "sparsegen", "strength": 0.5}, lambda L: 0.5),
        ({"weights": "sparsegen", "strength": -1.0}, lambda L: 2.0),
        ({"weights": "fusedmax", "strength": 0.3}, lambda L: 1 + 3 * 0.3),
        ({"weights": "oscarmax", "strength": 0.1}, lambda L: 1 + 0.1 * L / 2),
    ],
    ids=name_of,
)
@settings(max_examples=15)
@given(seed=st.integers(0, 200))
def test_sparse_weights_are_the_tree_once_every_margin_is_wide_enough(options, width, seed):
    machine, X = make_forest([9, 5], seed=seed), make_rows(20, seed=seed)
    tau = 0.05
    found = soften(machine, options, tau=tau)(X, return_weights=True)[1]
    kept = exit_weights(machine, found, X).detach().numpy()
    enough = np.array([width(9), width(5)]) * tau
    np.testing.assert_allclose(kept[smallest_margins(machine, X) >= enough], 1.0, atol=1e-9)


@settings(max_examples=15)
@given(seed=st.integers(0, 200), tau=st.sampled_from([1.0, 0.3, 0.1]))
def test_smooth_weights_are_within_their_bounds(seed, tau):
    machine, X = make_forest([9, 5], seed=seed), make_rows(20, seed=seed)
    near = np.exp(-smallest_margins(machine, X) / tau)
    prior = np.random.default_rng(seed).uniform(0.2, 3.0, 14)
    exits = machine.apply(X.numpy()) + machine.trees.leaf_start[:-1]
    others = np.array([prior[:9].sum(), prior[9:].sum()]) / prior[exits] - 1
    bounds = {
        "sigsoftmax": ({}, (np.array([9, 5]) - 1) * near),
        "weighted_softmax": ({"prior": prior}, others * near),
        "top_k": ({"k": 3}, 2 * near),
        "gumbel": ({}, (np.array([9, 5]) - 1) * near),
    }
    for name, (options, bound) in bounds.items():
        net = soften(machine, {"weights": name, **options}, tau=tau).eval()
        lost = 1 - exit_weights(machine, net(X, return_weights=True)[1], X).detach().numpy()
        assert np.all(lost <= bound + 1e-12), name


@pytest.mark.parametrize("tau", [1.0, 1e-3, 1e-6])
def test_sparsehourglass_spreads_its_weight_at_any_temperature(tau):
    net = dm.figure_one().soften("sparsehourglass", strength=1.0, tau=tau)
    assert net.form.exact == "no"
    found = net(torch.tensor([[2.0, 1.0, 2.0, 2.0]]), return_weights=True)[1]
    assert found[0, 4] < 0.7
    # A strength that grows with 1 / τ makes it sparsemax.
    net = dm.figure_one().soften("sparsehourglass", strength=1e4 / tau, tau=0.5 * tau)
    assert net(torch.tensor([[2.0, 1.0, 2.0, 2.0]]), return_weights=True)[1][0, 4] > 0.999


@pytest.mark.parametrize("tau", [1.0, 1e-6])
def test_constrained_sparsemax_gives_the_exit_leaf_its_budget_and_no_more(tau):
    x = torch.tensor([[2.0, 1.0, 2.0, 2.0]])
    net = dm.figure_one().soften("constrained_sparsemax", budget=0.6, tau=tau)
    assert net.form.exact == "no"
    assert net(x, return_weights=True)[1][0, 4].item() <= 0.6
    free = dm.figure_one().soften("constrained_sparsemax", budget=1.0, tau=tau)
    same = dm.figure_one().soften("sparsemax", query="relu", tau=tau)
    torch.testing.assert_close(free(x), same(x))


def test_affine_queries_stay_inexact_whatever_the_weights():
    for options in NEW:
        assert soften(dm.figure_one(), options, query="affine").form.exact == "no"


# -- draws ----------------------------------------------------------------------------------------


def test_the_largest_of_scores_and_noise_is_a_draw_from_softmax():
    p = torch.tensor([1.0, 0.0, -1.0, 0.5]).double()
    noise = gumbel_noise(torch.empty(4, 40_000).double(), seed=0, draw=1, block=0)
    share = torch.bincount((p[:, None] + noise).argmax(0), minlength=4) / 40_000
    torch.testing.assert_close(share.double(), p.softmax(0), atol=0.01, rtol=0)


@pytest.mark.parametrize("form", ["gumbel", "gumbel_hard", "sampled"])
def test_draws_are_made_again_by_their_seed_and_go_on_from_a_saved_state(form):
    machine, X = make_forest([5, 1, 9], seed=1), make_rows(40)
    net, same, other = (machine.soften(form, seed=seed) for seed in (3, 3, 4))
    first, second = net(X), net(X)
    assert not torch.equal(first, second)
    assert torch.equal(same(X), first)
    assert not torch.equal(other(X), first)
    resumed = machine.soften(form, seed=3)
    resumed.load_state_dict(net.state_dict())
    following = copy.deepcopy(net)(X)
    assert torch.equal(resumed(X), following)
    assert torch.equal(net.eval()(X), net(X))


def test_hard_draws_are_one_leaf_and_learn_as_the_soft_ones_do():
    machine, X = make_forest([5, 1, 9], seed=1), make_rows(40)
    grads = []
    for form in ("gumbel", "gumbel_hard"):
        net = machine.soften(form, seed=2, learn=("t",), sample_tau=0.7)
        found = net(X, return_weights=True)[1]
        (found * scores(40, 15, seed=3)).sum().backward()
        grads.append(net.t.grad)
    torch.testing.assert_close(grads[0], grads[1])
    is_one = (found == 0) | (found == 1)
    assert bool(is_one.all())


def test_in_evaluation_gumbel_is_softmax_and_a_hard_draw_the_best_leaf():
    machine, X = make_forest([5, 1, 9], seed=1), make_rows(40)
    net = machine.soften("gumbel", tau=0.3).eval()
    torch.testing.assert_close(net(X), machine.soften("softmax", query="relu", tau=0.3)(X))
    for form in ("gumbel_hard", "sampled"):
        found = machine.soften(form, output="margin").eval()(X).detach().numpy()
        np.testing.assert_allclose(found, machine.margin(X.numpy()))


# -- what the weights carry -----------------------------------------------------------------------


def test_covers_are_the_prior_and_leaves_that_no_row_reached_can_still_win():
    X = np.random.default_rng(0).uniform(0, 7, (200, 4))
    machine = dm.figure_one().with_cover(X)
    share = machine.cover.leaves / machine.cover.leaves.sum()
    net = machine.soften("weighted_softmax", prior="cover", tau=1e6)
    found = net(torch.from_numpy(X[:3]), return_weights=True)[1].detach().numpy()
    np.testing.assert_allclose(found, np.broadcast_to(share, (3, 6)), atol=1e-4)
    one_leaf = dm.figure_one().with_cover(np.array([[2.0, 1.0, 2.0, 2.0]]))
    prior = one_leaf.soften("weighted_softmax", prior="cover").weighing.log_prior
    assert bool(torch.isfinite(prior).all())


def test_a_prior_and_every_tree_s_alpha_are_learned():
    machine, X = make_forest([6, 1, 9], seed=1), make_rows(50)
    learn = {"weighted_softmax": "prior", "entmax": "alpha"}
    for form, part in learn.items():
        net = machine.soften(form, query="relu", learn=(part,))
        optimiser = torch.optim.Adam(net.parameters(), lr=0.1)
        target = machine.soften("softmax", query="relu", tau=0.2)(X).detach()
        losses = []
        for _ in range(15):
            optimiser.zero_grad()
            losses.append((net(X) - target).square().mean())
            losses[-1].backward()
            optimiser.step()
        assert losses[-1] < losses[0]
    alpha = net.weighing.alpha().detach()
    assert alpha.shape == (3,)
    assert bool(((alpha > 1) & (alpha < 2)).all())
    assert alpha[0] != alpha[2]
    assert machine.soften("entmax", alpha=1.3).weighing.alpha() == 1.3


@pytest.mark.parametrize("options", NEW, ids=name_of)
def test_gradients_of_the_weights_own_parts_and_of_the_scores(options):
    if options["weights"] in ("sampled", "gumbel_hard"):
        pytest.skip("a draw has no gradient of its own; see test_score_function.py")
    machine, X = make_forest([5, 1, 4], seed=2), make_rows(2, seed=1)
    learn = {"weighted_softmax": ("t", "V", "prior")}.get(options["weights"], ("t", "V", "tau"))
    net = soften(machine, {"learn": learn, **options}, tau=0.8)
    names = [name for name, part in net.named_parameters() if part.requires_grad]
    parts = [net.get_parameter(name).detach().clone().requires_grad_() for name in names]

    def run(x, *given):
        if hasattr(net.weighing, "draws"):
            net.weighing.draws.zero_()  # the same noise at every step
        return torch.func.functional_call(net, dict(zip(names, given, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (X.requires_grad_(), *parts), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("options", NEW, ids=name_of)
def test_losses_and_gradients_stay_finite_on_extreme_rows(options, dtype):
    values = [1e30, -1e30, np.nan, np.inf, -np.inf, 0.0, 1e-40, 1.0, -3e38]
    X = torch.from_numpy(np.random.default_rng(0).choice(values, size=(30, 4))).to(dtype)
    for tau in (1e-3, 1.0):
        net = soften(make_forest([9, 1, 16], seed=3), options, tau=tau, dtype=dtype)
        answer = net.margin(X)
        answer.clamp(-1e4, 1e4).square().mean().backward()
        assert bool(torch.isfinite(answer).all())
        for name, part in net.named_parameters():
            assert part.grad is None or bool(torch.isfinite(part.grad).all()), name


def test_budgets_hold_where_scores_are_far_apart():
    p = torch.tensor([0.0, -1e30, -2e30, -3e30])
    found = constrained_sparsemax(p, torch.full((4,), 0.4))
    torch.testing.assert_close(found, torch.tensor([0.4, 0.4, 0.2, 0.0]))


@pytest.mark.parametrize(
    "options",
    [
        {"form": "softmax", "strength": 0.1},
        {"form": "softmax", "alpha": 1.5},
        {"form": "sparsegen", "strength": 1.0},
        {"form": "sparsehourglass", "strength": 0.0},
        {"form": "fusedmax", "strength": -0.1},
        {"form": "oscarmax", "strength": float("nan")},
        {"form": "top_k", "k": 0},
        {"form": "top_k", "k": 1.5},
        {"form": "gumbel", "sample_tau": 0.0},
        {"form": "gumbel", "seed": -1},
        {"form": "weighted_softmax", "prior": "cover"},
        {"form": "weighted_softmax", "prior": "size"},
        {"form": "weighted_softmax", "prior": [1.0, 2.0]},
        {"form": "weighted_softmax", "prior": 0.0},
        {"form": "constrained_sparsemax", "budget": [0.1] * 6},
        {"form": "constrained_sparsemax", "budget": "half"},
        {"form": "softmax", "learn": ("prior",)},
        {"form": "softmax", "learn": ("alpha",)},
        {"form": "entmax", "learn": ("alpha",), "alpha": 2.0},
    ],
    ids=str,
)
def test_what_weights_do_not_take_is_refused_in_three_parts(options):
    with pytest.raises(dm.InputError) as caught:
        dm.figure_one().soften(**options)
    assert caught.value.found
    assert "What to do" in str(caught.value)
