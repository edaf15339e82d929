"""Derivatives of derivatives: right by the kernel and by plain torch, behind another layer too."""

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows
from torch import nn

import decision_machines as dm
from decision_machines.relax import soft_tree
from decision_machines.relax.native_soft import soft_tree_sum_native
from decision_machines.relax.soft_structure import SoftStructure
from decision_machines.relax.soft_tree_plain import soft_tree_sum_plain

LEARN = ("t", "slope", "V", "tau")


@pytest.fixture(params=["native", "plain"])
def kernel(request, monkeypatch):
    if request.param == "plain":
        for module in (soft_tree, dm.relax.module):
            monkeypatch.setattr(module, "has_kernel", lambda q, V: False)
    return request.param


def stacked(machine, **options):
    """A layer below, a soft machine, and a smooth layer above."""
    torch.manual_seed(0)
    head = machine.soften("soft_tree", learn=LEARN, tau=0.7, **options)
    return nn.Sequential(nn.Linear(3, machine.n_features).double(), head, nn.Tanh())


def function_of(net):
    names = [name for name, part in net.named_parameters() if part.requires_grad]
    parts = [net.get_parameter(name).detach().clone().requires_grad_() for name in names]

    def run(x, *given):
        return torch.func.functional_call(net, dict(zip(names, given, strict=True)), (x,))

    return run, parts


@pytest.mark.parametrize("selection", ["fixed", "oblique"])
def test_second_derivatives_with_a_layer_below(kernel, selection):
    net = stacked(make_forest([4, 1, 3], seed=2), selection=selection)
    run, parts = function_of(net)
    x = make_rows(2, 3, seed=1).requires_grad_()
    assert torch.autograd.gradgradcheck(run, (x, *parts), eps=1e-6, atol=1e-5)


def test_a_gradient_penalty_is_the_same_with_and_without_the_kernel(monkeypatch):
    # once_differentiable let this through: the incoming gradient of the last layer needs none.
    machine, x = make_forest([8, 5], seed=1), make_rows(20, 3).requires_grad_()
    found = []
    for is_plain in (False, True):
        if is_plain:
            monkeypatch.setattr(dm.relax.module, "has_kernel", lambda q, V: False)
        net = stacked(machine)[:2]
        (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        slope.square().sum().backward()
        found.append([part.grad for part in net.parameters() if part.grad is not None])
        assert len(found[-1]) == 6
    for native, plain in zip(*found, strict=True):
        torch.testing.assert_close(native, plain)


@pytest.mark.parametrize("k", [1, 3])
def test_third_derivatives_of_the_kernel(k):
    machine = make_forest([4], seed=2, n_outputs=k)
    structure = SoftStructure.of(machine)
    t, V = torch.tensor(machine.t), torch.tensor(machine.V)
    z = make_rows(1, structure.n_columns, seed=1).requires_grad_()

    def curvature(function):
        out = function(structure, z, t, torch.ones_like(t), V).square().sum()
        (first,) = torch.autograd.grad(out, z, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), z, create_graph=True)
        return torch.autograd.grad(second.square().sum(), z)[0]

    torch.testing.assert_close(curvature(soft_tree_sum_native), curvature(soft_tree_sum_plain))


def test_an_input_made_from_another_gets_its_own_gradient_alone():
    machine = make_forest([4], seed=2)
    structure = SoftStructure.of(machine)
    t = torch.tensor(machine.t, requires_grad=True)
    V = torch.tensor(machine.V)
    z = (t[:1] * torch.ones(2, structure.n_columns).double()).sin()  # depends on t, too

    def slope(function):
        out = function(structure, z, t, torch.ones_like(t), V).sum()
        (first,) = torch.autograd.grad(out, t, create_graph=True)
        return [first, *torch.autograd.grad(first.square().sum(), t, retain_graph=True)]

    native, plain = slope(soft_tree_sum_native), slope(soft_tree_sum_plain)
    for ours, theirs in zip(native, plain, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_plain_form_is_the_kernel_on_missing_infinite_and_hard_tests():
    machine = make_forest([8, 1, 5], seed=3)
    structure = SoftStructure.of(machine)
    rng = np.random.default_rng(0)
    special = rng.choice([np.nan, np.inf, -np.inf, 1e308, 0.3], size=(60, structure.n_columns))
    t = torch.tensor(machine.t)
    t[::4] = torch.tensor([np.inf, -np.inf, 0.3]).repeat(9)[: len(t[::4])].double()
    slope = torch.where(torch.arange(len(t)) % 3 == 0, torch.inf, 2.0).double()
    inputs = [
        part.requires_grad_()
        for part in (torch.from_numpy(special), t, slope, torch.tensor(machine.V))
    ]
    found = []
    for function in (soft_tree_sum_native, soft_tree_sum_plain):
        out = function(structure, *inputs)
        found.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    for native, plain in zip(*found, strict=True):
        assert torch.isfinite(plain).all()
        torch.testing.assert_close(native, plain)


def test_a_second_derivative_of_skipped_paths_is_refused():
    machine = make_forest([8], seed=1)
    structure = SoftStructure.of(machine)
    t = torch.tensor(machine.t)
    z = make_rows(4, structure.n_columns).requires_grad_()
    out = soft_tree_sum_native(
        structure, z, t, torch.ones_like(t), torch.tensor(machine.V), skip=0.1
    )
    with pytest.raises(dm.InputError, match="second derivative"):
        torch.autograd.grad(out.sum(), z, create_graph=True)
