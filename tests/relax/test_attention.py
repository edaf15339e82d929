"""Trees as heads: torch's own attention, projections, masks."""

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows
from torch.nn.functional import scaled_dot_product_attention

import decision_machines as dm
from decision_machines.relax.attention import MultiHeadMachine, dot_product_attention


@pytest.mark.parametrize("tau", [5**0.5, 1.0, 0.1])
def test_a_tree_is_torch_s_scaled_dot_product_attention(tau):
    machine, X = dm.figure_one(), make_rows(20) * 3
    Q = X @ torch.from_numpy(machine.S.toarray()).T - torch.tensor(machine.t)
    K, V = torch.from_numpy(machine.B.toarray()).double(), torch.tensor(machine.V)
    theirs = scaled_dot_product_attention(Q, K, V, scale=1 / tau)
    torch.testing.assert_close(machine.soften("softmax", tau=tau)(X), theirs)
    torch.testing.assert_close(dot_product_attention(Q, K, V, tau)[0], theirs)


def test_at_the_square_root_of_the_tests_it_is_torch_s_default():
    machine, X = dm.figure_one(), make_rows(20)
    Q = X @ torch.from_numpy(machine.S.toarray()).T - torch.tensor(machine.t)
    K, V = torch.from_numpy(machine.B.toarray()).double(), torch.tensor(machine.V)
    ours = machine.soften("softmax", tau=machine.n_tests**0.5)(X)
    torch.testing.assert_close(ours, scaled_dot_product_attention(Q, K, V))


def test_a_forest_is_torch_s_attention_with_a_head_for_each_tree():
    machine, X = make_forest([5, 5, 5], seed=2), make_rows(8)
    Q = X[:, torch.from_numpy(machine.selection.astype(np.int64))] - torch.tensor(machine.t)
    Q = Q.reshape(8, 3, 4).transpose(0, 1)
    K = torch.stack([torch.tensor(machine.templates(i).toarray()) for i in range(3)]).double()
    V = torch.tensor(machine.V).reshape(3, 5, -1)
    heads = scaled_dot_product_attention(Q[None], K[None], V[None], scale=1.0)[0]
    torch.testing.assert_close(machine.soften("softmax")(X), heads.sum(0))


@pytest.mark.parametrize("narrow", [False, True])
def test_multi_head_starts_as_softmax(narrow):
    machine, X = make_forest([7, 1, 12], seed=3, narrow=narrow), make_rows(10)
    net, plain = machine.soften("multi_head", tau=0.3), machine.soften("softmax", tau=0.3)
    assert isinstance(net, MultiHeadMachine)
    for ours, theirs in zip(net(X, True), plain(X, True), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_multi_head_is_torch_s_multihead_attention():
    machine, X = make_forest([5, 5], seed=4, n_outputs=4), make_rows(6)
    net = machine.soften("multi_head", learn=("W_Q", "W_K", "W_V", "W_O"))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for W in (net.W_Q, net.W_K, net.W_V, net.W_O):
            W.copy_(torch.randn(W.shape, generator=generator, dtype=W.dtype))
    q = X[:, torch.from_numpy(machine.selection.astype(np.int64))] - torch.tensor(machine.t)
    concat = []
    for i in range(2):
        K = torch.tensor(machine.templates(i).toarray()).double()
        V = torch.tensor(machine.V)[machine.trees.leaves(i)]
        concat.append(
            scaled_dot_product_attention(
                q[:, machine.trees.tests(i)] @ net.W_Q[i], K @ net.W_K[i], V @ net.W_V[i], scale=1.0
            )
        )
    torch.testing.assert_close(net(X), torch.cat(concat, -1) @ net.W_O)


@pytest.mark.parametrize(
    "form", ["softmax", "soft_tree", "linear", "multi_head", "relu", "entmax15"]
)
def test_masked_heads_add_nothing_and_learn_nothing(form):
    machine, X = make_forest([7, 1, 12], seed=3), make_rows(10)
    net = machine.soften(form, tau=0.5, mask=[0, -1])
    rest = machine.mask([0, 2]).soften(form, tau=0.5)
    torch.testing.assert_close(net(X), rest(X))
    net(X).sum().backward()
    assert torch.all(net.leaves.V.grad[: machine.trees.leaf_start[1]] == 0)
    assert np.array_equal(net.harden().margin(X.numpy()), machine.mask([0, 2]).margin(X.numpy()))
    torch.testing.assert_close(net.mask([])(X), machine.soften(form, tau=0.5)(X))


def test_values_and_outputs_of_heads_harden_into_V():
    machine, X = make_forest([7, 1, 12], seed=3), make_rows(10)
    net = machine.soften("multi_head", learn=("W_V", "W_O"))
    assert net.harden().equals(machine)
    with torch.no_grad():
        net.W_V.mul_(2.0)
        net.W_O.mul_(0.5).neg_()
    hard = net.harden()
    np.testing.assert_allclose(hard.margin(X.numpy()), -machine.margin(X.numpy()), atol=1e-12)


def test_projected_queries_do_not_harden():
    net = make_forest([7, 3]).soften("multi_head", learn=("W_Q",))
    with torch.no_grad():
        net.W_Q.add_(0.1)
    with pytest.raises(dm.InputError, match="mixes others"):
        net.harden()
