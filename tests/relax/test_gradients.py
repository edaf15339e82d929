"""Gradients: checked in float64 for every form and part, and finite where others give NaN."""

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows
from strategies import make_machine

import decision_machines as dm
from decision_machines.relax.forms import FORMS

FORM_OPTIONS = [
    {"form": "soft_tree"},
    {"form": "softmax"},
    {"form": "softmax", "query": "relu"},
    {"form": "softmax", "query": "tanh", "keys": "normalised"},
    {"form": "softmax", "query": "log_sigmoid"},
    {"form": "sparsemax"},
    {"form": "sparsemax", "query": "relu"},
    {"form": "entmax15"},
    {"form": "entmax", "alpha": 1.3},
    {"form": "positive_part", "alpha": 0.7},
    {"form": "positive_part"},
    {"form": "linear"},
    {"form": "linear", "feature_map": "relu"},
    {"form": "linear", "feature_map": "exp"},
    {"form": "linear", "feature_map": "random", "n_random": 4},
    {"form": "multi_head"},
]
HARD_OPTIONS = [{"form": form} for form in ("logical", "delta", "relu", "straight_through")]


def name_of(options):
    return "-".join(str(value) for value in options.values())


def learnable(options):
    parts = ["t", "slope", "V", "tau"]
    parts += [] if options["form"] == "linear" else ["keys"]
    return parts + (["W_Q", "W_K", "W_V", "W_O"] if options["form"] == "multi_head" else [])


def check(net, X):
    names = [name for name, part in net.named_parameters() if part.requires_grad]
    parts = [net.get_parameter(name).detach().clone().requires_grad_() for name in names]
    X = X.clone().requires_grad_()

    def run(x, *given):
        return torch.func.functional_call(net, dict(zip(names, given, strict=True)), (x,))

    return torch.autograd.gradcheck(run, (X, *parts), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", FORM_OPTIONS, ids=name_of)
def test_gradients_of_every_part_and_of_the_input(options):
    machine, X = make_forest([4, 1, 3], seed=2), make_rows(2, seed=1)
    assert check(machine.soften(learn=learnable(options), tau=0.8, **options), X)


@pytest.mark.parametrize("selection", ["oblique", "sparse"])
@pytest.mark.parametrize(
    "options",
    [{"form": "soft_tree"}, {"form": "softmax", "query": "relu"}, {"form": "linear"}],
    ids=name_of,
)
def test_gradients_of_a_learned_selection(options, selection):
    machine, X = make_forest([5, 1, 3], seed=2), make_rows(3, seed=1)
    X[0, 0] = torch.nan
    net = machine.soften(learn=("S", "t"), selection=selection, tau=0.8, **options)
    # finite differences cannot step a NaN
    names = ["selection.S", "t"]
    parts = [net.get_parameter(name).detach().clone().requires_grad_() for name in names]
    if selection == "oblique":
        parts[0] = (parts[0].detach() + 0.1).requires_grad_()  # a weight of 0 reads no NaN

    def run(*given):
        return torch.func.functional_call(net, dict(zip(names, given, strict=True)), (X,))

    assert torch.autograd.gradcheck(run, parts, eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{"form": "soft_tree"}, {"form": "softmax"}], ids=name_of)
def test_gradients_through_the_link(options):
    machine = make_forest([5, 1, 3], seed=2)
    from dataclasses import replace

    machine = replace(machine, output=replace(machine.output, link="softmax"))
    assert check(machine.soften(learn=("t", "V"), **options), make_rows(3, seed=1))


@pytest.mark.parametrize("form", ["logical", "delta", "relu"])
def test_hard_forms_learn_values_alone(form):
    machine, X = make_forest([5, 1, 3], seed=2), make_rows(3, seed=1)
    assert check(machine.soften(form, learn=("V",)), X)


def test_straight_through_has_the_soft_tree_s_gradients():
    machine, X = make_forest([5, 1, 9], seed=2), make_rows(20)
    learn = ("t", "slope", "V", "tau")
    grads = []
    for form in ("straight_through", "soft_tree"):
        net = machine.soften(form, learn=learn, tau=0.5)
        (net(X) * make_rows(20, 2, seed=3)).sum().backward()
        grads.append({name: part.grad for name, part in net.named_parameters()})
    for name, grad in grads[0].items():
        torch.testing.assert_close(grad, grads[1][name])


def test_a_hard_selection_learns_through_entmax():
    machine, X = make_forest([5, 9], seed=2), make_rows(20)
    net = machine.soften("soft_tree", selection="hard", learn=("S",))
    torch.testing.assert_close(net(X), machine.soften("soft_tree")(X))
    net(X).square().sum().backward()
    assert net.selection.S.grad.abs().max() > 0


