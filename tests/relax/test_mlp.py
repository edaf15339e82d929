"""A forest as a plain network: the same answers, sparse or full, and the way back."""

import copy
import io
import pickle
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from relax_forests import make_forest, make_rows
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from strategies import machines, probe_rows

import decision_machines as dm
from decision_machines.relax.mlp import ForestNetwork

HARD = ["sign", "straight_through"]


@pytest.mark.parametrize("activation", HARD)
@settings(max_examples=40)
@given(machine=machines(max_trees=3, max_leaves=10))
def test_hard_signs_fire_the_exit_leaf_alone_ties_and_gaps_included(activation, machine):
    X = probe_rows(machine, max_rows=30)
    X = np.where(np.abs(X) > 1e37, np.nan, X)
    net = machine.to_mlp(activation=activation, output="margin", dtype=torch.float64)
    fires = torch.nn.Sequential(*list(net)[:5])(torch.from_numpy(X))
    expected = np.zeros(fires.shape)
    exits = machine.apply(X) + machine.trees.leaf_start[:-1]
    np.put_along_axis(expected, exits, 1.0, axis=1)
    assert np.array_equal(fires.detach().numpy(), expected)
    margin = net(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(margin, machine.margin(X), rtol=1e-5, atol=1e-4)


@settings(max_examples=40)
@given(machine=machines(max_trees=3, max_leaves=10))
def test_untrained_it_hardens_to_the_machine_bit_for_bit(machine):
    for activation in ("tanh", "sign"):
        assert machine.to_mlp(activation=activation).harden().equals(machine)


@pytest.mark.parametrize("connections", ["paths", "trees", "all"])
def test_it_is_the_machine_in_the_limit_of_steep_slopes(connections):
    machine, X = make_forest([7, 1, 12], seed=1), make_rows(40)
    lost = []
    for slope in (2.0, 30.0, 1e9):
        net = machine.to_mlp(slope=(slope, slope), connections=connections, output="margin")
        lost.append(np.abs(net(X).detach().numpy() - machine.margin(X.numpy())).max())
    assert lost[0] > lost[1] > lost[2]
    assert lost[2] < 1e-9


def test_links_and_averages_are_the_models_own():
    X, y = make_friedman1(150, random_state=0)
    forest = RandomForestRegressor(5, max_leaf_nodes=9, random_state=0).fit(X, y)
    boosted = GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, y > 14)
    rows = X.astype(np.float32)
    for model, answers in ((forest, forest.predict(rows)[:, None]), (boosted, None)):
        machine = dm.convert(model)
        net = machine.to_mlp(activation="sign")
        expected = machine.response(rows) if answers is None else answers
        np.testing.assert_allclose(
            net(torch.from_numpy(rows)).detach().numpy().reshape(expected.shape), expected
        )


def as_signs(net):
    """The same network with hard signs."""
    hard = copy.deepcopy(net)
    hard.signs.activation = hard.fires.activation = "sign"
    return hard


def trained(machine, X, y, steps=60, **options):
    net = machine.to_mlp(**options)
    rows, target = torch.tensor(X), torch.tensor(y)
    optimiser = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.005)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (net(rows)[:, 0] - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return net, losses


def friedman_forest():
    X, y = make_friedman1(300, random_state=0)
    X = X.astype(np.float32).astype(np.float64)
    model = RandomForestRegressor(4, max_leaf_nodes=8, random_state=0).fit(X, y)
    return dm.convert(model), X, y + 3 * X[:, 0]  # a target that has moved


def test_trained_sparse_it_stays_sparse_and_hardens_to_what_it_answers():
    machine, X, y = friedman_forest()
    net, losses = trained(machine, X, y, dtype=torch.float64)
    assert losses[-1] < 0.9 * losses[0]
    assert net.templates.weight.grad[~net.templates.mask].abs().max() == 0
    hard = net.harden()
    assert hard.is_oblique  # the weights of S were trained
    assert np.array_equal(hard.B.toarray(), machine.B.toarray())
    np.testing.assert_allclose(
        hard.predict(X), as_signs(net)(torch.from_numpy(X)).detach().numpy()[:, 0], rtol=1e-4
    )


def test_thresholds_and_values_alone_give_straight_tests_back():
    machine, X, y = friedman_forest()
    net, losses = trained(machine, X, y, activation="straight_through", learn=("t", "V"))
    hard = net.harden()
    assert not hard.is_oblique
    assert losses[-1] < 0.9 * losses[0]
    error = np.mean((hard.predict(X) - y) ** 2)
    assert error < np.mean((machine.predict(X) - y) ** 2)
    np.testing.assert_allclose(
        hard.predict(X), net(torch.from_numpy(X)).detach().numpy()[:, 0], rtol=1e-5
    )


def test_full_layers_train_and_are_refused_where_no_tree_is_left():
    machine, X, y = friedman_forest()
    net, losses = trained(machine, X, y, connections="all", slope=(5.0, 1.0), steps=30)
    assert losses[-1] < losses[0]
    assert net.templates.weight.grad[torch.from_numpy(machine.B.toarray() == 0)].abs().max() > 0
    with torch.no_grad():
        net.templates.weight[3] += 1.0
    with pytest.raises(dm.InputError, match=r"leaf \d+ is not the leaf of one path") as caught:
        net.harden()
    assert "learn=('S', 't', 'V')" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "is_tree"),
    [
        ((0, 0.3, 0.0), True),  # a weight on the path, and slack enough
        ((0, -1.2, 0.0), False),  # it asks for the other side
        ((None, 0.4, 0.0), True),  # a test off the path that cannot decide
        ((None, 2.5, 0.0), False),  # one that can
        ((0, 0.0, 1.0), True),  # the bias at its edge: a sum of 0 does not fire
        ((0, 0.0, 1.1), False),
        ((0, 0.0, -1.0), False),  # a sum of 0 on the path does not fire
    ],
)
def test_a_leaf_is_one_while_it_fires_for_its_path_alone(change, is_tree):
    machine = dm.figure_one()
    net = machine.to_mlp(activation="sign", connections="all", dtype=torch.float64)
    where, by, bias = change
    row = machine.B.toarray()[1]
    test = int(np.flatnonzero(row == 0)[0] if where is None else np.flatnonzero(row)[where])
    sign = 1 if where is None else row[test]
    with torch.no_grad():
        net.templates.weight[1, test] += by * sign
        net.templates.bias[1] += bias
    # By trying all answers of the five tests:
    h = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1)
    sums = net.templates.weight.detach().numpy() @ h + net.templates.bias.detach().numpy()[:, None]
    templates = machine.B.toarray()
    is_path = (templates @ h) == np.abs(templates).sum(1, keepdims=True)
    assert np.array_equal(sums > 0, is_path) == is_tree
    if is_tree:
        assert net.harden().equals(machine)
    else:
        with pytest.raises(dm.InputError, match="leaf 1"):
            net.harden()


