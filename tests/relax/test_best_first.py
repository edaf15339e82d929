"""The k best leaves, found best-first: the same as of all leaves, and only a few are opened."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from relax_forests import make_forest, make_rows
from strategies import make_machine

from decision_machines.relax.best_first import BestFirst


def of_all_leaves(net, X, k, tau):
    """Weights by scoring every leaf and sorting, in NumPy."""
    machine = net.machine
    q = (X.numpy()[:, machine.selection] - machine.t) / tau
    B = machine.B.toarray()
    if net.form.query == "relu":
        left, right = -np.maximum(q, 0), -np.maximum(-q, 0)
    else:
        left, right = -np.logaddexp(0, q), -np.logaddexp(0, -q)
    p = left @ (B < 0).T + right @ (B > 0).T
    found = np.zeros_like(p)
    for i in range(machine.n_trees):
        leaves = np.arange(machine.n_leaves)[machine.trees.leaves(i)]
        best = leaves[np.argsort(-p[:, leaves], axis=1, kind="stable")[:, :k]]
        e = np.exp(np.take_along_axis(p, best, 1))
        np.put_along_axis(found, best, e / e.sum(1, keepdims=True), 1)
    return found


@pytest.mark.parametrize("query", ["relu", "log_sigmoid"])
@settings(max_examples=25)
@given(seed=st.integers(0, 1000), k=st.sampled_from([1, 2, 5, 40]))
def test_the_k_best_leaves_are_those_of_a_search_through_all(query, seed, k):
    machine, X = make_forest([9, 1, 30, 4], seed=seed), make_rows(15, seed=seed)
    net = machine.soften("top_k", k=k, query=query, tau=0.7, output="margin")
    margin, weights = net(X, return_weights=True)
    expected = of_all_leaves(net, X, k, 0.7)
    np.testing.assert_allclose(weights.detach(), expected, atol=1e-9)
    own = expected @ machine.V
    base = machine.margin(X.numpy()) - machine.V[
        machine.apply(X.numpy()) + machine.trees.leaf_start[:-1]
    ].sum(1)
    np.testing.assert_allclose(margin.detach(), own + base, atol=1e-9)


@pytest.mark.parametrize("selection", ["fixed", "oblique"])
def test_the_search_and_the_sort_answer_and_learn_alike(selection, monkeypatch):
    machine, X = make_forest([9, 1, 30, 4], seed=1), make_rows(40)
    X[::3, 0] = torch.nan
    learn = ("t", "slope", "V", "tau") + (("S",) if selection == "oblique" else ())
    net = machine.soften("top_k", k=3, learn=learn, selection=selection)
    found = []
    for can_search in (True, False):
        monkeypatch.setattr(net, "_can_search", lambda z, can_search=can_search: can_search)
        net.zero_grad()
        answer = net(X)
        (answer * make_rows(40, 2, seed=3)).sum().backward()
        found.append([answer.detach(), *(p.grad for p in net.parameters() if p.requires_grad)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_search_opens_no_more_than_k_paths():
    machine = make_forest([512], seed=1, n_features=8)
    X = make_rows(50, n_features=8)
    net, k = machine.soften("top_k", k=4), 4
    opened = []
    terms_of = net._soft_query

    def counted(selected, *others):
        opened.append(selected.shape[-1])
        return terms_of(selected, *others)

    net._soft_query = counted
    net(X)
    rounds = sum(size == 1 for size in opened) - (opened[-1] == 1)
    assert rounds <= k * (machine.depth + 1)
    assert rounds < 512 / 4


def test_linear_leaves_narrow_outputs_masks_and_no_rows():
    from dataclasses import replace

    from decision_machines import LinearLeaves

    machine = make_forest([6, 1, 9], seed=2, n_outputs=1)
    terms = np.arange(machine.n_leaves + 1)
    linear = LinearLeaves(
        intercept=machine.V, start=terms, feature=terms[:-1] % 4, coefficient=machine.V * 0.5
    )
    X = make_rows(20)
    for one in (machine, replace(machine, linear=linear)):
        every = one.soften("top_k", k=99, output="margin").mask([0])
        soft = one.soften("softmax", query="relu", output="margin").mask([0])
        torch.testing.assert_close(every(X), soft(X))
        assert every(X[:0]).shape == (0, 1)
    narrow = make_machine(
        [5, 3, 4], np.random.default_rng(0), n_outputs=3, narrow=True, rules=False, n_features=4
    )
    torch.testing.assert_close(
        narrow.soften("top_k", k=99)(X), narrow.soften("softmax", query="relu")(X)
    )


def test_a_search_knows_the_way_back_up():
    machine = make_forest([9, 1, 4], seed=3)
    search = BestFirst(machine)
    for leaf in range(machine.n_leaves):
        path, node = {}, int(search.above[machine.n_tests + leaf])
        while node >= 0:
            path[node // 2] = 2 * (node % 2) - 1
            node = int(search.above[node // 2])
        row = machine.B[[leaf]].toarray()[0]
        assert path == {j: row[j] for j in np.flatnonzero(row)}
