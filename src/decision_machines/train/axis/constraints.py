"""What is asked of single features: what they cost, and the direction of their effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from .standard_rows import DOING

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def read_costs(given: Any, n_features: int) -> Float[np.ndarray, "n"] | None:
    """A cost of at least 0 for each feature; None where there are none.

    Examples
    --------
    >>> read_costs({1: 0.5}, 3)
    array([0. , 0.5, 0. ])
    """
    found = _by_feature(given, n_features, "feature_costs", "costs of at least 0")
    if found is None or not found.any():
        return None
    if not np.all(np.isfinite(found)) or found.min() < 0:
        at = int(np.argmin(np.where(np.isfinite(found), found, -np.inf)))
        raise InputError(
            DOING, f"feature_costs[{at}] = {found[at]}", "give finite costs of at least 0"
        )
    return found


def read_directions(
    given: Any, n_features: int, n_classes: int | None
) -> Int[np.ndarray, "n"] | None:
    """1, 0 or -1 for each feature; None where none is constrained.

    Examples
    --------
    >>> read_directions([0, -1], 2, None)
    array([ 0, -1], dtype=int8)
    """
    found = _by_feature(given, n_features, "monotone", "1, 0 or -1")
    if found is None or not found.any():
        return None
    wrong = ~np.isin(found, (-1.0, 0.0, 1.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(DOING, f"monotone[{at}] = {found[at]:g}", "give 1, 0 or -1")
    if n_classes is not None and n_classes > 2:
        raise InputError(
            DOING,
            f"monotone with {n_classes} classes",
            "use it for numbers or two classes: of more, the order is not known",
        )
    return None if n_classes == 1 else found.astype(np.int8)


def _by_feature(given: Any, n: int, name: str, what: str) -> Float[np.ndarray, "n"] | None:
    """An array of n numbers from a list of them or from a dictionary by feature number."""
    if given is None:
        return None
    for feature in given if isinstance(given, Mapping) else ():
        if not isinstance(feature, (int, np.integer)) or not 0 <= feature < n:
            raise InputError(
                DOING, f"{name} for feature {feature!r}", f"number features 0 to {n - 1}"
            )
    try:
        if isinstance(given, Mapping):
            found = np.zeros(n)
            found[[int(feature) for feature in given]] = list(given.values())
        else:
            found = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            DOING, f"{name}={given!r}", f"give {what}, one for each feature"
        ) from error
    if found.shape != (n,):
        raise InputError(
            DOING, f"{name} of shape {found.shape} for {n} features", "give one for each feature"
        )
    return found
