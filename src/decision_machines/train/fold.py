"""A trained tree as a machine that reads features as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..machine import Columns, DecisionMachine, Output, Trees
from ..machine.columns import Rule

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from .scaling import Scaling


def machine_of(
    W: Float[np.ndarray, "J v"],
    t: Float[np.ndarray, "J"],
    goes_right: Bool[np.ndarray, "J"],
    V: Float[np.ndarray, "L k"],
    scaling: Scaling,
    *,
    output: Output,
    nan_as_zero: Bool[np.ndarray, "n"] | None = None,
    linear: Any = None,
    source: str = "oblique tree",
) -> DecisionMachine:
    """The machine of one complete tree, tests in level order, scaling folded into S and t.

    Parameters
    ----------
    goes_right
        Where a test goes that reads a NaN.
    nan_as_zero
        Features whose NaN is read as 0.
    linear
        `LinearLeaves`, where leaves are functions.
    """
    n_tests = len(W)
    S, raw_t = scaling.raw_tests(W, t)
    n = S.shape[1]
    is_zero = np.zeros(n, bool) if nan_as_zero is None else nan_as_zero
    rule = np.where(is_zero, Rule.NAN_AS_ZERO, Rule.VALUE)
    below = 2 * np.arange(n_tests)[:, None] + np.array([1, 2])
    return DecisionMachine(
        columns=Columns(n, np.float64, feature=np.arange(n), rule=rule),
        selection=sp.csr_array(S),
        t=raw_t,
        missing=np.where(goes_right, 1, -1),
        children=np.where(below < n_tests, below, n_tests - 1 - below),
        V=V,
        trees=Trees(np.array([0, n_tests])),
        output=output,
        linear=linear,
        source=source,
    )


def class_output(n_classes: int) -> Output:
    """Leaves hold class probabilities; the labels are the codes 0 to K - 1."""
    return Output(np.zeros(n_classes), decision="argmax", classes=(np.arange(n_classes),))
