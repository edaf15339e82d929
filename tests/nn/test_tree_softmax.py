"""`TreeSoftmax`: probabilities down a tree, drawing, the most probable class."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decision_machines.errors import InputError
from decision_machines.nn import TreeSoftmax


def head_of(k, *, n=4, **options):
    head = TreeSoftmax(n, k, dtype=torch.float64, **options)
    with torch.no_grad():
        head.W.normal_()
        head.b.normal_()
    return head


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 40), st.sampled_from(["balanced", "order", "counts"]), st.integers(0, 9))
def test_probabilities_sum_to_one_and_both_ways_agree(k, kind, seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    options = {
        "balanced": {},
        "order": {"order": rng.permutation(k)},
        "counts": {"counts": rng.integers(0, 100, k)},
    }[kind]
    head = head_of(k, **options)
    x = torch.randn(7, 4, dtype=torch.float64)
    every = head.log_prob(x)
    assert torch.allclose(every.exp().sum(-1), torch.ones(7, dtype=torch.float64))
    y = torch.randint(k, (7,))
    assert torch.allclose(head(x, y), every.gather(1, y[:, None])[:, 0])
    assert torch.equal(head.predict(x), every.argmax(-1))
    machine = head.harden()
    assert machine.n_leaves == k
    assert np.array_equal(machine.predict(x.numpy()), head.predict(x, exact=False).numpy())


def test_a_path_has_no_more_tests_than_the_logarithm():
    for k in (2, 3, 1000, 1025):
        assert TreeSoftmax(3, k).depth == int(np.ceil(np.log2(k)))


def test_counts_give_the_shortest_mean_path():
    counts = np.array([100, 1, 1, 1, 50, 2, 2, 30])
    lengths = (TreeSoftmax(2, 8, counts=counts).side != 0).sum(1).numpy()
    share = counts / counts.sum()
    entropy = -(share * np.log2(share)).sum()
    assert entropy <= (lengths * share).sum() < entropy + 1
    assert (lengths * share).sum() < 3


def test_draws_follow_the_probabilities_and_the_seed():
    head, x = head_of(6), torch.randn(1, 4, dtype=torch.float64).expand(20000, 4)
    drawn = head.sample(x, generator=torch.Generator().manual_seed(1))
    share = torch.bincount(drawn, minlength=6) / 20000
    assert torch.allclose(share.double(), head.log_prob(x[:1])[0].exp(), atol=0.02)
    assert torch.equal(drawn, head.sample(x, generator=torch.Generator().manual_seed(1)))


def test_gradients_are_those_of_finite_differences_and_stay_on_the_path():
    head, x = head_of(9), torch.randn(1, 4, dtype=torch.float64)
    (-head(x, torch.tensor([3]))).sum().backward()
    touched = (head.W.grad.abs().sum(1) > 0).nonzero()[:, 0]
    assert set(touched.tolist()) == set(head.path[3][head.side[3] != 0].tolist())
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: head(x, torch.tensor([5])), (x,))


def test_training_learns_many_classes():
    k = 64
    y = torch.arange(k).repeat(5)
    x = (y[:, None] >> torch.arange(6) & 1) * 2.0 - 1 + 0.1 * torch.randn(len(y), 6)
    head = TreeSoftmax(6, k)
    optimiser = torch.optim.Adam(head.parameters(), 0.3)
    for _ in range(60):
        loss = -head(x, y).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (head.predict(x[::5]) == y[::5]).float().mean() > 0.95
    assert loss < 0.1 * np.log(k)


def test_copies_answer_alike_and_rubbish_is_named():
    head, x = head_of(9), torch.randn(3, 2, 4, dtype=torch.float64)
    assert head(x).shape == (3, 2, 9)
    assert head.predict(x).shape == (3, 2)
    assert torch.equal(copy.deepcopy(head)(x), head(x))
    for call, words in (
        (lambda: TreeSoftmax(4, 1), "n_classes=1"),
        (lambda: TreeSoftmax(4, 3, order=[0, 0, 1]), "once"),
        (lambda: TreeSoftmax(4, 3, counts=[1, 2]), "counts"),
        (lambda: TreeSoftmax(4, 3, counts=[1, 2, 3], order=[0, 1, 2]), "one of them"),
        (lambda: head(x[0], torch.tensor([0, 9])), "from 0 to 9"),
        (lambda: head(x[0], torch.tensor([0.0, 1.0])), "class numbers"),
    ):
        with pytest.raises(InputError, match=words):
            call()
