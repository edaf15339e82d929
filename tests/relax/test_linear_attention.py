"""Linear attention against the attention whose weights it never forms."""

import numpy as np
import pytest
import torch
from relax_forests import make_forest, make_rows
from torch.utils._python_dispatch import TorchDispatchMode

import decision_machines as dm
from decision_machines.relax.linear_attention import EPSILON, FEATURE_MAPS, LinearAttention


@pytest.mark.parametrize("feature_map", FEATURE_MAPS)
def test_it_is_the_kernel_average_of_the_values(feature_map):
    machine, X = make_forest([9, 1, 14, 2], seed=1), make_rows(12)
    net = machine.soften("linear", feature_map=feature_map, tau=0.7)
    assert isinstance(net.kernel, LinearAttention)
    phi = FEATURE_MAPS[feature_map]
    total = 0
    for tree in range(machine.n_trees):
        tests, leaves = machine.trees.tests(tree), machine.trees.leaves(tree)
        B = torch.tensor(machine.templates(tree).toarray()).double()
        selection = torch.from_numpy(machine.selection[tests].astype(np.int64))
        q = (X[:, selection] - torch.tensor(machine.t[tests])) / 0.7
        kernel = phi(q) @ phi(B).T + EPSILON
        total = total + kernel / kernel.sum(1, keepdim=True) @ torch.tensor(machine.V[leaves])
    torch.testing.assert_close(net(X), total)


@pytest.mark.parametrize("feature_map", [*FEATURE_MAPS, "random"])
@pytest.mark.parametrize("narrow", [False, True])
def test_weights_on_request_are_those_of_the_answer(feature_map, narrow):
    machine, X = make_forest([9, 1, 14, 2], seed=1, narrow=narrow), make_rows(12)
    answer, weights = machine.soften("linear", feature_map=feature_map)(X, return_weights=True)
    wide = machine.soften("linear").leaves.wide(torch.tensor(machine.V))
    torch.testing.assert_close(weights @ wide, answer)
    of_leaf = torch.from_numpy(machine.trees.of_leaf.astype(np.int64))
    sums = torch.zeros(12, machine.n_trees).double().index_add(1, of_leaf, weights.detach())
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_random_features_come_near_softmax_as_they_grow_in_number():
    machine, X = dm.figure_one(), make_rows(50)
    X = X * 0.3 + torch.tensor([1.0, 3.0, 3.0, 5.0])
    exact = machine.soften("softmax", tau=4.0)(X)

    def error(n, seed):
        net = machine.soften("linear", feature_map="random", tau=4.0, n_random=n, seed=seed)
        return (net(X) - exact).abs().mean().item()

    errors = [np.mean([error(n, seed) for seed in range(10)]) for n in (32, 512, 8192)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.4 * errors[0]


def test_a_row_costs_no_leaf_weights():
    machine = make_forest([300], seed=2, n_outputs=1, shapes=("balanced",))
    net, shapes = machine.soften("linear", output="margin"), set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            found = operation(*args, **(kwargs or {}))
            shapes.update(tuple(t.shape) for t in [found] if isinstance(t, torch.Tensor))
            return found

    with Watch():
        net(make_rows(7))
    assert (machine.n_tests, 7) in shapes
    assert not {(machine.n_leaves, 7), (7, machine.n_leaves)} & shapes
