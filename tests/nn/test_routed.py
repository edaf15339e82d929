"""`RoutedFeedForward`: the mixture, one path for each row, the kernel, deferral."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from decision_machines import _native
from decision_machines.errors import InputError
from decision_machines.nn import RoutedFeedForward, fit_routed
from decision_machines.run.engines.processor import engine_info


def layer_of(n=20, k=5, depth=3, hidden=7, **options):
    layer = RoutedFeedForward(n, k, depth, hidden, **options)
    layer(torch.randn(200, n) + 0.5)
    return layer.eval()


@pytest.mark.parametrize("answers", ["classes", "values"])
def test_the_mixture_is_that_of_all_experts_by_the_tree(answers):
    layer = layer_of(answers=answers).double()
    x = torch.randn(30, 20, dtype=torch.float64)
    q = (layer.gates(x @ layer.W.t()) - layer.t) * layer.log_slope.exp()
    total = torch.zeros(30, 5, dtype=torch.float64)
    for e in range(8):
        p, at = torch.ones(30, dtype=torch.float64), 0
        for level in range(3):
            right = e >> (2 - level) & 1
            p = p * (q[:, at] if right else -q[:, at]).sigmoid()
            at = 2 * at + 1 + right
        out = (x @ layer.first[e].t() + layer.first_bias[e]).relu() @ layer.second[e].t()
        out = out + layer.second_bias[e]
        total += p[:, None] * (out.softmax(-1) if answers == "classes" else out)
    found = layer(x)
    assert torch.allclose(found.exp() if answers == "classes" else found, total)


@pytest.mark.parametrize("depth", [0, 1, 4])
@pytest.mark.parametrize(("n", "hidden", "k"), [(1, 1, 1), (19, 7, 5), (100, 33, 17)])
@pytest.mark.parametrize("answers", ["classes", "values"])
def test_the_kernel_answers_as_torch_does(depth, n, hidden, k, answers):
    layer = layer_of(n, k, depth, hidden, answers=answers).freeze()
    fast = layer.harden()
    for m in (0, 1, 3, 50, 5000):
        x = torch.randn(m, n)
        expected, found = layer(x), fast(x)
        assert found.shape == (m, k)
        assert np.array_equal(fast.route(x.numpy())[0], layer.route(x).numpy())
        assert torch.allclose(found, expected, atol=2e-5)
        assert np.array_equal(fast(x.numpy()), found.numpy())


def test_every_target_answers_alike():
    layer = layer_of(50, 5, 3, 20, defer=30, certainty=0.5).freeze()
    fast, x = layer.harden(), torch.randn(77, 50).numpy()
    for target in engine_info()["available"]:
        plan = _native.RoutedPlan(
            target,
            fast.tests,
            fast.thresholds,
            fast.experts,
            fast.dense,
            0.5,
            True,
        )
        assert np.allclose(plan.run(x), fast(x), atol=1e-5)


def test_unsure_rows_are_answered_by_the_dense_network_alone():
    layer = layer_of(defer=9, certainty=0.3).freeze()
    x = torch.randn(300, 20)
    alone = layer.experts(x, layer.route(x))
    is_unsure = alone.max(-1).values < np.log(0.3)
    assert 0 < is_unsure.sum() < 300
    expected = torch.where(is_unsure[:, None], layer.dense(x).log_softmax(-1), alone)
    fast = layer.harden()
    assert torch.equal(layer(x), expected)
    assert torch.allclose(fast(x), expected, atol=2e-5)
    assert np.array_equal(fast.route(x)[1], is_unsure.numpy())
    share = float(is_unsure.float().mean())
    assert fast.multiply_adds(x) == pytest.approx(3 * 20 + 20 * 7 + 7 * 5 + share * (180 + 45))
    layer.certainty = 0.0
    assert torch.equal(layer(x), alone)


def test_frozen_training_moves_experts_on_their_own_rows_alone():
    layer = layer_of().freeze().train()
    x = torch.randn(40, 20)
    route = layer.route(x)
    one = x[route == route[0]]
    layer(one).sum().backward()
    assert layer.W.grad is None
    touched = layer.first.grad.abs().sum((1, 2)) > 0
    assert touched.nonzero().flatten().tolist() == [int(route[0])]


def test_the_recipe_learns_and_seeds_reproduce():
    def trained():
        torch.manual_seed(1)
        x = torch.randn(600, 6)
        y = (x[:, 0] * x[:, 1] > 0).long() + 2 * (x[:, 2] > 0).long()
        net = RoutedFeedForward(6, 4, 2, 6, defer=16)
        fit_routed(net, x, y, epochs=25, own_epochs=15, rate=0.03, batch_size=64, seed=2)
        fast = net.harden()
        return fast(x).numpy(), float((fast(x).argmax(-1) == y).float().mean())

    first, share = trained()
    assert share > 0.85
    assert np.array_equal(trained()[0], first)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_losses_and_gradients_are_finite(scale):
    layer = RoutedFeedForward(30, 3, 5, 4)
    loss = -layer(torch.randn(9, 30) * scale)[:, 0].mean()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(part.grad).all() for part in layer.parameters())


def test_copies_answer_alike_and_rubbish_is_named():
    layer, x = layer_of(defer=4).freeze(), torch.randn(2, 3, 20)
    assert layer(x).shape == (2, 3, 5)
    other = RoutedFeedForward(20, 5, 3, 7, defer=4).eval()
    other.load_state_dict(layer.state_dict())
    fast = layer.harden()
    for twin in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), layer(x))
    rows = x[0].numpy()
    assert np.array_equal(pickle.loads(pickle.dumps(fast))(rows), fast(rows))
    assert np.array_equal(fast(rows.astype(np.float64)), fast(rows))
    for call, words in (
        (lambda: RoutedFeedForward(0, 1), "in_features=0"),
        (lambda: RoutedFeedForward(1, 1, 11), "depth=11"),
        (lambda: RoutedFeedForward(1, 1, certainty=2), "certainty=2"),
        (lambda: RoutedFeedForward(1, 1, defer=3, answers="values"), "no certainty"),
        (lambda: layer(x[..., :3]), "takes 20 features"),
        (lambda: fast(rows[:, :3]), "shape"),
        (lambda: fast(rows[0]), "shape"),
        (lambda: fast.multiply_adds(), "no rows"),
        (lambda: fit_routed(layer, x[0], torch.zeros(3)), "class numbers"),
    ):
        with pytest.raises(InputError, match=words):
            call()
