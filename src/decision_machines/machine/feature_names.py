"""Features as people name them: by name or by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from jaxtyping import Int

    from .columns import Columns

MOST_NAMES = 8
"""More names are counted in a message, not listed."""


def feature_number(
    columns: Columns, feature: Any, what: str = "feature", *, doing: str | None = None
) -> int:
    """A feature named by name or number, as a number.

    Parameters
    ----------
    what
        What the feature is for, to be said where there is none such.
    doing
        What to say we were doing then; by default finding it.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> feature_number(Columns(2, names=("age", "sex")), "sex")
    1
    """
    names, n = columns.names, columns.n_features
    doing = f"finding the {what}" if doing is None else doing
    if isinstance(feature, str):
        named = feature if names is None else known_as(feature, names)
        if names is not None and named in names:
            return names.index(named)
        known = "the machine knows no names" if names is None else f"names are {listed(names)}"
        raise InputError(doing, f"{feature!r}; {known}", "use a name or a number")
    is_number = isinstance(feature, (int, np.integer)) and not isinstance(feature, bool)
    if not is_number or not -n <= feature < n:
        raise InputError(
            doing,
            f"{feature!r}, of {n} features",
            f"use a number from 0 to {n - 1}, or a name",
        )
    return int(feature) % n


def feature_numbers(columns: Columns, given: Any, what: str) -> Int[np.ndarray, "f"]:
    """One feature or several, named by name or number, as numbers."""
    if isinstance(given, (str, int, np.integer)):
        given = [given]
    try:
        named = list(given)
    except TypeError:
        raise InputError(
            f"finding the features of {what}", f"{what}={given!r}", "give names or numbers"
        ) from None
    return np.array([feature_number(columns, one, what) for one in named], np.int64)


def known_as(name: str, known: Collection[str]) -> str:
    """The name under which a model knows a column: its own, or LightGBM's spelling of it.

    Examples
    --------
    >>> known_as("house size", {"house_size"}), known_as("age", {"age"})
    ('house_size', 'age')
    """
    spelled = without_spaces(name)
    return spelled if name not in known and spelled in known else name


def without_spaces(name: str) -> str:
    """A feature's name as LightGBM writes it into its models: spaces are underscores."""
    return name.replace(" ", "_")


def columns_of_features(names: Sequence[str], found: Iterable[str]) -> list[str]:
    """The table's name of each feature's column; a feature that the table lacks keeps its own.

    Examples
    --------
    >>> columns_of_features(("house_size", "age"), ["age", "house size"])
    ['house size', 'age']
    """
    found = list(found)
    spelled = {without_spaces(name): name for name in found} | {name: name for name in found}
    return [spelled.get(name, name) for name in names]


def listed(names: Iterable[Any]) -> str:
    """A few names for a message, and how many more there are.

    Examples
    --------
    >>> listed("abcdefghij")
    "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 2 more"
    """
    names = list(names)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(repr(name) for name in names[:MOST_NAMES]) + more
