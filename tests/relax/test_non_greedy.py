"""The convex-concave bound: above the loss, equal to it at wide margins, and a guide for SGD."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from relax_forests import make_forest, make_rows

from decision_machines.relax.heads import Heads
from decision_machines.relax.non_greedy import upper_bound
from decision_machines.relax.paths import Paths


def parts(seed, scale=1.0):
    machine = make_forest([6, 1, 4], seed=seed)
    X = make_rows(15, seed=seed)
    q = scale * (
        X[:, torch.from_numpy(machine.selection.astype(np.int64))] - torch.tensor(machine.t)
    )
    losses = torch.rand(15, machine.n_leaves, generator=torch.Generator().manual_seed(seed))
    exits = torch.from_numpy(machine.apply(X.numpy()) + machine.trees.leaf_start[:-1])
    paths = Paths.of(machine)
    return machine, q, losses.double(), exits, paths, Heads(machine, paths.leaf_rank)


@given(seed=st.integers(0, 500))
def test_it_bounds_the_loss_of_the_exit_leaf(seed):
    _, q, losses, exits, paths, heads = parts(seed)
    assert torch.all(upper_bound(q, losses, paths, heads) >= losses.gather(1, exits))


@given(seed=st.integers(0, 100))
def test_it_is_the_maximum_over_all_test_answers(seed):
    machine, q, losses, _, paths, heads = parts(seed)
    B = torch.from_numpy(machine.B.toarray()).double()
    of_leaf = machine.trees.of_leaf
    for tree in range(machine.n_trees):
        leaves = np.flatnonzero(of_leaf == tree)
        own = q[:, machine.trees.tests(tree)]
        K = B[leaves][:, machine.trees.tests(tree)]
        # The best answers that lead to leaf i: its template on the path, the signs of q off it.
        best = torch.where(K != 0, K * own[:, None], own.abs()[:, None]).sum(-1)
        bound = (best + losses[:, leaves]).amax(1) - own.abs().sum(1)
        ours = upper_bound(q, losses, paths, heads)[:, tree]
        torch.testing.assert_close(ours, bound)


def test_it_is_the_loss_itself_at_wide_margins():
    _, q, losses, exits, paths, heads = parts(0, scale=1e6)
    torch.testing.assert_close(upper_bound(q, losses, paths, heads), losses.gather(1, exits))


def test_its_gradient_lowers_it():
    _, q, losses, _, paths, heads = parts(1)
    q.requires_grad_()
    before = upper_bound(q, losses, paths, heads).mean()
    before.backward()
    assert upper_bound(q - 0.1 * q.grad, losses, paths, heads).mean() < before
