"""The steps of `machine.steps` as ONNX has them: transforms of the tree operators, or operators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TRANSFORMS = {
    "logistic": "LOGISTIC",
    "softmax": "SOFTMAX",
    "softmax_zero": "SOFTMAX_ZERO",
    "probit": "PROBIT",
}
"""Steps that are a `post_transform` of the tree operators, and what it is called there."""
PAIRS = ("complement", "opposite", "beside_zero")
"""What TreeEnsembleClassifier makes of the one sum of two classes; no operator does it alone."""
CASTS = {"single": np.float32, "double": np.float64}
"""Steps that are the operator Cast, and to which type."""


@dataclass(frozen=True)
class Arithmetic:
    """An operator of two inputs, one of them a constant."""

    name: str
    constant_first: bool = False


ARITHMETIC = {
    "add": Arithmetic("Add"),
    "subtract": Arithmetic("Sub"),
    "subtract_from": Arithmetic("Sub", constant_first=True),
    "multiply": Arithmetic("Mul"),
    "divide": Arithmetic("Div"),
    "divide_into": Arithmetic("Div", constant_first=True),
}
FUNCTIONS = {"negate": "Neg", "exp": "Exp", "sigmoid": "Sigmoid"}
"""Steps that are an operator of one input."""
NORMALIZE = "normalize"
"""The step that is the operator Normalizer with the norm L1."""


def arithmetic_step(operator: str, *, constant_first: bool) -> str:
    """The step that an operator with a constant is.

    Examples
    --------
    >>> arithmetic_step("Div", constant_first=True), arithmetic_step("Add", constant_first=True)
    ('divide_into', 'add')
    """
    found = {how.constant_first: step for step, how in ARITHMETIC.items() if how.name == operator}
    return found.get(constant_first, found[False])
