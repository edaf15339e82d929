"""Read-only arrays of a fixed dtype, and the namespace that an array computes in."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import InvariantError


class Part:
    """A frozen dataclass that is rebuilt, checked and made read-only again, by pickle and copy."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)  # type: ignore[arg-type]


def frozen(values: Any, dtype: Any, name: str) -> np.ndarray:
    """`values` as a read-only, contiguous array of `dtype`, refused where that would change one."""
    array = np.ascontiguousarray(values) if np.ndim(values) else np.asarray(values)
    if array.dtype != dtype:
        is_number = array.dtype.kind in "biuf"
        with np.errstate(all="ignore"):
            cast = array.astype(dtype) if is_number or not array.size else array
            same = not array.size or (is_number and np.array_equal(cast, array, equal_nan=True))
        if not same:
            raise InvariantError(
                f"{name} is {np.dtype(dtype)}",
                f"an array of {array.dtype} whose values do not fit",
                f"give {name} as {np.dtype(dtype)}",
            )
        array = cast
    elif array.flags.writeable and (array is values or array.base is not None):
        array = array.copy()
    array.flags.writeable = False
    return array


def namespace(*arrays: Any) -> Any:
    """The array API namespace of these arrays: NumPy's or torch's, in one dialect."""
    from array_api_compat import array_namespace

    return array_namespace(*arrays)


def device_of(array: Any) -> Any:
    """Where an array is kept; NumPy's own arrays say so only from NumPy 2 on."""
    from array_api_compat import device

    return device(array)
