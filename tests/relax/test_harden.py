"""From a module back to a machine, and how far the two agree."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from relax_forests import make_forest, make_rows
from strategies import machines

import decision_machines as dm
from decision_machines.relax.forms import FORMS


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=12)
@given(machine=machines(max_trees=3, max_leaves=8))
def test_an_untrained_module_hardens_to_its_machine(form, machine):
    assert machine.soften(form).harden().equals(machine)
    assert machine.soften(form, dtype=torch.float64).harden().equals(machine)


@given(machine=machines(max_trees=3, max_leaves=8, oblique=True))
def test_an_oblique_machine_hardens_to_itself(machine):
    hard = machine.soften("soft_tree").harden()
    assert hard.is_oblique == machine.is_oblique
    if machine.n_tests:
        assert np.array_equal(hard.S.toarray(), machine.S.toarray())
    assert np.array_equal(hard.t, machine.t)
    assert np.array_equal(hard.V, machine.V)


def trained(machine, form="soft_tree", steps=15, **options):
    net = machine.soften(form, **options)
    X = make_rows(200)
    target = torch.stack([X[:, 0] * X[:, 1], X[:, 2].abs()], 1)
    optimiser = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.05)
    for _ in range(steps):
        optimiser.zero_grad()
        (net(X) - target).square().mean().backward()
        optimiser.step()
    return net, X


def test_straight_through_answers_as_its_hardened_machine_after_training():
    machine = make_forest([8, 8], seed=1)
    net, X = trained(machine, "straight_through", tau=0.3)
    hard = net.harden()
    assert not np.array_equal(hard.t, machine.t)
    assert np.array_equal(net(X).detach().numpy(), hard.margin(X.numpy()))
    report = net.agreement(X)
    assert (report.leaves, report.margin_max, report.exit_weight) == (1.0, 0.0, 1.0)


def test_soft_trees_agree_with_their_hardened_machine_as_tau_falls():
    net, X = trained(make_forest([8, 8], seed=1), tau=0.5)
    reports = []
    for tau in (1.0, 0.1, 1e-5):
        net.tau = tau
        reports.append(net.agreement(X))
    gaps = [report.margin_mean for report in reports]
    assert gaps[0] > gaps[1] > gaps[2]
    assert reports[2].leaves == 1.0
    assert reports[2].margin_max < 1e-6
    assert "agree on 100.00% of the leaves" in str(reports[2])


def test_learned_oblique_tests_harden_to_an_oblique_machine():
    net, X = trained(
        make_forest([8, 8], seed=1), selection="oblique", learn=("S", "t", "V"), tau=0.5
    )
    hard = net.harden()
    assert hard.is_oblique
    assert sp.issparse(hard.selection)
    np.testing.assert_allclose(hard.S.toarray(), net.selection.S.detach())
    net.tau = 1e-7
    assert net.agreement(X, hard).leaves == 1.0
    assert np.array_equal(hard.apply(X.numpy()), hard.apply(X.numpy(), engine="reference"))


def test_learned_sparse_tests_harden_with_their_weights_or_one_column_each():
    machine = make_forest([8, 8], seed=1)
    net, X = trained(machine, selection="sparse", learn=("S", "t", "V"), tau=0.5)
    hard = net.harden()
    assert hard.is_oblique
    np.testing.assert_allclose(hard.S.sum(1), 1.0)
    net.tau = 1e-7
    assert net.agreement(X, hard).leaves == 1.0
    plain = net.harden(axis_aligned=True)
    assert not plain.is_oblique
    assert np.array_equal(plain.selection, net.selection.S.argmax(1))
    assert 0 < net.agreement(X, plain).leaves <= 1


def test_learned_hard_tests_harden_to_one_column_each():
    net, X = trained(
        make_forest([8, 8], seed=1), "straight_through", selection="hard", learn=("S", "t", "V")
    )
    hard = net.harden()
    assert not hard.is_oblique
    assert np.array_equal(net(X).detach().numpy(), hard.margin(X.numpy()))


def test_oblique_weights_of_the_wrong_sign_do_not_harden_to_one_column():
    net = make_forest([8, 8], seed=1).soften("soft_tree", selection="oblique")
    with torch.no_grad():
        net.selection.S.neg_()
    with pytest.raises(dm.InputError, match="negative"):
        net.harden(axis_aligned=True)
    assert net.harden().is_oblique


def test_float32_training_of_a_float64_machine_keeps_what_it_did_not_touch():
    machine = make_forest([8, 8], seed=1)
    net = machine.soften("soft_tree", dtype=torch.float32)
    with torch.no_grad():
        net.leaves.V[0] += 1
    hard = net.harden()
    assert np.array_equal(hard.V[1:], machine.V[1:])
    assert hard.V.dtype == machine.V.dtype


def test_thresholds_are_rounded_so_that_float32_rows_go_the_same_way():
    machine = make_forest([30], seed=1)
    net = machine.soften("logical", dtype=torch.float32)
    t = net.t.detach().numpy()
    X = torch.from_numpy(np.repeat(np.concatenate([t, np.nextafter(t, 9)])[:, None], 4, axis=1))
    assert np.array_equal(
        net.margin(X).detach().numpy().astype(np.float32),
        net.harden().margin(X.numpy()).astype(np.float32),
    )


def test_classes_are_compared():
    machine = make_forest([8, 8], seed=1)
    machine = replace(
        machine,
        output=replace(machine.output, link="softmax", decision="argmax", classes=(["a", "b"],)),
    )
    report = machine.soften("soft_tree", tau=1.0).agreement(make_rows(100))
    assert 0.4 < report.answers < 1
    assert "of the classes" in str(report)
    assert machine.soften("logical").agreement(make_rows(100)).answers == 1.0


def test_linear_leaves_train_and_harden():
    machine = with_linear_leaves(make_forest([6, 1, 4], seed=1))
    X = make_rows(50)
    X[3, 0], X[5] = torch.nan, torch.nan
    for form in ("logical", "delta", "relu", "straight_through"):
        net = machine.soften(form, output="margin")
        assert np.array_equal(net(X).detach().numpy(), machine.margin(X.numpy()))
    for form in ("soft_tree", "softmax", "sparsemax"):
        net = machine.soften(form, query="relu" if form != "soft_tree" else None, tau=1e-6)
        np.testing.assert_allclose(net(X).detach(), machine.margin(X.numpy()), atol=1e-9)
        net(X).square().sum().backward()
        assert torch.isfinite(net.leaves.coefficient.grad).all()
        assert net.leaves.coefficient.grad.abs().max() > 0
        assert net.harden().equals(machine)


def with_linear_leaves(machine):
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 3, machine.n_leaves)
    linear = dm.LinearLeaves(
        intercept=rng.standard_normal(machine.V.shape),
        start=np.concatenate([[0], np.cumsum(sizes)]),
        feature=rng.integers(0, 4, sizes.sum()),
        coefficient=rng.standard_normal((sizes.sum(), machine.V.shape[1])),
    )
    return replace(machine, linear=linear)
