"""Soft single trees: what is trained is what answers, softly and hard."""

from __future__ import annotations

import numpy as np
import pytest

from decision_machines.errors import InputError

torch = pytest.importorskip("torch")

from decision_machines.train.soft.descent import RECIPES, SoftTrees  # noqa: E402
from decision_machines.train.soft.tree import SoftEffort, soft_tree  # noqa: E402

BRIEF = SoftEffort(50, 100, 20, RECIPES[1:3], n_second=1, n_taught=0)
LONGER = SoftEffort(100, 400, 50, RECIPES[1:3], n_second=2, n_taught=1)


def moons(m: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    turn, y = rng.uniform(0, np.pi, size=m), rng.integers(0, 2, size=m)
    X = np.c_[np.cos(turn), np.sin(turn)] * np.where(y == 0, 1, -1)[:, None]
    return X + y[:, None] * [1.0, 0.3] + 0.1 * rng.normal(size=(m, 2)), y


def tree(X, y, **options):
    options = {"n_classes": 2, "depth": 3, "effort": BRIEF} | options
    return soft_tree(X, y, verbose=False, n_threads=1, **options)


def asked(fit, X):
    with torch.no_grad():
        return fit.soft(torch.from_numpy(np.asarray(X, float))).numpy()


def test_soft_and_hard_answers_are_right_and_near_each_other():
    X, y = moons(500)
    X_test, y_test = moons(500, seed=1)
    fit = tree(X, y, effort=LONGER)
    assert np.mean(asked(fit, X_test).argmax(1) == y_test) > 0.95
    assert np.mean(fit.machine.predict(X_test) == y_test) > 0.95
    assert fit.machine.predict_proba(X_test).sum(1) == pytest.approx(1.0)


def test_the_module_answers_what_was_trained():
    X, y = moons(200)
    trees = SoftTrees.start(2, 2, 3, RECIPES[:1], is_classifier=True, seed=0)
    effort = SoftEffort(30, 0, 0, RECIPES[:1], n_second=1)
    fit = tree(X, y, effort=effort, validation=(X, y))
    from decision_machines.train.scaling import Scaling

    Z = torch.from_numpy(Scaling.of(X)(X)).float()
    target = torch.from_numpy(np.eye(2)[y].T).float()
    trees.train(Z, target, torch.ones(len(y)), n_steps=30, seed=2)
    np.testing.assert_allclose(asked(fit, X), trees.answers(Z)[0].T, atol=1e-4)


def test_regression_is_learned_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(500, 2))
    y = 1e6 * (np.sin(2 * X[:, 0]) + X[:, 1]) + 3e6
    fit = tree(X, y, n_classes=None, depth=4, effort=LONGER)
    assert np.mean((asked(fit, X).reshape(-1) - y) ** 2) < 0.1 * y.var()
    assert np.mean((fit.machine.predict(X) - y) ** 2) < 0.5 * y.var()


def test_several_targets_are_learned_by_one_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.c_[X[:, 0], 10 * X[:, 1]]
    fit = tree(X, y, n_classes=None, depth=4, effort=LONGER)
    assert fit.machine.predict(X).shape == y.shape
    assert np.all(((asked(fit, X) - y) ** 2).mean(0) < 0.3 * y.var(0))


def test_the_same_seed_gives_the_same_tree():
    X, y = moons(100)
    first, again = tree(X, y, seed=4), tree(X, y, seed=4)
    assert first.machine.equals(again.machine)
    np.testing.assert_array_equal(asked(first, X), asked(again, X))


def test_units_of_the_features_do_not_matter():
    X, y = moons(300)
    scale = np.array([1e-30, 1e30])
    plain, turned = tree(X, y), tree(X * scale, y)
    np.testing.assert_allclose(asked(turned, X * scale), asked(plain, X), atol=1e-3)
    assert np.mean(turned.machine.predict(X * scale) == plain.machine.predict(X)) > 0.99


def test_a_weight_of_0_is_a_row_left_out():
    X, y = moons(200)
    weight = (np.arange(200) % 3 != 0).astype(float)
    wrong = np.where(weight > 0, y, 1 - y)
    valid, kept = moons(60, seed=1), weight > 0
    weighted = tree(X, wrong, sample_weight=weight, validation=valid)
    without = tree(X[kept], y[kept], validation=valid)
    np.testing.assert_allclose(asked(weighted, X), asked(without, X), atol=1e-6)


def test_holes_are_answered():
    rng = np.random.default_rng(0)
    X, y = moons(300)
    X[rng.random(X.shape) < 0.2] = np.nan
    fit = tree(X, y)
    assert np.isfinite(asked(fit, X)).all()
    assert np.mean(fit.machine.predict(X) == y) > 0.7


@pytest.mark.parametrize(
    ("X", "y", "n_classes"),
    [
        (np.ones((30, 2)), np.arange(30) % 2, 2),
        (np.arange(30.0)[:, None], np.zeros(30, int), 3),
        (np.array([[0.0], [1.0]]), np.array([0, 1]), 2),
        (np.arange(30.0)[:, None], np.full(30, 5.0), None),
        (np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0.0, 1.0], 20), None),
    ],
    ids=["constant features", "one class", "two rows", "constant target", "duplicates"],
)
def test_rubbish_gives_a_tree_all_the_same(X, y, n_classes):
    fit = tree(X, y, n_classes=n_classes)
    assert np.isfinite(asked(fit, X)).all()
    assert len(fit.machine.predict(X)) == len(X)


def test_soft_hardens_to_the_tests_of_the_machine():
    X, y = moons(200)
    fit = tree(X, y)
    np.testing.assert_array_equal(fit.soft.harden().apply(X), fit.machine.apply(X))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depth": 0}, "depth=0"),
        ({"depth": 40}, "depth=40"),
        ({"n_classes": 0}, "n_classes=0"),
        ({"X": np.array([[np.inf], [0.0]])}, "is inf"),
        ({"y": np.array([0, 5])}, "codes from 0 to 5"),
        ({"sample_weight": np.zeros(2)}, "weight 0"),
        ({"validation": (np.zeros((2, 3)), np.zeros(2, int))}, "3 features"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_words(change, words):
    arguments = {"X": np.array([[0.0], [1.0]]), "y": np.array([0, 1])} | change
    with pytest.raises(InputError, match=words):
        tree(arguments.pop("X"), arguments.pop("y"), **arguments)
