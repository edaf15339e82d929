"""Equality of the parts of machines, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

NOT_COMPARED = ("source", "structure", "cover")
"""Fields of a machine that decide no answer, or follow from the others."""


def same(a: Any, b: Any) -> bool:
    """Whether two values of machines are equal: arrays by dtype, shape and bits, NaN equal to NaN.

    Examples
    --------
    >>> same(float("nan"), float("nan")), same(np.float32([1]), np.float64([1]))
    (True, False)
    """
    if a is None or b is None:
        return a is b
    if isinstance(a, np.ndarray):
        alike = isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape
        return alike and (a.tobytes() == b.tobytes() if a.dtype != object else list(a) == list(b))
    if sp.issparse(a):
        return bool(sp.issparse(b)) and all(
            same(getattr(a, name), getattr(b, name)) for name in ("data", "indices", "indptr")
        )
    if is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name))
            for f in fields(a)
            if f.name not in NOT_COMPARED
        )
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return bool(a == b)