def test_a_base_after_the_average_and_narrow_values_come_back():
    machine = make_forest([5, 4], seed=2, n_outputs=1)
    for base_first in (True, False):
        output = replace(
            machine.output, base=np.array([1.5]), base_first=base_first, divisor=2.0, scale=0.5
        )
        one = replace(machine, output=output)
        net = one.to_mlp(activation="sign", output="margin")
        with torch.no_grad():
            net.values.bias += 0.25
        X = make_rows(20)
        np.testing.assert_allclose(
            net.harden().margin(X.numpy()), net(X).detach().numpy(), rtol=1e-6
        )


@pytest.mark.filterwarnings("ignore")
def test_it_is_a_module_among_modules():
    machine, X = make_forest([7, 1, 12], seed=1), make_rows(24)
    net = machine.to_mlp(dtype=torch.float32)
    assert isinstance(net, ForestNetwork)
    assert isinstance(net, torch.nn.Sequential)
    answer = net(X.float())
    torch.testing.assert_close(net(X.float().reshape(2, 3, 4, 4)), answer.reshape(2, 3, 4, -1))
    fresh = machine.to_mlp(dtype=torch.float32, slope=(10.0, 2.0))
    with torch.no_grad():
        net.tests.bias += 0.1
    fresh.load_state_dict(net.state_dict())
    for same in (fresh, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(same(X.float()), net(X.float()))
    file = io.BytesIO()
    torch.onnx.export(
        net, (X.float(),), file, dynamo=False, input_names=["X"], dynamic_axes={"X": {0: "rows"}}
    )
    session = onnxruntime.InferenceSession(file.getvalue())
    rows = X[:5].float().numpy()
    np.testing.assert_allclose(
        session.run(None, {"X": rows})[0], net(X[:5].float()).detach(), atol=1e-5
    )


def test_gradients_are_right_and_finite():
    machine, X = make_forest([4, 1, 3], seed=2), make_rows(3, seed=1)
    net = machine.to_mlp(connections="all", slope=(1.0, 0.7))
    names = [name for name, _ in net.named_parameters()]
    parts = [net.get_parameter(name).detach().clone().requires_grad_() for name in names]
    with torch.no_grad():
        parts[0][parts[0] == 0] = 0.1

    def run(x, *given):
        return torch.func.functional_call(net, dict(zip(names, given, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (X.requires_grad_(), *parts), eps=1e-6, atol=1e-6)
    values = [1e30, -1e30, np.nan, np.inf, -np.inf, 0.0, -3e38]
    rows = torch.from_numpy(np.random.default_rng(0).choice(values, (30, 4))).float()
    for activation in ("tanh", "straight_through"):
        net = machine.to_mlp(activation=activation, dtype=torch.float32)
        net(rows).square().mean().backward()
        assert all(bool(torch.isfinite(part.grad).all()) for part in net.parameters())


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "relu"},
        {"connections": "dense"},
        {"slope": 0.0},
        {"slope": (1.0, 2.0, 3.0)},
        {"learn": ("tau",)},
        {"output": "logits"},
        {"dtype": "float32"},
    ],
    ids=str,
)
def test_bad_options_are_refused_in_three_parts(options):
    with pytest.raises(dm.InputError) as caught:
        dm.figure_one().to_mlp(**options)
    assert "What to do" in str(caught.value)


def test_what_no_such_network_can_hold_is_refused():
    machine = make_forest([5, 3], n_outputs=1)
    with pytest.raises(dm.UnsupportedModelError, match="median"):
        replace(machine, output=replace(machine.output, aggregate="median")).to_mlp()
    with pytest.raises(dm.InputError, match="reads 4 features"):
        machine.to_mlp()(torch.zeros(2, 3))
    with pytest.raises(dm.InputError, match="from_numpy"):
        machine.to_mlp()(np.zeros((2, 4)))
