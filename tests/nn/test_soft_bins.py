"""`SoftBins`: the Kronecker product of soft bins, and its hard twin."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch

from decision_machines.errors import InputError
from decision_machines.nn import SoftBins


def bins(n=3, k=2, n_bins=3, **options):
    layer = SoftBins(n, k, n_bins, dtype=torch.float64, **options)
    layer(torch.randn(300, n, dtype=torch.float64) * 2 + 1)
    return layer.eval()


def test_weights_are_the_kronecker_product_of_softmaxes():
    layer, x = bins(), torch.randn(10, 3, dtype=torch.float64)
    z, cuts = layer.inputs(x).detach().numpy(), np.sort(layer.cuts[0].detach().numpy())
    for row, answer in zip(z, layer(x).detach().numpy(), strict=True):
        parts = []
        for value, own in zip(row, cuts, strict=True):
            scores = np.array([0, value - own[0], 2 * value - own[0] - own[1]]) / layer.tau
            e = np.exp(scores - scores.max())
            parts.append(e / e.sum())
        p = functools.reduce(np.kron, parts)
        assert np.allclose(p @ layer.V[0].detach().numpy(), answer)


@pytest.mark.parametrize("groups", [None, 4, [[0, 2], [3, 1]]])
@pytest.mark.parametrize("n_bins", [2, 5])
def test_the_machine_is_the_layer_of_hard_bins_and_the_limit_of_soft_ones(groups, n_bins):
    layer = bins(4, 2, n_bins, groups=groups, group_size=3)
    x = torch.randn(500, 4, dtype=torch.float64) * 2 + 1
    x[torch.rand(x.shape) < 0.05] = float("nan")
    machine = layer.harden()
    assert not machine.is_oblique
    assert np.array_equal(machine.apply(x.numpy()), layer.exit_leaves(x).numpy())
    assert np.allclose(machine.margin(x.numpy()), layer.hard(x).detach().numpy())
    layer.tau = 1e-9
    assert np.allclose(machine.margin(x.numpy()), layer(x).detach().numpy(), atol=1e-5)


def test_a_cut_belongs_to_the_bin_on_its_left():
    layer = SoftBins(1, 1, 2, dtype=torch.float64).eval()
    with torch.no_grad():
        layer.cuts.fill_(0.5)
    x = torch.tensor([[0.5]], dtype=torch.float64)
    assert layer.exit_leaves(x).item() == layer.harden().apply(x.numpy())[0, 0] == 0


def test_gradients_are_those_of_finite_differences():
    layer, x = bins(2, 1), torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    layer.tau = 0.7
    names = [name for name, _ in layer.named_parameters()]
    parts = [part.detach().clone().requires_grad_() for part in layer.parameters()]

    def answer(x, *parts):
        return torch.func.functional_call(layer, dict(zip(names, parts, strict=True)), (x,))

    assert torch.autograd.gradcheck(answer, (x, *parts))


def test_training_finds_a_checkerboard():
    x = torch.rand(400, 2)
    y = ((x[:, 0] > 0.4) ^ (x[:, 1] > 0.6)).long()
    layer = SoftBins(2, 2, 2, leaves="probabilities")
    optimiser = torch.optim.Adam(layer.parameters(), 0.05)
    for _ in range(100):
        loss = torch.nn.functional.nll_loss(layer(x).log(), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert np.mean(layer.eval().harden().predict(x.numpy()) == y.numpy()) > 0.97


def test_copies_answer_alike_and_too_many_leaves_are_refused():
    layer, x = bins(groups=2, group_size=2), torch.randn(5, 3, dtype=torch.float64)
    other = SoftBins(3, 2, 3, groups=2, group_size=2, dtype=torch.float64).eval()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))
    assert torch.equal(copy.deepcopy(layer)(x), layer(x))
    with pytest.raises(InputError, match=r"3\^40 leaves"):
        SoftBins(40, 2, 3)
    with pytest.raises(InputError, match="bins=1"):
        SoftBins(4, 2, 1)
    for groups in ([[0], [1, 2]], [[5]], []):
        with pytest.raises(InputError, match="equal length"):
            SoftBins(3, 1, groups=groups)
