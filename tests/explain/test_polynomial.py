"""Forests as polynomials of step functions: the same margins, monomials merged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from strategies import machines, make_machine, margins_of, probe_rows

import decision_machines as dm


@given(machines(max_trees=4, max_leaves=10, values="whole"))
def test_the_polynomial_is_the_margin_where_sums_are_exact(machine):
    X = probe_rows(machine, max_rows=40)
    found = machine.polynomial().margin(X)
    np.testing.assert_array_equal(found, margins_of(machine, X).astype(np.float64))


@given(machines(max_trees=3, max_leaves=8, values="real"))
def test_the_polynomial_is_the_margin_within_rounding(machine):
    X = probe_rows(machine, max_rows=20)
    p = machine.polynomial()
    eps = float(max(np.finfo(machine.output.dtype).eps, np.finfo(float).eps))
    largest = np.abs(p.coefficients).sum() + np.abs(machine.output.base).sum() + 1
    np.testing.assert_allclose(p.margin(X), machine.margin(X), rtol=0, atol=64 * eps * largest)


def test_every_step_is_a_right_side_and_every_monomial_is_there_once():
    machine = dm.figure_one()
    p = machine.polynomial()
    assert len(set(p.monomials)) == len(p)
    assert len(p.steps) == 5
    assert p.sizes() | {"products": 0} == {
        "trees": 1,
        "leaves": 6,
        "tests": 5,
        "products": 0,
        "monomials": 11,
        "steps": 5,
        "degree": 3,
    }
    assert p.degree == 3


def test_trees_that_share_a_product_share_a_monomial():
    one = dm.figure_one()
    twice = dm.direct_sum([one, one], [1.0, 2.0])
    p, q = one.polynomial(), twice.polynomial()
    assert len(p) == len(q)
    assert q.products == 2 * p.products
    np.testing.assert_array_equal(q.coefficients, 3 * p.coefficients)
    assert len(dm.direct_sum([one, one], [1.0, -1.0]).polynomial()) == 0


def test_a_feature_tested_twice_is_one_step_in_a_monomial():
    for monomial in dm.figure_one().polynomial().monomials:
        features = [feature for feature, _ in monomial]
        assert len(set(features)) == len(features)


def test_a_boosted_model_is_its_polynomial():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0).fit(X, y)
    p = dm.convert(model).polynomial()
    np.testing.assert_allclose(p.margin(X)[:, 0], model.predict(X), rtol=1e-12)
    assert p.sizes()["monomials"] < p.products
    assert str(p).count("\n") == 21


def test_a_polynomial_too_large_is_refused_before_it_is_made():
    machine = make_machine([12], np.random.default_rng(0), n_features=5, rules=False)
    with pytest.raises(dm.UnsupportedModelError, match=r"more than 3[\s\S]*What to do"):
        machine.polynomial(max_products=3)
    with pytest.raises(dm.InputError, match="What to do"):
        machine.polynomial(max_products=0)


def test_what_is_no_sum_of_constant_leaves_is_refused():
    machine = make_machine([4, 3], np.random.default_rng(0), rules=False)
    with pytest.raises(dm.UnsupportedModelError, match="What to do"):
        replace(machine, output=replace(machine.output, aggregate="max")).polynomial()
    oblique = make_machine([4], np.random.default_rng(0), rules=False, oblique=True)
    with pytest.raises(dm.UnsupportedModelError, match="oblique"):
        oblique.polynomial()
