"""The paper's worked example."""

from __future__ import annotations

import numpy as np

from .columns import Columns
from .machine import DecisionMachine
from .output import Output
from .trees import Trees


def figure_one() -> DecisionMachine:
    """The tree of the paper's Fig. 1: five tests on four features, leaves v1 … v6 of value 1 … 6.

    Examples
    --------
    >>> figure_one().B.toarray()
    array([[-1, -1,  0, -1,  0],
           [-1, -1,  0,  1, -1],
           [-1, -1,  0,  1,  1],
           [-1,  1,  0,  0,  0],
           [ 1,  0, -1,  0,  0],
           [ 1,  0,  1,  0,  0]], dtype=int8)
    """
    return DecisionMachine(
        columns=Columns(4, names=("x[1]", "x[2]", "x[3]", "x[4]")),
        selection=np.array([0, 1, 2, 1, 3]),
        t=np.array([1.0, 4.0, 3.0, 2.0, 5.0]),
        missing=np.ones(5),
        children=np.array([[1, 2], [3, ~3], [~4, ~5], [~0, 4], [~1, ~2]]),
        V=np.arange(1.0, 7.0)[:, None],
        trees=Trees(np.array([0, 5])),
        output=Output(np.zeros(1)),
        source="the paper's Fig. 1",
    )
