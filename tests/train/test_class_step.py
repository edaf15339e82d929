"""The native training step of soft trees that classify: its gradient, and what Adam makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from decision_machines import _native  # noqa: E402
from decision_machines.train.complete import CompleteTrees  # noqa: E402
from decision_machines.train.oblique.descent import LEAST, ClassDescent  # noqa: E402
from decision_machines.train.oblique.recipes import RECIPES  # noqa: E402
from decision_machines.train.oblique.soft_batch import SoftBatch  # noqa: E402

TARGETS = _native.targets()
every_target = pytest.mark.parametrize("native", TARGETS)


class Task:
    """Random trees and rows; some rows have no weight, targets are soft."""

    def __init__(self, depth, n, K, m, R, seed=0, n_more=3):
        rng = np.random.default_rng(seed)
        self.depth, self.n, self.K, self.R = depth, n, K, R
        self.J, self.L = 2**depth - 1, 2**depth
        self.W = (rng.normal(size=(R, self.J, n + 1)) / np.sqrt(n)).astype(np.float32)
        self.V = rng.normal(size=(R, self.L, K)).astype(np.float32)
        self.beta = rng.uniform(0.3, 3, R).astype(np.float32)
        self.X = rng.normal(size=(m + n_more, n)).astype(np.float32)
        weight = rng.uniform(0.5, 1.5, (m + n_more, 1)) * (rng.random((m + n_more, 1)) > 0.2)
        self.target = (rng.dirichlet(np.ones(K), m + n_more) * weight).astype(np.float32)
        self.rows = rng.permutation(m + n_more)[:m]

    def gradient(self, native, which=slice(None), trees=None):
        """Loss, gradient of W and of V; of some trees only."""
        W, V, beta = self.W[which], self.V[which], self.beta[which]
        trees = trees or _native.ClassTrees(native, len(W), self.depth, self.n, self.K)
        found = np.full(W.size + V.size, np.nan, np.float32)
        loss = trees.gradient(self.X, self.target, self.rows, beta, LEAST, np.append(W, V), found)
        return loss, found[: W.size].reshape(W.shape), found[W.size :].reshape(V.shape)

    def autograd(self):
        """The same in double precision."""
        trees = CompleteTrees(self.n, self.depth, self.R, dtype=torch.float64)
        W, V = (torch.tensor(part, dtype=torch.float64) for part in (self.W, self.V))
        V.requires_grad_()
        with torch.no_grad():
            trees.W.copy_(W[:, :, :-1])
            trees.t.copy_(-W[:, :, -1])
        X, target = (torch.tensor(part[self.rows]).double() for part in (self.X, self.target))
        p = trees.weights(X, torch.tensor(self.beta).double())
        answer = torch.bmm(V.softmax(-1).transpose(1, 2), p)
        losses = -((answer + LEAST).log() * target.t()).sum(1).mean(1)
        losses.sum().backward()
        dW = torch.cat([trees.W.grad, -trees.t.grad[:, :, None]], -1)
        return float(losses.detach().mean()), dW.numpy(), V.grad.numpy()


def assert_near(found, exact):
    size = np.abs(exact).max()
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=2e-6 * max(1.0, size))


@every_target
@settings(deadline=None, max_examples=25)
@given(
    depth=st.integers(1, 6),
    n=st.integers(1, 40),
    K=st.integers(1, 7),
    m=st.integers(1, 100),
    R=st.integers(1, 5),
    seed=st.integers(0, 2**16),
)
def test_the_gradient_is_that_of_autograd(native, depth, n, K, m, R, seed):
    task = Task(depth, n, K, m, R, seed)
    for found, exact in zip(task.gradient(native), task.autograd(), strict=True):
        assert_near(found, exact)


@every_target
@pytest.mark.parametrize("sizes", [(8, 300, 40, 70), (3, 128, 16, 64), (2, 129, 200, 257)])
def test_sizes_beyond_a_tile_a_vector_and_a_stretch_of_terms_are_right(native, sizes):
    task = Task(*sizes, R=2)
    for found, exact in zip(task.gradient(native), task.autograd(), strict=True):
        assert_near(found, exact)


@every_target
def test_trees_beside_a_tree_and_steps_before_change_no_bit(native):
    task = Task(5, 20, 6, 90, 4)
    first = task.gradient(native)
    trees = _native.ClassTrees(native, 1, task.depth, task.n, task.K)
    other = Task(5, 20, 6, 300, 1, seed=1)
    other.X[::2] = np.inf
    for r in range(task.R):
        other.gradient(native, trees=trees)
        again = task.gradient(native, which=[r], trees=trees)
        assert np.array_equal(again[1][0], first[1][r])
        assert np.array_equal(again[2][0], first[2][r])
    assert all(np.array_equal(a, b) for a, b in zip(task.gradient(native), first, strict=True))


@every_target
def test_steep_tests_and_far_logits_have_the_gradient_of_autograd(native):
    # Half of the rows exit at one leaf almost surely; logits are far from 0 but near each other.
    task = Task(4, 3, 3, 60, 2)
    task.beta *= 30
    task.V += np.float32([[[-300]], [[300]]])
    for found, exact in zip(task.gradient(native), task.autograd(), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-4 * np.abs(exact).max())


@every_target
@pytest.mark.parametrize("n", [1, 16, 37])
def test_an_update_is_adam_then_decay_soft_threshold_and_length(native, n):
    R, depth, K = 3, 2, 3
    task = Task(depth, n, K, 5, R)
    rng = np.random.default_rng(1)
    theta = np.append(task.W, task.V)
    gradient = rng.normal(size=theta.size).astype(np.float32)
    gradient[[0, 7, -1]] = np.nan, np.inf, -np.inf
    first = rng.normal(size=theta.size).astype(np.float32)
    second = rng.uniform(0.1, 1, theta.size).astype(np.float32)
    rate, decay, threshold = np.float32([[0.1, 0.2, 0.3], [0, 0.4, 0], [0, 0, 0.2]])
    is_unit = np.uint8([1, 0, 0])

    g = np.where(np.isfinite(gradient), gradient, 0).astype(float)
    of_tree = np.append(
        np.repeat(np.arange(R), task.W[0].size), np.repeat(np.arange(R), task.V[0].size)
    )
    moved_first = 0.9 * first + 0.1 * g
    moved_second = 0.99 * second + 0.01 * g**2
    moved = theta - rate[of_tree] * moved_first / np.sqrt(moved_second)
    W = moved[: task.W.size].reshape(task.W.shape)[:, :, :n]
    W[0] /= np.linalg.norm(W[0], axis=1, keepdims=True)
    W[1] *= 0.6
    W[2] = np.sign(W[2]) * np.maximum(np.abs(W[2]) - np.float32(0.2), 0)

    trees = _native.ClassTrees(native, R, depth, n, K)
    trees.update(gradient, theta, first, second, rate, decay, threshold, is_unit, 0.9, 0.99)
    np.testing.assert_allclose(theta, moved, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first, moved_first, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, moved_second, rtol=1e-5)


@pytest.mark.parametrize("size", [1e6, 1e30, np.inf])
def test_huge_values_leave_everything_finite(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)).astype(np.float32)
    X[::3, 1] *= np.float32(size)
    target = torch.nn.functional.one_hot(torch.arange(50) % 3).T
    descent = ClassDescent(
        SoftBatch.start(4, 3, 3, RECIPES, seed=0), torch.from_numpy(X), target, 16, 0
    )
    losses = [descent.step(share) for share in np.linspace(0, 0.9, 20)]
    assert np.isfinite(losses).all()
    assert np.isfinite(descent.theta).all()


def test_what_does_not_fit_is_refused():
    task = Task(2, 3, 2, 4, 2)
    trees = _native.ClassTrees("auto", 2, 2, 3, 2)
    theta = np.append(task.W, task.V)

    def refused(message, **changed):
        given = {
            "X": task.X,
            "target": task.target,
            "rows": task.rows,
            "beta": task.beta,
            "least": LEAST,
            "parameters": theta,
            "gradient": np.empty_like(theta),
        }
        with pytest.raises(ValueError, match=message):
            trees.gradient(**given | changed)

    refused("X must be", X=task.X[:, :2].copy())
    refused("target must be", target=task.target[:-1])
    refused("rows must be", rows=np.array([0, len(task.X)]))
    refused("rows must be", rows=np.array([-1]))
    refused("needs a row", rows=np.empty(0, np.int64))
    refused("beta must be", beta=task.beta[:1])
    refused("least", least=0.0)
    refused("parameters and gradient", parameters=theta[1:])
    refused("parameters and gradient", gradient=theta[1:].copy())
    for name in ("X", "gradient"):
        given = {"X": task.X, "gradient": theta.copy()}
        given[name] = given[name].astype(float)
        with pytest.raises(TypeError):
            trees.gradient(
                target=task.target,
                rows=task.rows,
                beta=task.beta,
                least=LEAST,
                parameters=theta,
                **given,
            )
    with pytest.raises(ValueError, match="target"):
        _native.ClassTrees("v9", 2, 2, 3, 2)
    with pytest.raises(ValueError, match="depth"):
        _native.ClassTrees("auto", 2, 0, 3, 2)
    with pytest.raises(ValueError, match="size"):
        _native.ClassTrees("auto", 2, 2, 0, 2)
