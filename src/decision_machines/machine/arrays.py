"""Read-only arrays of a fixed dtype, and the namespace that an array computes in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvariantError


def frozen(values: Any, dtype: Any, name: str) -> np.ndarray:
    """`values` as a read-only, contiguous array of `dtype`, refused where that would change one."""
    array = np.ascontiguousarray(values) if np.ndim(values) else np.asarray(values)
    if array.dtype != dtype:
        with np.errstate(all="ignore"):
            cast = array.astype(dtype)
            same = np.array_equal(cast, array) if array.dtype.kind in "biuf" else False
        if not same and array.size:
            raise InvariantError(
                f"{name} is {np.dtype(dtype)}",
                f"an array of {array.dtype} whose values do not fit",
                f"give {name} as {np.dtype(dtype)}",
            )
        array = cast
    elif array.flags.writeable:
        array = array.copy() if array is values or array.base is not None else array
    array.flags.writeable = False
    return array


def namespace(*arrays: Any) -> Any:
    """The array API namespace of these arrays: NumPy's or torch's, in one dialect."""
    from array_api_compat import array_namespace

    return array_namespace(*arrays)
