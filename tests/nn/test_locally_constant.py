"""`LocallyConstantNetwork`: constant on patterns, and exactly an oblique tree."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from decision_machines.errors import InputError
from decision_machines.nn import LocallyConstantNetwork


def network(n=4, k=2, depth=4, dtype=torch.float64, **options):
    net = LocallyConstantNetwork(n, k, depth, dtype=dtype, **options)
    with torch.no_grad():
        for part in (net.c, net.base):
            part.normal_()
    net(torch.randn(300, n, dtype=dtype) * 2 + 3)
    return net.eval()


def relu_chain(net, z, tree):
    """The neurons of a chain as plain ReLUs, one after another."""
    a = []
    for i in range(net.depth):
        own = z @ net.W[tree, i] + net.b[tree, i]
        for k in range(i):
            own = own + net.U[tree, i, k] * a[k].relu()
        a.append(own)
    return torch.stack(a, -1)


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("trees", [1, 3])
def test_the_answer_is_a_function_of_the_derivatives_of_relu_neurons(hidden, trees):
    """A second algorithm: autograd's own derivatives of a plain ReLU chain."""
    net = network(hidden=hidden, trees=trees)
    for x in torch.randn(20, 4, dtype=torch.float64) * 2 + 3:
        z = net.inputs(x[None])[0].detach()
        total = net.base.clone()
        for tree in range(trees):
            D = torch.autograd.functional.jacobian(
                lambda z, tree=tree: relu_chain(net, z, tree).relu(), z
            )
            inner = torch.einsum("in,ihn->h", D, net.H[tree]) / 2 + net.c[tree]
            total = total + (inner.relu() @ net.last[tree] if hidden else inner / trees**0.5)
        assert torch.allclose(net(x), total, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("depth", "trees", "hidden"), [(1, 1, 0), (5, 3, 0), (8, 1, 6)])
def test_the_machine_is_the_network_on_every_row(dtype, depth, trees, hidden):
    net = network(depth=depth, trees=trees, hidden=hidden, dtype=dtype)
    x = torch.randn(3000, 4, dtype=dtype) * 2 + 3
    machine = net.harden()
    assert machine.n_leaves == trees * 2**depth
    pattern = net.pattern(x).long()
    leaf = (pattern * 2 ** torch.arange(depth - 1, -1, -1)).sum(-1)
    assert np.array_equal(machine.apply(x.numpy()), leaf.numpy())
    close = 1e-10 if dtype == torch.float64 else 1e-3
    assert np.allclose(machine.margin(x.numpy()), net(x).detach().numpy(), atol=close)


def test_hardness_leads_from_the_smooth_network_to_the_tree():
    net, x = network().train(), torch.randn(50, 4, dtype=torch.float64)
    net.inputs.eval()
    hard = copy.deepcopy(net).eval()(x)
    gaps = []
    for net.hardness in (0.0, 0.5, 1.0):
        gaps.append(float((net(x) - hard).abs().max().detach()))
    assert gaps[0] > 0
    assert gaps[2] == 0
    for part in net.parameters():
        part.grad = None
    net.hardness = 0.5
    net(x).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters())
    with pytest.raises(InputError, match="hardness=2"):
        net.hardness = 2


def test_training_learns_what_the_tree_then_answers():
    x = torch.randn(300, 2)
    y = ((x[:, 0] > 0) & (x[:, 1] > x[:, 0])).long()
    net = LocallyConstantNetwork(2, 2, 4, leaves="logits")
    optimiser = torch.optim.Adam(net.parameters(), 0.1)
    for step in range(150):
        net.hardness = min(1.0, step / 120)
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    machine = net.eval().harden()
    assert np.mean(machine.predict(x.numpy()) == y.numpy()) > 0.93
    assert np.array_equal(machine.predict(x.numpy()), net(x).argmax(-1).numpy())


@pytest.mark.parametrize("depth", [1, 12])
@pytest.mark.parametrize("width", [1, 4096])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_losses_and_gradients_are_finite_from_random_starts(depth, width, scale):
    net = LocallyConstantNetwork(width, 2, depth)
    loss = (net(torch.randn(8, width) * scale) ** 2).mean()
    loss.backward()
    assert torch.isfinite(loss)
    for name, part in net.named_parameters():
        # One neuron reads no other.
        assert (depth == 1 and name == "U") or torch.isfinite(part.grad).all(), name


def test_copies_answer_alike_and_bad_sizes_are_named():
    net, x = network(), torch.randn(5, 4, dtype=torch.float64)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(x), net(x))
    for arguments, words in (
        ((0, 1), "in_features=0"),
        ((3, 1, 20), "depth=20"),
        ((3, 1.5), "out_features=1.5"),
    ):
        with pytest.raises(InputError, match=words):
            LocallyConstantNetwork(*arguments)
    with pytest.raises(InputError, match="takes 4 features"):
        net(torch.zeros(2, 3, dtype=torch.float64))
