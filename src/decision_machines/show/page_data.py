"""What the explorer page knows of a machine, ready for JSON: arrays as base64, all else as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..explain.change.goal_functions import bound_of
from ..explain.shapley.shares import has_path_values, shares
from ..libraries.javascript.machine_json import machine_json, packed
from ..machine import Rule
from ..machine.coded import coded
from ..machine.label_words import labels_of
from ..machine.look_ups import check_single_features
from ..machine.trees import ranges
from ..run.inputs.told import told_by

if TYPE_CHECKING:
    from jaxtyping import Float

    from ..machine import DecisionMachine

DOING = "making the explorer page"
MOST_LEAVES = 2_000_000
"""More would be a page of hundreds of megabytes, which browsers do not open well."""
NO_LABELS = (
    "Categories are shown as their codes: which labels belong to which feature is told only by a "
    "table of rows, X."
)
ONLY_HASHES = (
    "Labels shown as # and a number are known to the model by a hash alone, and no change goes to "
    "them: a table of rows, X, tells their texts."
)
ENOUGH_ROWS = 20
"""So many rows are trusted to show the range of their features."""
CHECKED_ROWS = 32
"""Rows whose answers are written into the page, for the page to check itself against."""


def page_data(
    machine: DecisionMachine, X: Any, y: Any, *, title: str | None, max_rows: int
) -> dict[str, Any]:
    """The machine, up to `max_rows` rows of X, and what Python answers on a few rows."""
    check_single_features(machine, DOING)
    if machine.n_leaves > MOST_LEAVES:
        raise InputError(
            DOING,
            f"{machine.n_leaves} leaves; a page can hold {MOST_LEAVES}",
            "explore one tree, machine.tree(i), or some of them, machine.mask(others)",
        )
    if not isinstance(max_rows, (int, np.integer)) or max_rows < 1:
        raise InputError(DOING, f"max_rows={max_rows!r}", "use a whole number of at least 1")
    if X is None and y is not None:
        raise InputError(DOING, "y without X", "give the rows X that y belongs to")
    rows = None if X is None else machine.features(X)
    spans = feature_spans(machine, rows)
    checked = _rows_to_check(machine, rows, spans)
    numbers = coded(machine)
    labels = feature_labels(machine, X)
    unnamed = _unnamed(machine, labels or {})
    notices = [NO_LABELS] * (labels is None) + [ONLY_HASHES] * bool(unnamed)
    return {
        "title": title or machine.source or "Decision machine",
        "machine": _machine(machine, labels or {}, integer_features(machine, X, rows)),
        "notices": notices,
        "spans": packed(spans),
        "whole": whole_features(rows),
        "unnamed": unnamed,
        "rows": None if rows is None else _rows(rows, y, max_rows),
        "check": {
            "x": packed(checked),
            "leaves": packed(numbers.apply(checked, n_threads=1)),
            "margin": packed(numbers.margin(checked, n_threads=1)),
            "response": packed(numbers.response(checked, n_threads=1)),
        },
    }


def _machine(
    machine: DecisionMachine, labels: dict[int, tuple[Any, ...]], integers: list[int]
) -> dict[str, Any]:
    """The machine, with what attributions and changes in the page need besides."""
    found = machine_json(machine, labels)
    found["share"] = packed(shares(machine)) if has_path_values(machine) else None
    found["integers"] = integers
    found["output"]["bound"] = bound_of(machine)
    return found


def _unnamed(
    machine: DecisionMachine, labels: dict[int, tuple[Any, ...]]
) -> list[tuple[int, list[int]]]:
    """The features and codes of labels that are known by their hashes alone."""
    if not machine.columns.label_hash:
        return []
    codes = {
        f: [c for c, one in enumerate(own) if isinstance(one, int)] for f, own in labels.items()
    }
    return [(f, own) for f, own in sorted(codes.items()) if own]


def _text(label: Any) -> str:
    return label if isinstance(label, str) else str(label)


def feature_labels(machine: DecisionMachine, X: Any = None) -> dict[int, tuple[Any, ...]] | None:
    """The labels of each feature that is given as labels; None where they cannot be told.

    LightGBM keeps labels by the order of the categorical columns alone. Which features these are is
    known where tests ask for as many features by category as there are lists of labels, or where
    X is a table.
    """
    columns = machine.columns if X is None else told_by(X, machine.columns).columns
    known = {f: labels_of(columns, f) for f in {*columns.categories, *columns.member_features}}
    found = {f: labels for f, labels in known.items() if labels is not None}
    return None if columns.table_categories and not found else found


def feature_spans(
    machine: DecisionMachine, rows: Float[np.ndarray, "m n"] | None
) -> Float[np.ndarray, "n 2"]:
    """Where the slider of each feature begins and ends: around its thresholds and its data."""
    feature, t = _thresholds(machine)
    spans = np.empty((machine.n_features, 2))
    order = np.argsort(feature, kind="stable")
    start = np.searchsorted(feature[order], np.arange(machine.n_features + 1))
    for i in range(machine.n_features):
        found = t[order[start[i] : start[i + 1]]]
        if rows is not None:
            found = np.concatenate([found, rows[:, i].astype(np.float64)])
        found = found[np.isfinite(found) & (np.abs(found) < 1e300)]
        low, high = (found.min(), found.max()) if len(found) else (0.0, 1.0)
        is_known = rows is not None and len(rows) >= ENOUGH_ROWS
        room = (0.05 if is_known else 0.25) * (high - low) or max(1.0, abs(low))
        spans[i] = low - room, high + room
    columns, sets = machine.columns, machine.columns.sets
    member = np.flatnonzero(columns.rule == Rule.MEMBER)
    if sets is not None:
        for i in np.unique(columns.feature[member]):
            own = np.flatnonzero(columns.feature[member] == i)
            members = sets.members[ranges(sets.start, own)]
            spans[i] = 0, max(members.max(initial=1) + 1, spans[i, 1])
    return spans


def integer_features(machine: DecisionMachine, X: Any, rows: np.ndarray | None) -> list[int]:
    """The features that the rows hold as integers, where rows are many enough to tell."""
    if rows is None or len(rows) < ENOUGH_ROWS:
        return []
    return sorted(told_by(X, machine.columns).whole)


def whole_features(rows: Float[np.ndarray, "m n"] | None) -> list[int]:
    """The features that hold whole numbers in every row, where rows are many enough to tell."""
    if rows is None or len(rows) < ENOUGH_ROWS:
        return []
    is_number = np.isfinite(rows)
    is_whole = np.all(~is_number | (rows == np.floor(rows)), axis=0) & np.any(is_number, axis=0)
    return np.flatnonzero(is_whole).tolist()


def _thresholds(machine: DecisionMachine) -> tuple[np.ndarray, np.ndarray]:
    """Every test's feature and threshold; of an oblique test, where it cuts each axis."""
    columns = machine.columns
    if not machine.is_oblique:
        is_value = columns.rule[machine.selection] != Rule.MEMBER
        return (
            columns.feature[machine.selection][is_value],
            machine.t.astype(np.float64)[is_value],
        )
    S = machine.S.tocoo()
    cuts = machine.t.astype(np.float64)[S.row] / np.where(S.data == 0, np.nan, S.data)
    # A small weight cuts its axis far away, where no data are.
    small = np.abs(cuts) <= 10 * np.nanmedian(np.abs(cuts)) if len(cuts) else cuts > 0
    return columns.feature[S.col][small], cuts[small]


