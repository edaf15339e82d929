"""Programs for the link `onnx`: steps by their number, each with its constants."""

from __future__ import annotations

from collections.abc import Sequence

STEPS = (
    "single", "double", "logistic", "softmax", "softmax_zero", "probit", "complement", "opposite",
    "beside_zero", "normalize", "add", "subtract", "subtract_from", "multiply", "divide",
    "divide_into", "negate", "exp", "sigmoid",
)  # fmt: skip
"""The steps in the order of `run.onnx_links.STEPS`, which this room does not import."""


def program(steps: Sequence[tuple[str, Sequence[float]]]) -> tuple[float, ...]:
    """The link's parameters.

    Examples
    --------
    >>> program([("single", ()), ("add", (1.5,))])
    (0.0, 0.0, 10.0, 1.0, 1.5)
    """
    found: list[float] = []
    for name, constants in steps:
        found += [float(STEPS.index(name)), float(len(constants)), *map(float, constants)]
    return tuple(found)
