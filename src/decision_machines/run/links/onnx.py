"""What an ONNX graph does to the sums of its trees, step by step, as ONNX Runtime computes it.

The parameters of the link `onnx` are steps of `machine.steps`. The transforms of the tree
operators use float32 and the C library's exponential and logarithm, and are equal to the bit. The
operator Sigmoid is ONNX Runtime's own quotient of polynomials, equal to the bit where the processor
has fused multiply-add; the operator Exp may differ by 1 unit in the last place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine.steps import ARITHMETIC
from .libm import exp as exp_single
from .libm import log, log1p

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float

    from ...machine.steps import Step

SINGLE = np.float32


def onnx(margin: Float[np.ndarray, "m k"], *steps: Step) -> Float[np.ndarray, "m r"]:
    """The response: the margin taken through the steps."""
    x = margin
    with np.errstate(all="ignore"):
        for step in steps:
            x = STEPS[step.name](x, *step.constants)
    return x


def logistic(x: np.ndarray) -> np.ndarray:
    x = x.astype(SINGLE)
    v = SINGLE(1) / (SINGLE(1) + exp_single(-np.abs(x)))
    return np.where(x < 0, SINGLE(1) - v, v)


def softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(SINGLE)
    e = exp_single(x - x.max(axis=1, keepdims=True))
    found: np.ndarray = e / _sum(e)
    return found


def softmax_zero(x: np.ndarray) -> np.ndarray:
    """Softmax over the values that are not (about) 0; the others stay as they are."""
    low = x.astype(SINGLE)
    largest = low.max(axis=1, keepdims=True)
    counts = (low > SINGLE(1e-7)) | (low < -SINGLE(1e-7))
    e = exp_single(low - largest)
    kept = np.where(counts, e, low * exp_single(-largest))
    found: np.ndarray = kept / _sum(np.where(counts, e, SINGLE(0)))
    return found


def probit(x: np.ndarray) -> np.ndarray:
    """The inverse of the normal distribution, by Winitzki's approximation."""
    p = SINGLE(2) * x.astype(SINGLE) - SINGLE(1)
    logarithm = log((SINGLE(1) - p) * (SINGLE(1) + p))
    v = SINGLE(2) / (SINGLE(np.pi) * SINGLE(0.147)) + SINGLE(0.5) * logarithm
    root = np.sqrt(-v + np.sqrt(v * v - SINGLE(1) / SINGLE(0.147) * logarithm))
    found: np.ndarray = SINGLE(np.sqrt(2)) * np.where(p < 0, -root, root)
    return found


def complement(x: np.ndarray) -> np.ndarray:
    """One score of two classes that sum to 1."""
    return np.concatenate([x.dtype.type(1) - x, x], axis=1)


def opposite(x: np.ndarray) -> np.ndarray:
    """One score of two classes that sum to 0."""
    return np.concatenate([-x, x], axis=1)


def beside_zero(x: np.ndarray) -> np.ndarray:
    """The score of the second class, where the first has none."""
    return np.concatenate([np.zeros_like(x), x], axis=1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The operator Sigmoid of float32: 1/2 + x P(x²) / Q(x²), good to 1e-7 only."""
    x = np.clip(x, SINGLE(-18), SINGLE(18))
    square = (x * x).astype(np.float64)
    above, below = (_horner(square, coefficients) for coefficients in (SIGMOID_P, SIGMOID_Q))
    found: np.ndarray = np.maximum(above * x / below + SINGLE(0.5), SINGLE(0))
    return found


SIGMOID_P = np.array(
    [
        4.37031012579801e-11,
        1.15627324459942e-07,
        6.08574864600143e-05,
        8.51377133304701e-03,
        2.48287947061529e-01,
    ],
    SINGLE,
)
SIGMOID_Q = np.array(
    [
        6.10247389755681e-13,
        5.76102136993427e-09,
        6.29106785017040e-06,
        1.70198817374094e-03,
        1.16817656904453e-01,
        9.93151921023180e-01,
    ],
    SINGLE,
)


def _horner(x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """A polynomial in float32 with one rounding for each multiplication and addition together."""
    total = np.full(x.shape, coefficients[0], SINGLE)
    for c in coefficients[1:]:
        total = (total * x + float(c)).astype(SINGLE)
    return total


def normalize(x: np.ndarray) -> np.ndarray:
    """x over the sum of its absolute values, where that is not 0."""
    total = _sum(np.abs(x))
    return np.where(total != 0, x / total, x)


def _sum(x: np.ndarray) -> np.ndarray:
    """The sum of each row, column after column, in x's own dtype."""
    total = np.zeros((len(x), 1), x.dtype)
    for column in range(x.shape[1]):
        total += x[:, column : column + 1]
    return total


def _with_constants(operate: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda x, *c: operate(x, np.array(c, x.dtype))


STEPS: dict[str, Callable[..., np.ndarray]] = {
    "single": lambda x: x.astype(np.float32),
    "double": lambda x: x.astype(np.float64),
    "logistic": logistic,
    "softmax": softmax,
    "softmax_zero": softmax_zero,
    "probit": probit,
    "complement": complement,
    "opposite": opposite,
    "beside_zero": beside_zero,
    "normalize": normalize,
    **{name: _with_constants(operate) for name, operate in ARITHMETIC.items()},
    "negate": lambda x: -x,
    "exp": lambda x: np.exp(x.astype(np.float64)).astype(x.dtype),
    "sigmoid": sigmoid,
    "libm_exp": exp_single,
    "libm_log1p": log1p,
}
"""The function of every step of `machine.steps`: columns and the step's constants → columns."""