def _rows(rows: np.ndarray, y: Any, max_rows: int) -> dict[str, Any]:
    """Rows spread evenly over all of them, where they are too many."""
    n = len(rows)
    if not n:
        raise InputError(DOING, "X has no rows", "give at least one row, or leave X out")
    kept = np.unique(np.linspace(0, n - 1, min(n, max_rows)).astype(np.int64))
    actual = None
    if y is not None:
        y = y.to_list() if hasattr(y, "to_list") else np.asarray(y).tolist()
        if len(y) != n:
            raise InputError(DOING, f"{len(y)} entries of y for {n} rows of X", "give one for each")
        actual = [_text(y[i]) for i in kept]
    return {"x": packed(rows[kept]), "number": packed(kept), "of": n, "y": actual}


def _rows_to_check(
    machine: DecisionMachine, rows: np.ndarray | None, spans: np.ndarray
) -> Float[np.ndarray, "m n"]:
    """The first rows, and as many drawn from the spans, thresholds and NaN among them."""
    rng = np.random.default_rng(0)
    n = machine.n_features
    drawn = rng.uniform(spans[:, 0], spans[:, 1], (CHECKED_ROWS, n))
    feature, t = _thresholds(machine)
    if len(t):
        for row in drawn:
            at = rng.integers(len(t), size=max(1, n // 4))
            row[feature[at]] = t[at]
    drawn[rng.random(drawn.shape) < 0.05] = np.nan
    with np.errstate(over="ignore"):
        drawn = drawn.astype(machine.columns.dtype)
    return drawn if rows is None else np.concatenate([rows[:CHECKED_ROWS], drawn])
