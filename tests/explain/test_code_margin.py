"""Flips that change an answer, counted by trying all of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from all_inputs import every_input
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import machines

import decision_machines as dm
from decision_machines.run.engines import reference


def codes(machine, X):
    """(m, J) answers of all tests to rows, by the paper's equation."""
    z = machine.columns.read(np.asarray(X))
    parts = [reference.test_results(machine, z, tree) for tree in range(machine.n_trees)]
    return np.concatenate([np.empty((len(X), 0)), *parts], axis=1)


def answer_of_code(machine, h):
    """The prediction where the tests answer h, whether or not an input does so."""
    margins = np.zeros((1, machine.n_outputs))
    total = margins + (machine.output.base if machine.output.base_first else 0)
    for tree in range(machine.n_trees):
        tests = machine.trees.tests(tree)
        p = reference.similarities(machine, h[None, tests], tree)
        leaf = int(reference.exit_leaf(p)[0]) + machine.trees.leaves(tree).start
        total = total + machine.V[leaf]
    total = total / machine.output.divisor * machine.output.scale
    if not machine.output.base_first:
        total = total + machine.output.base
    return machine.decide(total)[0]


WHOLE = {"values": "whole", "n_features": 3, "rules": False, "narrow": False}


@settings(max_examples=40)
@given(machines(min_trees=1, max_trees=3, max_leaves=4, n_outputs=1, **WHOLE), st.integers(0, 99))
def test_flips_are_the_fewest_of_all_codes_with_another_answer(machine, seed):
    x = np.round(2 * np.random.default_rng(seed).standard_normal(3), 1)
    h = codes(machine, x[None])[0]
    before = machine.predict(x[None])[0]
    fewest = np.inf
    for flipped in itertools.product([1, -1], repeat=machine.n_tests):
        if answer_of_code(machine, h * flipped) != before:
            fewest = min(fewest, flipped.count(-1))
    assert machine.code_margin(x).flips == fewest


@settings(max_examples=40)
@given(machines(min_trees=1, max_trees=1, max_leaves=6, n_outputs=1, **WHOLE), st.integers(0, 99))
def test_one_tree_counts_among_codes_that_inputs_have(machine, seed):
    x = np.round(2 * np.random.default_rng(seed).standard_normal(3), 1)
    X = every_input(machine)
    differs = machine.predict(X) != machine.predict(x[None])[0]
    found = machine.code_margin(x)
    h, own = codes(machine, X), codes(machine, x[None])
    flips = np.count_nonzero(h != own, axis=1)
    B = machine.B.toarray()[machine.apply(X)[:, 0]]
    on_path = np.count_nonzero((h != own) & (B != 0), axis=1)
    assert found.whole == (flips[differs].min() if differs.any() else np.inf)
    assert found.reachable == (on_path[differs].min() if differs.any() else np.inf)
    assert found.flips <= found.reachable <= found.whole
    if found.row is not None:
        assert machine.predict(found.row[None])[0] != found.before
        assert np.count_nonzero(codes(machine, found.row[None]) != own) == found.whole


def test_a_vote_that_ties_goes_to_the_first_class_and_is_no_flip():
    one = dm.figure_one().tree(0)
    V = np.array([[1.0, 0.0], [0.0, 1.0]])
    stump = replace(
        one.subtree(2),
        V=V,
        output=dm.Output(np.zeros(2), decision="argmax", classes=(np.array([0, 1]),)),
    )
    pair = dm.direct_sum([stump, stump])
    x = [0.0, 0.0, 0.0, 0.0]
    assert pair.predict([x]) == [0]
    assert pair.code_margin(x).flips == 2
    assert pair.code_margin([0.0, 0.0, 9.0, 0.0]).flips == 1
