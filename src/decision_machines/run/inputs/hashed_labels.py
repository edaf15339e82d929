"""Labels matched by the hash of their text, as CatBoost matches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine.labels import label_hash

if TYPE_CHECKING:
    from jaxtyping import Float


def hashed_positions(column: np.ndarray, labels: tuple) -> Float[np.ndarray, "m"]:
    """The position of each entry among labels matched by the hash of their text, as CatBoost does.

    An integer is the label of its digits; CatBoost takes neither other numbers nor None for a
    label, and nor do we.

    Examples
    --------
    >>> hashed_positions(np.array([1, "b", "1"], object), ("1", "a"))
    array([ 0., -1.,  0.])
    """
    position = {
        label_hash(label) if isinstance(label, str) else label: i for i, label in enumerate(labels)
    }
    code: dict[Any, float] = {}
    for value in column.tolist():
        if value not in code:
            if not isinstance(value, (str, int)):
                raise InputError(
                    "reading X",
                    f"the entry {value!r} of a categorical feature",
                    "give its categories as text or integers, as CatBoost asks for too",
                )
            text = value if isinstance(value, str) else str(int(value))
            code[value] = float(position.get(label_hash(text), -1))
    return np.array([code[value] for value in column.tolist()], np.float64)