@pytest.mark.parametrize("gap", [1.0, 1.9, 2.0])
def test_a_sparse_selection_starts_near_the_machine(gap):
    machine, X = make_forest([5, 9], seed=2), make_rows(40)
    net = machine.soften("soft_tree", selection="sparse", learn=("S",), gap=gap)
    S = net.selection.weights().detach()
    own = S.gather(1, torch.from_numpy(machine.selection.astype(np.int64))[:, None])
    off = (X @ S.T - X[:, torch.from_numpy(machine.selection.astype(np.int64))]).abs()
    spread = X.amax(1, keepdim=True) - X.amin(1, keepdim=True)
    assert torch.all(off <= (1 - own.T) * spread + 1e-12)
    assert torch.all(own == 1) == (gap == 2.0)
    net(X).square().sum().backward()
    assert (net.selection.S.grad.abs().max() > 0) == (gap < 2.0)


# -- extreme inputs -------------------------------------------------------------------------------


def extreme_rows(n_features):
    rng = np.random.default_rng(0)
    values = [1e30, -1e30, np.nan, np.inf, -np.inf, 0.0, 1e-40, 1.0, -3e38]
    X = rng.choice(values, size=(40, n_features))
    X[:9] = np.array(values)[:, None]
    return torch.from_numpy(X)


def chain(depth, n_features=4):
    """One tree that is a chain, a one-leaf tree, and a zigzag."""
    rng = np.random.default_rng(1)
    return make_machine(
        [depth + 1, 1, depth + 1],
        rng,
        shapes=("left", "zigzag"),
        n_features=n_features,
        rules=False,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("options", FORM_OPTIONS + HARD_OPTIONS, ids=name_of)
def test_loss_and_gradients_stay_finite_on_extreme_rows(options, dtype):
    machine, X = make_forest([9, 1, 16], seed=3), extreme_rows(4).to(dtype)
    for tau in (1e-3, 1.0):
        net = machine.soften(learn=learnable(options), tau=tau, dtype=dtype, **options)
        assert_finite(net, X)


@pytest.mark.parametrize("selection", ["oblique", "sparse", "hard"])
@pytest.mark.parametrize("form", ["soft_tree", "softmax", "straight_through"])
def test_learned_selections_stay_finite_on_extreme_rows(form, selection):
    machine, X = make_forest([9, 1, 16], seed=3), extreme_rows(4)
    net = machine.soften(form, learn=("S", "t", "slope", "V"), selection=selection, tau=0.1)
    assert_finite(net, X)
    with torch.no_grad():
        net.selection.S.add_(make_rows(machine.n_tests, 4))
    assert_finite(net, X.clamp(-1e30, 1e30))


@pytest.mark.parametrize("options", FORM_OPTIONS + HARD_OPTIONS, ids=name_of)
def test_loss_and_gradients_stay_finite_at_depth_200(options):
    machine = chain(200)
    X = torch.cat([make_rows(4), extreme_rows(4)[:12]]).float()
    learn = [part for part in learnable(options) if part != "keys"]
    net = machine.soften(learn=learn, tau=0.1, dtype=torch.float32, **options)
    assert_finite(net, X)


@pytest.mark.parametrize("form", FORMS)
def test_a_forest_of_one_leaf_trees_answers_its_constants(form):
    machine, X = make_forest([1, 1, 1], seed=4), extreme_rows(4)
    net = machine.soften(form, output="margin")
    margin, weights = net(X, return_weights=True)
    np.testing.assert_allclose(margin.detach(), machine.margin(X.numpy()), rtol=1e-12)
    assert torch.all(weights == 1)
    assert_finite(net, X)


@pytest.mark.parametrize("form", FORMS)
def test_categories_and_rules_of_missing_train(form):
    machine = make_machine([9, 1, 16], np.random.default_rng(5), n_outputs=2)
    X = torch.from_numpy(np.random.default_rng(0).integers(-2, 12, (50, 3)).astype(float))
    X[::5] = torch.nan
    net = machine.soften(form, tau=0.5)
    assert_finite(net, X)
    assert net.leaves.V.grad.abs().max() > 0


def test_missing_rows_do_not_move_thresholds():
    machine = dm.figure_one()
    net = machine.soften("soft_tree")
    X = torch.full((3, 4), torch.nan).double()
    net(X).sum().backward()
    assert torch.all(net.t.grad == 0)
    assert net(X).tolist() == [[6.0]] * 3  # every missing answer is right


def assert_finite(net, X):
    net.zero_grad()
    margin = net.margin(X)
    loss = (margin.clamp(-1e4, 1e4) - 1).square().mean()
    loss.backward()
    assert torch.isfinite(margin).all()
    assert torch.isfinite(loss)
    for name, part in net.named_parameters():
        if part.grad is not None:
            assert torch.isfinite(part.grad).all(), name
