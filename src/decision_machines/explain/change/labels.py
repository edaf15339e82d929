"""Labels that a change may go to, and what they are called, where a model keeps only hashes.

A label can be written into a row only where its text is known: CatBoost keeps a hash of it, and
rows tell the texts. All labels that no test asks for are one: any text that has none of the hashes
stands for them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...machine.feature_names import feature_number
from ...machine.label_hash import label_hash
from ...machine.label_words import labels_of, number_in_range, quoted
from ...machine.words import words_of_value
from ...run.inputs.given_rows import named_values
from ...run.inputs.label_positions import hashes_of
from ...run.inputs.told import told_by, told_by_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...machine import Columns, DecisionMachine


@dataclass(frozen=True)
class KnownLabels:
    """What is known of a model's labels after all that a caller gave was read."""

    machine: DecisionMachine
    """With the texts that rows tell."""
    whole: frozenset[int]
    """Features that rows hold as integers."""
    others: Mapping[int, str]
    """Feature → a text in the rows that the model does not know."""

    def codes(self, feature: int) -> tuple[int, ...] | None:
        """The codes of labels that can be named; None where all can."""
        columns = self.machine.columns
        if not columns.label_hash or feature not in columns.categories:
            return None
        own = columns.categories[feature]
        return (-1, *(code for code, one in enumerate(own) if isinstance(one, str)))

    def has_unnamed(self, feature: int) -> bool:
        """Whether some of a feature's labels are known by their hashes alone."""
        codes = self.codes(feature)
        return codes is not None and len(codes) <= len(self.machine.columns.categories[feature])

    def words(self, feature: int, x: float) -> str:
        """A feature's value in words that can be written into a row."""
        columns = self.machine.columns
        labels = labels_of(columns, feature)
        if labels is None or x != x or 0 <= x < len(labels):
            return words_of_value(columns, feature, x)
        if feature in self.others:
            return quoted(self.others[feature])
        return f"any label that the model does not know, such as {unknown_label(columns, feature)}"

    def value(self, feature: int, x: float) -> Any:
        """A feature's value as a row has it: a label, a number, or None for missing."""
        columns = self.machine.columns
        if x != x:
            return None
        if feature in columns.edges:
            is_whole = feature in self.whole
            return number_in_range(columns.edges[feature], int(x), whole=is_whole)
        labels = labels_of(columns, feature)
        if labels is None:
            return x
        if 0 <= x < len(labels):
            return labels[int(x)]
        return self.others.get(feature) or unknown_label(columns, feature)


def known_labels(machine: DecisionMachine, x: Any, ranges: Any, data: Any) -> KnownLabels:
    """All that an input, the labels it may have and other rows tell; the input counts most."""
    named = {} if ranges is None else named_values(ranges) or {}
    columns = machine.columns
    listed = {feature_number(columns, f, "feature of a range"): _list(v) for f, v in named.items()}
    own = told_by(x, columns)
    allowed = told_by_labels(own.columns, listed)
    told = allowed if data is None else told_by(data, allowed.columns)
    whole, others = own.whole | told.whole, {**told.others, **allowed.others, **own.others}
    return KnownLabels(replace(machine, columns=told.columns), whole, others)


def _list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple, set, frozenset)) else [given]


def unknown_label(columns: Columns, feature: int) -> str:
    """A text that none of a feature's labels is.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> colours = Columns(1, categories={0: ("red", "other")})
    >>> unknown_label(colours, 0)
    'other 2'
    """
    labels = labels_of(columns, feature) or ()
    taken = hashes_of(labels) if columns.label_hash else {str(one) for one in labels}
    tries = itertools.chain(["other"], (f"other {i}" for i in itertools.count(2)))
    return next(t for t in tries if (label_hash(t) if columns.label_hash else t) not in taken)
