"""Path sums against the dense product with B, and the soft tree as a product of gates."""

import numpy as np
import pytest
import torch
from hypothesis import given
from relax_forests import make_forest, make_rows
from strategies import machines

import decision_machines as dm
from decision_machines.relax import soft_tree
from decision_machines.relax.heads import Heads
from decision_machines.relax.paths import Paths
from decision_machines.relax.soft_tree import soft_tree_sum
from decision_machines.relax.soft_tree_plain import soft_tree_weights


def dense_sums(machine, left, right):
    B = machine.B.toarray()
    return (B < 0).astype(float) @ left + (B > 0).astype(float) @ right


@given(machine=machines(max_trees=5, max_leaves=20))
def test_path_sums_are_the_dense_product(machine):
    paths, rng = Paths.of(machine), np.random.default_rng(0)
    left, right = rng.standard_normal((2, machine.n_tests, 3))
    order = paths.test_order
    ours = paths.sums(torch.from_numpy(left)[order], torch.from_numpy(right)[order])
    dense = dense_sums(machine, left, right)
    np.testing.assert_allclose(ours[paths.leaf_rank].numpy(), dense, atol=1e-12)


@given(machine=machines(max_trees=5, max_leaves=20, min_trees=1))
def test_soft_tree_weights_are_products_of_gates_and_sum_to_one_in_each_tree(machine):
    paths = Paths.of(machine)
    q = torch.from_numpy(np.random.default_rng(0).standard_normal((machine.n_tests, 4)))
    weights = soft_tree_weights(q[paths.test_order], paths)[paths.leaf_rank].numpy()
    gates = 1 / (1 + np.exp(-q.numpy()))
    with np.errstate(divide="ignore"):
        dense = np.exp(dense_sums(machine, np.log(1 - gates), np.log(gates)))
    np.testing.assert_allclose(weights, dense, atol=1e-12)
    of_leaf = machine.trees.of_leaf
    for tree in range(machine.n_trees):
        np.testing.assert_allclose(weights[of_leaf == tree].sum(0), 1.0)


def test_soft_tree_sum_is_weights_times_values():
    machine = make_forest([5, 1, 9], seed=4)
    paths, V = Paths.of(machine), torch.tensor(machine.V)
    q = make_rows(7, machine.n_tests)
    weights = soft_tree_weights(q.t()[paths.test_order], paths)[paths.leaf_rank]
    torch.testing.assert_close(soft_tree_sum(q, paths, V), weights.t() @ V)


def test_levels_hold_every_test_and_leaf_once():
    machine = make_forest([1, 40, 3, 1, 17], seed=5)
    paths = Paths.of(machine)
    assert sorted(paths.test_order.tolist()) == list(range(machine.n_tests))
    assert sorted(paths.leaf_order.tolist()) == list(range(machine.n_leaves))
    assert sum(n for n, _, _ in paths.levels) == machine.n_tests


def test_memory_is_linear_in_the_leaves_however_ragged_the_forest():
    machine = make_forest([4000, *[2] * 300, *[33] * 20], seed=6)
    heads = Heads(machine, Paths.of(machine).leaf_rank)
    held = sum(n_trees * width for n_trees, width, _ in heads.shapes)
    assert held <= 2 * machine.n_leaves
    weights = machine.soften("softmax", query="relu", dtype=torch.float32)(
        make_rows(2), return_weights="sparse"
    )[1]
    assert weights.is_sparse
    assert weights.shape == (2, machine.n_leaves)


@pytest.mark.parametrize("form", ["soft_tree", "softmax", "relu", "linear"])
def test_a_forest_too_large_for_its_template_matrix_is_softened(form):
    machine = make_forest([20_000] * 3, seed=7, n_outputs=1, shapes=("random", "balanced"))
    assert machine.n_leaves * machine.n_tests > 3e9  # bytes of a dense B
    net = machine.soften(form, output="margin", dtype=torch.float32)
    net(make_rows(4)).sum().backward()
    assert torch.isfinite(net.leaves.V.grad).all()


def test_weights_are_cut_into_trees():
    machine = make_forest([3, 1, 4])
    net = machine.soften("softmax")
    parts = net.by_tree(net(make_rows(5), return_weights=True)[1])
    assert [part.shape for part in parts] == [(5, 3), (5, 1), (5, 4)]
    for part in parts:
        torch.testing.assert_close(part.sum(-1), torch.ones(5).double())
    assert isinstance(machine, dm.DecisionMachine)


def test_the_fused_kernel_is_asked_only_where_it_can_answer(monkeypatch):
    asked = []

    def from_columns(structure, z, t, slope, V, nudge):
        asked.append("from columns")
        return z.new_zeros((len(z), 2)) + V.sum() * 0 + t.sum() * 0

    def from_q(q, paths, V):
        asked.append("from q")
        return q.new_zeros((len(q), 2))

    monkeypatch.setattr(dm.relax.module, "soft_tree_sum_native", from_columns)
    monkeypatch.setattr(soft_tree.native_soft, "soft_tree_sum", from_q)
    machine, X = make_forest([5, 1, 9], seed=1), make_rows(8)
    net = machine.soften("soft_tree")
    net(X)
    machine.soften("straight_through")(X)
    assert asked == ["from columns"] * 2
    machine.soften("soft_tree", selection="oblique")(X)
    assert asked[2:] == ["from q"]
    net(X, return_weights=True)
    torch.func.vmap(net)(X)
    torch.export.export(net, (X,))
    with torch.autocast("cpu", torch.bfloat16):
        net(X)
    net.to("meta")(X.to("meta"))
    net.to(torch.bfloat16)
    assert len(asked) == 3


def test_the_soft_tree_is_the_same_through_any_kernel():
    machine, X = make_forest([5, 1, 9], seed=1, narrow=True), make_rows(30)
    X[3, 0], X[4] = torch.nan, 1e30
    net = machine.soften("soft_tree", tau=0.3, learn=("t", "slope", "V", "tau"))
    found = []
    for run in (lambda: net(X), lambda: net(X, return_weights=True)[0]):
        net.zero_grad()
        answer = run()
        answer.square().sum().backward()
        found.append([answer.detach(), *(p.grad.clone() for p in net.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_plain_soft_tree_is_the_kernel_s_oracle():
    machine = make_forest([5, 1, 9], seed=1)
    paths, q = Paths.of(machine), make_rows(4, machine.n_tests).requires_grad_()
    V = torch.tensor(machine.V).requires_grad_()

    def plain(q, V):
        return soft_tree.soft_tree_sum_by_level(q.t().index_select(0, paths.test_order), paths, V)

    assert torch.autograd.gradcheck(plain, (q, V))
    side = make_rows(4, 2, seed=1)
    found = [torch.autograd.grad((f(q, V) * side).sum(), (q, V)) for f in (plain, _fused(paths))]
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def _fused(paths):
    return lambda q, V: soft_tree_sum(q, paths, V)
