"""Labels of one feature as positions, each distinct label looked up once and remembered."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _native
from ...errors import InputError
from .label_positions import hashed_positions, is_missing

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
        self.labels = labels
        self._name = name
        self._hashes = bool(columns.label_hash)
        self._refuses = columns.refuses_new_labels
        # What a label becomes that the model was not trained with.
        self._outside = float("nan") if columns.table_categories is not None else -1.0
        known = {} if self._hashes else {label: float(i) for i, label in enumerate(labels)}
        self.positions = _native.LabelPositions(known, self._ask, self._hashes)
        self._held: Any = None
        self._key: Any = None
        self._mapped: np.ndarray | None = None

    def _ask(self, label: Any) -> float:
        """The position of what is not among the known labels."""
        if self._hashes:
            one = np.empty(1, object)
            one[0] = label.item() if isinstance(label, np.generic) else label
            return float(hashed_positions(one, self.labels, self._name)[0])
        if is_missing(label):
            return float("nan")
        if self._refuses:
            raise NewLabel(label)
        return self._outside

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
        if self._mapped is None or self._key != key:
            of = self.positions.of
            self._mapped = np.array([of(label) for label in labels()], np.float64)
            self._key, self._held = key, held
        return self._mapped

    def of_objects(self, values: np.ndarray) -> Float[np.ndarray, "m"]:
        """Positions of an array of objects."""
        out = np.empty(len(values), np.float64)
        self.positions.objects(values, out)
        return out
