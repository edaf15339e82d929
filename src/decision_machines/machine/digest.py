"""A short name for the content of machines and arrays: equal content, equal name.

`DecisionMachine.fingerprint` names what a machine means: it is the same for trees in another order.
A digest names what it is, number by number, so that work which was begun with a machine goes on
with that machine alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

LEFT_OUT = ("source", "structure", "cover")
"""Fields that decide no answer, or that follow from the others."""


def digest(value: Any) -> str:
    """A digest of a machine, an array, or a plain value, and of all that they hold.

    Examples
    --------
    >>> import decision_machines as dm
    >>> from dataclasses import replace
    >>> machine = dm.figure_one()
    >>> digest(machine) == digest(replace(machine, source="another"))
    True
    >>> digest(machine) == digest(replace(machine, t=machine.t + 1))
    False
    """
    found = hashlib.sha256()

    def add(value: Any) -> None:
        if is_dataclass(value):
            for f in fields(value):
                if f.name not in LEFT_OUT:
                    found.update(f.name.encode())
                    add(getattr(value, f.name))
        elif isinstance(value, np.ndarray) and value.dtype != object:
            found.update(f"{value.dtype}{value.shape}".encode())
            found.update(np.ascontiguousarray(value).data.cast("B") if value.size else b"")
        elif sp.issparse(value):
            for part in (value.data, value.indices, value.indptr):
                add(part)
        elif isinstance(value, (tuple, list, np.ndarray)):
            found.update(f"[{len(value)}".encode())
            for item in value:
                add(item)
        elif isinstance(value, Mapping):
            add(list(value.items()))
        else:
            found.update(f"{type(value).__name__}{value!r};".encode())

    add(value)
    return found.hexdigest()
