"""Labels of one feature as positions, each distinct label looked up once and remembered."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from ...errors import InputError
from .label_positions import hashed_position, hashes_of, is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jaxtyping import Float

    from ...machine import Columns


class NewLabel(Exception):
    """A label that the model refuses; who reads a table says so, with the column's name."""


class LabelReader:
    """The labels of one feature, as a machine reads them.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> reader = LabelReader(Columns(1, categories={0: ("red", "blue")}), ("red", "blue"))
    >>> reader.positions.of("blue"), reader.positions.of("green")
    (1.0, -1.0)
    """

    def __init__(
        self, columns: Columns, labels: tuple[Any, ...], name: str = "a categorical feature"
    ) -> None:
        hashes = bool(columns.label_hash)
        known = {} if hashes else {label: float(i) for i, label in enumerate(labels)}
        # What is asked must not hold this reader: compiled code would keep both alive for ever.
        ask = _hashed(labels, name) if hashes else _new(columns)
        self.positions = _native.LabelPositions(known, ask, hashes)
        self._mapped: tuple[Any, Any, np.ndarray] | None = None

    @functools.cached_property
    def none_is_nan(self) -> bool:
        """Whether no label at all is NaN, and neither a label of its own nor an error."""
        try:
            return bool(np.isnan(self.positions.of(None)))
        except InputError:
            return False

    def of_dictionary(
        self, held: Any, key: Any, labels: Callable[[], Iterable[Any]]
    ) -> Float[np.ndarray, "n"]:
        """Positions by the numbers of a dictionary's labels; kept while the same one comes again.

        Parameters
        ----------
        held, key
            The dictionary, and what tells it from others as long as it is held.
        labels
            Lists its labels.
        """
        before = self._mapped
        if before is not None and before[0] == key:
            return before[2]
        of = self.positions.of
        found = np.array([of(label) for label in labels()], np.float64)
        self._mapped = (key, held, found)
        return found

    def of_objects(self, values: np.ndarray) -> Float[np.ndarray, "m"]:
        """Positions of an array of objects."""
        out = np.empty(len(values), np.float64)
        self.positions.objects(values, out)
        return out


def _hashed(labels: tuple[Any, ...], name: str) -> Callable[[Any], float]:
    """The position of a label that is matched by the hash of its text."""
    known = hashes_of(labels)

    def position(label: Any) -> float:
        return hashed_position(
            label.item() if isinstance(label, np.generic) else label, known, name
        )

    return position


def _new(columns: Columns) -> Callable[[Any], float]:
    """What a label becomes that the model was not trained with, and what no label becomes."""
    refuses = columns.refuses_new_labels
    outside = float("nan") if columns.table_categories is not None else -1.0

    def position(label: Any) -> float:
        if is_missing(label):
            return float("nan")
        if refuses:
            raise NewLabel(label)
        return outside

    return position
