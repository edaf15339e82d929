"""Rows as learning sees them: equal ones merged, in an order that their content decides.

So a row of weight 2 is a row given twice, a row of weight 0 a row not given, and no shuffling of
the data changes what is learned. Nor can a row stand among those that are learned from and, again,
among those held out to judge what was learned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .. import _native
from ..train.rows import Rows

if TYPE_CHECKING:
    from jaxtyping import Float, Num

LIGHTEST = 1e-100
"""Share of the largest weight below which a weight is as good as 0."""


def distinct_rows(
    X: Float[np.ndarray, "m n"], y: Num[np.ndarray, "m ..."], w: Float[np.ndarray, "m"]
) -> Rows:
    """The different rows of (X, y), their weights added up and of mean 1; none of weight 0.

    Examples
    --------
    >>> rows = distinct_rows(np.array([[1.0], [2.0], [1.0]]), np.array([0, 1, 0]), np.ones(3))
    >>> len(rows), sorted((rows.w * 1.5).tolist())
    (2, [1.0, 2.0])
    """
    rows = merged_rows(X, y, w)
    return replace(rows, w=rows.w / rows.w.mean())


def merged_rows(
    X: Float[np.ndarray, "m n"], y: Num[np.ndarray, "m ..."], w: Float[np.ndarray, "m"]
) -> Rows:
    """`distinct_rows` whose weights are sums of those given."""
    # So light a row changes no sum, and would be lost on the way: it is left out, too.
    kept = w > LIGHTEST * w.max(initial=0.0)
    if not kept.all():
        X, y, w = X[kept], y[kept], w[kept]
    targets = np.ascontiguousarray(y.reshape(len(y), -1), np.float64)
    order, first = _native.distinct_rows(np.ascontiguousarray(X), targets)
    w = np.add.reduceat(w[order].astype(np.float64), first)
    chosen = order[first]
    return Rows(X[chosen] + 0.0, y[chosen], w)  # -0.0 is 0.0
