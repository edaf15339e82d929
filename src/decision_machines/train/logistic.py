"""Ridge logistic regressions, many small ones at once, and the exact cut for their 0/1 error.

What a node of a tree asks of its rows: a direction that tells those who should go right from those
who should go left, and the threshold along it that sends fewest the wrong way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

MOST_FOR_NEWTON = 160
"""Features up to which Newton's n × n systems are cheaper than L-BFGS."""


def ridge_logistic(
    X: Float[np.ndarray, "B c n"],
    is_right: Bool[np.ndarray, "B c"],
    weight: Float[np.ndarray, "B c"],
    ridge: float,
    n_iterations: int = 8,
) -> Float[np.ndarray, "B n+1"]:
    """Weights and intercept (last) of B regressions, each over c rows of which some weigh 0.

    Minimises Σ weight · log(1 + exp(-s f)) + ridge/2 |w|², the intercept free. Newton, and a step
    that does not lower a regression's loss is taken back and halved.
    """
    B, c, n = X.shape
    if n > MOST_FOR_NEWTON:
        return np.stack(
            [_by_lbfgs(X[b], is_right[b], weight[b], ridge, 5 * n_iterations) for b in range(B)]
        )
    Z = np.concatenate([X, np.ones((B, c, 1), X.dtype)], axis=2)
    target = is_right.astype(X.dtype)
    penalty = np.full(n + 1, ridge, X.dtype)
    penalty[n] = 1e-6
    w = np.zeros((B, n + 1), X.dtype)
    step, best = np.ones(B), np.full(B, np.inf)
    kept, direction = w.copy(), w
    for _ in range(n_iterations):
        f = np.matmul(Z, w[:, :, None])[:, :, 0]
        loss = np.sum(weight * (np.logaddexp(0, f) - target * f), axis=1)
        loss += 0.5 * np.sum(penalty * w * w, axis=1)
        is_lower = loss < best - 1e-6 * np.abs(best) if np.isfinite(best).all() else loss < best
        if not np.any(is_lower):
            break
        step = np.where(is_lower, 1.0, 0.5 * step)
        best = np.where(is_lower, loss, best)
        kept = np.where(is_lower[:, None], w, kept)
        p = 1.0 / (1.0 + np.exp(-f.clip(-30, 30)))
        gradient = np.matmul((weight * (p - target))[:, None, :], Z)[:, 0] + penalty * w
        curvature = weight * np.maximum(p * (1 - p), 1e-6)
        H = np.matmul(np.swapaxes(Z * curvature[:, :, None], 1, 2), Z)
        H[:, np.arange(n + 1), np.arange(n + 1)] += penalty
        newton = np.linalg.solve(H, gradient[:, :, None])[:, :, 0]
        direction = np.where(is_lower[:, None], newton, direction)
        w = kept - step[:, None] * direction
    return kept


def _by_lbfgs(
    X: np.ndarray, is_right: np.ndarray, weight: np.ndarray, ridge: float, n_iterations: int
) -> np.ndarray:
    from scipy.optimize import minimize

    rows = weight > 0
    X, weight, sign = X[rows], weight[rows], np.where(is_right[rows], 1.0, -1.0)
    total = max(float(weight.sum()), 1e-12)

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        f = sign * (X @ w[:-1] + w[-1])
        wrong = weight * sign / (1.0 + np.exp(f.clip(-30, 30)))
        value = np.sum(weight * np.logaddexp(0, -f)) + 0.5 * ridge * (w[:-1] @ w[:-1])
        gradient = np.append(ridge * w[:-1] - wrong @ X, -wrong.sum())
        return value / total, gradient / total

    start = np.zeros(X.shape[1] + 1)
    found: np.ndarray = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": n_iterations}
    ).x
    return found


def best_cuts(
    q: Float[np.ndarray, "B c"],
    is_right: Bool[np.ndarray, "B c"],
    weight: Float[np.ndarray, "B c"],
    near: Float[np.ndarray, "B"],
) -> tuple[Float[np.ndarray, "B"], Float[np.ndarray, "B"]]:
    """The threshold t for each of B problems with the least weight on the wrong side, and it.

    A row goes right where q > t. Among equally good cuts the one nearest to `near` is taken. Cuts
    are halfway between neighbouring values, and beyond either end; rows of weight 0 are not seen.

    Examples
    --------
    >>> q = np.array([[3.0, 1.0, 2.0]])
    >>> t, wrong = best_cuts(q, q > 1, np.ones((1, 3)), near=np.zeros(1))
    >>> t, wrong
    (array([1.5]), array([0.]))
    """
    B, c = q.shape
    # Rows of weight 0 stand at the end, behind every cut that is looked at.
    seen = weight > 0
    q = np.where(seen, q, np.inf)
    order = np.argsort(q, axis=1)
    q = np.take_along_axis(q, order, 1)
    change = np.take_along_axis(np.where(is_right, weight, -weight) * seen, order, 1)
    n_seen = seen.sum(1)
    # Cut k sends the first k rows left: each right-goer among them is wrong, each left-goer not.
    wrong = np.zeros((B, c + 1))
    np.cumsum(change, axis=1, out=wrong[:, 1:])
    wrong += np.sum(weight * (seen & ~is_right), axis=1)[:, None]
    cut = np.empty((B, c + 1))
    with np.errstate(invalid="ignore"):
        cut[:, 1:c] = 0.5 * q[:, :-1] + 0.5 * q[:, 1:]
    rows = np.arange(B)
    last = np.where(n_seen > 0, q[rows, np.maximum(n_seen - 1, 0)], 0.0)
    first = np.where(n_seen > 0, q[:, 0], 0.0)
    room = 1e-3 * (last - first) + 1e-6 * (np.abs(last) + np.abs(first)) + 1e-12
    cut[:, 0] = first - room
    cut[rows, n_seen] = last + room
    k = np.arange(c + 1)
    is_cut = k <= n_seen[:, None]
    # Halfway between equal values, or values so near that halfway is the upper one, is not a cut.
    is_cut[:, 1:c] &= (k[1:c] == n_seen[:, None]) | (
        (q[:, :-1] <= cut[:, 1:c]) & (cut[:, 1:c] < q[:, 1:])
    )
    wrong[~is_cut] = np.inf
    least = wrong.min(1)
    is_least = wrong <= least[:, None] + 1e-12 * (1 + np.abs(least[:, None]))
    distance = np.where(is_least, np.abs(np.where(is_cut, cut, 0.0) - near[:, None]), np.inf)
    chosen = distance.argmin(1)
    return cut[rows, chosen], wrong[rows, chosen]
