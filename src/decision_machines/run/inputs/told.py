"""What rows tell of their features besides values: labels that the model does not keep, and types.

LightGBM keeps labels without the names of their features, CatBoost keeps hashes of labels. A table
says which of its columns hold labels, and has their texts.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...machine.label_hash import label_hash
from .features import is_table
from .given_rows import is_vector, named_values, values_in_order, with_labels_for
from .label_positions import hashes_of
from .tables import ABSENT, match_names, native_table, with_categories

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...machine import Columns


class Told(NamedTuple):
    """What rows tell."""

    columns: Columns
    """The machine's columns with the labels that rows tell, for words."""
    whole: frozenset[int]
    """Features whose values are of an integer type."""
    others: Mapping[int, str] = MappingProxyType({})
    """Feature → a label in the rows that the model does not know."""


def told_by(X: Any, columns: Columns) -> Told:
    """What rows, as `given_rows` takes them, tell of a machine's features.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> sorted(told_by(np.array([[1, 2]]), Columns(2)).whole)
    [0, 1]
    """
    nothing = Told(columns, frozenset())
    named = named_values(X)
    if named is not None or is_vector(X):
        values = list(X) if named is None else values_in_order(named, columns)
        if len(values) != columns.n_features:
            return nothing
        texts = {f: [value] for f, value in enumerate(values)}
        return told_by_labels(with_labels_for(texts, columns), texts, _whole_of_row(X, values))
    if is_table(X):
        return _told_by_table(X, columns)
    if isinstance(X, (list, tuple)):
        X = np.array(X, object)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] != columns.n_features:
        return nothing
    plain = frozenset(range(columns.n_features)) - columns.categories.keys()
    if X.dtype != object:
        return Told(columns, plain if X.dtype.kind in "iu" else frozenset())
    texts = {f: X[:, f].tolist() for f in columns.categories} if columns.label_hash else {}
    whole = (f for f in plain if all(isinstance(v, (int, np.integer)) for v in X[:, f].tolist()))
    return told_by_labels(columns, texts, frozenset(whole))


def told_by_labels(
    columns: Columns, labels: Mapping[int, Iterable[Any]], whole: frozenset[int] = frozenset()
) -> Told:
    """What labels (of some features) tell: texts of those known by hashes, and unknown ones.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> hashes = Columns(1, categories={0: (label_hash("red"), 7)}, label_hash="catboost")
    >>> told = told_by_labels(hashes, {0: ["red", "green"]})
    >>> told.columns.categories[0], told.others[0]
    (('red', 7), 'green')
    """
    categories = dict(columns.categories)
    others: dict[int, str] = {}
    for feature, own in columns.categories.items():
        texts = [str(v) for v in labels.get(feature, ()) if isinstance(v, (str, int, np.integer))]
        if columns.label_hash:
            hashes, known = hashes_of(own), {label_hash(text): text for text in texts}
            new = [text for code, text in known.items() if code not in hashes]
            categories[feature] = tuple(
                known.get(one, one) if isinstance(one, int) else one for one in own
            )
        else:
            new = [text for text in texts if text not in set(map(str, own))]
        others |= {feature: new[0]} if new else {}
    if columns.label_hash:
        columns = replace(columns, categories=categories)
    return Told(columns, whole, others)


def _whole_of_row(x: Any, values: list[Any]) -> frozenset[int]:
    """Features that a row of a table holds as integers; of rows written by hand nothing is told."""
    if not is_table(x):
        return frozenset()
    return frozenset(f for f, v in enumerate(values) if isinstance(v, (int, np.integer)))


def _told_by_table(X: Any, columns: Columns) -> Told:
    table = native_table(X)
    order = match_names(list(table.columns), columns)
    if columns.table_categories is not None:
        try:
            columns = with_categories(table, order, columns)
        except InputError:  # predicting says so; for words, codes do
            return Told(columns, frozenset())
    texts: dict[int, Iterable[Any]] = {}
    if columns.label_hash or len(table) == 1:
        texts = {
            f: table[:, order[f]].unique().to_list()
            for f in columns.categories
            if order[f] != ABSENT
        }
    whole = frozenset(
        f
        for f, at in enumerate(order)
        if at != ABSENT and f not in columns.categories and table[:, at].dtype.is_integer()
    )
    return told_by_labels(columns, texts, whole)
