"""What categories are called."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .digits import boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .columns import Columns

FEW_LABELS = 6
"""Labels of a set that are named where there is little room."""
MOST = float(np.finfo(np.float64).max)
"""The last number: a bound here says only that infinity is apart."""
_QUOTED = re.compile(r'^\s|\s$|[,{}"\\\n\r\t]|^$')
"""Labels that would not be told apart from what stands around them."""


def labels_of(columns: Columns, feature: int) -> tuple[Any, ...] | None:
    """The labels of a feature's categories, by code; None where the model does not keep them.

    An integer stands for a label whose text the model does not keep, where it matches labels by
    their hash.
    """
    if feature in columns.categories:
        return columns.categories[feature]
    if feature in columns.edges:
        return ranges_of(columns.edges[feature])
    if columns.table_categories is None:
        return None
    # Labels by the order of categorical columns: theirs, if all of them are looked up somewhere.
    looked_up = columns.member_features
    if feature not in looked_up or len(looked_up) != len(columns.table_categories):
        return None
    return columns.table_categories[looked_up.index(feature)]


@functools.lru_cache(maxsize=256)
def ranges_of(edges: tuple[float, ...]) -> tuple[str, ...]:
    """The ranges between ascending bounds, in words.

    Examples
    --------
    >>> ranges_of((1.0, 2.5))
    ('≤ 1', '> 1 and ≤ 2.5', '> 2.5')
    """
    ends = [boundary(bound, np.dtype(np.float64)) for bound in edges]
    if not ends:
        return ("any number",)
    between = [f"{a.above} and {b.below}" for a, b in itertools.pairwise(ends)]
    return (ends[0].below, *between, ends[-1].above)


def number_in_range(edges: tuple[float, ...], code: int, *, whole: bool = False) -> float:
    """A number of one of the ranges between ascending bounds, a plain one where it has one.

    Examples
    --------
    >>> number_in_range((1.0, 2.5), 1), number_in_range((1.0, 2.5), 1, whole=True)
    (2.5, 2.0)
    """
    low = edges[code - 1] if 0 < code <= len(edges) else -np.inf
    high = edges[code] if code < len(edges) else np.inf
    plain = [float(np.floor(low)) + 1, float(np.floor(high)), float(np.floor(high)) - 1]
    first = float(boundary(low, np.dtype(np.float64)).number)
    tries = [*(plain if whole else []), first, high, math.nextafter(low, math.inf), 0.0]
    inside = [x for x in tries if low < x <= high and np.isfinite(x) and abs(x) < MOST]
    return inside[0] if inside else high


def label(columns: Columns, feature: int, code: int) -> Any:
    """What a category is called, where the model keeps its label; else its code."""
    labels = labels_of(columns, feature)
    return code if labels is None or not 0 <= code < len(labels) else labels[code]


def label_text(columns: Columns, feature: int, code: int) -> str:
    """A category in words: its label, "#" and its hash where that alone is kept, or its code.

    Labels with commas, braces or spaces at an end stand in quotes.

    Examples
    --------
    >>> from decision_machines import Columns
    >>> colours = Columns(1, categories={0: ("red", "dark, blue")})
    >>> [label_text(colours, 0, code) for code in (0, 1, 7)]
    ['red', '"dark, blue"', '7']
    """
    labels = labels_of(columns, feature)
    is_known = labels is not None and 0 <= code < len(labels)
    text = plain_label(columns, labels[code]) if labels is not None and is_known else str(code)
    return quoted(text)


def quoted(text: str) -> str:
    """A label, in quotes where it could not be told apart from what stands around it."""
    return json.dumps(text, ensure_ascii=False) if _QUOTED.search(text) else text


def plain_label(columns: Columns, found: Any) -> str:
    """A label without quotes; "#" and its hash where the model keeps that alone."""
    is_hash = bool(columns.label_hash) and not isinstance(found, str)
    return f"#{found}" if is_hash else str(found)


def set_text(
    columns: Columns, feature: int, codes: Sequence[int], *, most: int | None = None
) -> str:
    """A set of categories, "{red, blue}"; of more than `most` only the first are named."""
    shown = [label_text(columns, feature, code) for code in codes[:most]]
    more = f", … {len(codes)} in all" if len(shown) < len(codes) else ""
    return f"{{{', '.join(shown)}{more}}}"
