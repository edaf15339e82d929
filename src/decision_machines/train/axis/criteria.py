"""What a tree is searched for: the aims of the search, what leaves say, and the loss that decides.

A tree says the same of all rows of a leaf. So the loss that validation rows decide by is found from
what stands in the leaves, not row by row (but for quantiles).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from .standard_rows import DOING, StandardRows

if TYPE_CHECKING:
    from jaxtyping import Float, Int

OF_CLASSES = ("accuracy", "log_loss", "auc", "balanced", "f1")
OF_NUMBERS = ("squared_error", "absolute_error", "quantile", "poisson")

LEAST_SHARE = 1e-6
"""Of a class, where logarithms are taken."""
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How strongly rare classes are lifted when F1 is what counts."""


@dataclass(frozen=True)
class Criterion:
    """A name of `OF_CLASSES` or `OF_NUMBERS`, and the quantile where that is its name."""

    name: str
    quantile: float = 0.5

    @classmethod
    def of(cls, name: str | None, n_classes: int | None, quantile: float = 0.5) -> Criterion:
        """The criterion of this name; by default accuracy, or the squared error.

        Examples
        --------
        >>> Criterion.of(None, 2), Criterion.of("absolute_error", None)
        (Criterion(name='accuracy', quantile=0.5), Criterion(name='absolute_error', quantile=0.5))
        """
        known = OF_NUMBERS if n_classes is None else OF_CLASSES
        if name is not None and name not in known:
            raise InputError(
                DOING,
                f"criterion={name!r} for {'numbers' if n_classes is None else 'classes'}",
                "use " + ", ".join(map(repr, known[:-1])) + f" or {known[-1]!r}",
            )
        is_share = isinstance(quantile, (int, float, np.number)) and 0 < quantile < 1
        if name == "quantile" and not is_share:
            raise InputError(DOING, f"quantile={quantile!r}", "use a number between 0 and 1")
        return cls(name or known[0], float(quantile) if name == "quantile" else 0.5)

    @property
    def is_quantile(self) -> bool:
        """Whether leaves say a quantile of their rows."""
        return self.name in ("absolute_error", "quantile")

    @property
    def counts_errors(self) -> bool:
        """Whether only the class that a leaf names counts."""
        return self.name in ("accuracy", "balanced", "f1")

    @property
    def aims(self) -> list[dict[str, Any]]:
        """What searches minimise, as fields of a `Setting`: losses that splits can be found for."""
        number: dict[str, Any] = {"number": "quantile", "quantile": self.quantile}
        gini, entropy = {"gini": 1.0}, {"gini": 0.0, "entropy": 1.0}
        errors, taught = {"gini": 0.3, "error": 1.0}, {"taught": 0.6}
        found: dict[str, list[dict[str, Any]]] = {
            "accuracy": [gini, entropy, errors, taught],
            "log_loss": [entropy, gini, taught],
            "auc": [entropy, gini, taught],
            "balanced": [a | {"power": 1.0} for a in (gini, entropy, errors)],
            "f1": [*(a | {"power": 0.5} for a in (gini, entropy, errors)), gini],
            "squared_error": [{}, {"ridge": 5.0}, taught],
            "absolute_error": [number, {}],
            "quantile": [number],
            "poisson": [{"number": "poisson"}, {}],
        }
        return found[self.name]

    @property
    def value_powers(self) -> tuple[float, ...]:
        """How leaves may lift rare classes: by their share to minus these powers."""
        return {"balanced": (1.0,), "f1": POWERS}.get(self.name, (0.0,))


def class_factors(rows: StandardRows, power: float) -> Float[np.ndarray, "k"]:
    """What a row of each class counts: 1 for power 0; at 1 all classes count alike in total."""
    assert rows.label is not None
    share = np.bincount(rows.label, rows.w, rows.k) / rows.w.sum()
    raised: np.ndarray = np.maximum(share, 1e-12) ** -power
    found: np.ndarray = raised / (share @ raised)
    return found


class Judge:
    """The loss of trees on some rows, by the leaf in which each row ends."""

    def __init__(self, criterion: Criterion, rows: StandardRows) -> None:
        self.criterion, self.rows = criterion, rows

    def losses(
        self, values: Float[np.ndarray, "s N k"], exits: Int[np.ndarray, "m"]
    ) -> Float[np.ndarray, "s"]:
        """What each way to give the leaves values loses; the less the better."""
        if self.criterion.is_quantile:
            return self._of_quantiles(values, exits)
        if self.rows.label is None:
            return self._of_numbers(values, exits)
        table = class_table(self.rows, exits, values.shape[1])
        used = table.sum(axis=1) > 0
        return class_losses(self.criterion.name, values[:, used], table[used], len(self.rows))

    def _of_numbers(self, values: np.ndarray, exits: np.ndarray) -> np.ndarray:
        rows = self.rows
        assert rows.y is not None
        N = values.shape[1]
        weight = np.bincount(exits, rows.w, N)
        total = np.stack([np.bincount(exits, rows.w * y, N) for y in rows.y.T], axis=1)
        if self.criterion.name == "poisson":
            mean = np.maximum(values, 1e-9)
            lost = (weight[:, None] * mean - total * np.log(mean)).sum(axis=(1, 2))
            logs = np.where(rows.y > 0, rows.y, 1.0)
            constant = rows.w @ (rows.y * np.log(logs) - rows.y).sum(axis=1)
        else:
            lost = (weight[:, None] * values**2 - 2 * total * values).sum(axis=(1, 2))
            constant = rows.w @ (rows.y**2).sum(axis=1)
        found: np.ndarray = (lost + constant) / rows.w.sum()
        return found

    def _of_quantiles(self, values: np.ndarray, exits: np.ndarray) -> np.ndarray:
        rows, q = self.rows, self.criterion.quantile
        assert rows.y is not None
        lost = []
        for each in values:
            above = rows.y - each[exits]
            lost.append(np.maximum(q * above, (q - 1) * above).sum(axis=1) @ rows.w)
        found: np.ndarray = np.array(lost) / rows.w.sum()
        return found


def class_table(
    rows: StandardRows, exits: Int[np.ndarray, "m"], n_nodes: int
) -> Float[np.ndarray, "N k"]:
    """The weight of each class in each node where rows end."""
    assert rows.label is not None
    at = exits * rows.k + rows.label
    return np.bincount(at, rows.w, n_nodes * rows.k).reshape(n_nodes, rows.k)


def class_losses(
    name: str,
    values: Float[np.ndarray, "s L k"],
    table: Float[np.ndarray, "L k"],
    n_rows: int,
) -> Float[np.ndarray, "s"]:
    """The losses of values of leaves that hold so much of each class.

    Where errors count, a part of the squared error of the probabilities is added, to the AUC one of
    the log-loss, the larger the fewer rows there are: it tells apart what a few hundred rows cannot
    by counting.

    Examples
    --------
    >>> values = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    >>> class_losses("log_loss", values, np.array([[3.0, 1.0], [1.0, 3.0]]), 8).round(4)
    array([0.6334])
    """
    weight = table.sum()
    if name == "log_loss":
        shares = np.maximum(values, LEAST_SHARE)
        shares = shares / shares.sum(axis=2, keepdims=True)
        found: np.ndarray = -(np.log(shares) * table).sum(axis=(1, 2)) / weight
        return found
    if name == "auc":
        present = [c for c in range(table.shape[1]) if 0 < table[:, c].sum() < weight]
        surprise = class_losses("log_loss", values, table, n_rows)
        if not present:
            return surprise
        if table.shape[1] == 2:
            present = [1]
        areas = np.array([np.mean([_auc(each, table, c) for c in present]) for each in values])
        return 1 - areas + (0.05 + 50 / n_rows) * surprise
    if name == "balanced":
        table = table / np.maximum(table.sum(axis=0), 1e-300)  # every class counts alike
        weight = table.sum()
    squares = (values**2).sum(axis=2) @ table.sum(axis=1)
    squared = (squares - 2 * (values * table).sum(axis=(1, 2)) + weight) / weight
    chosen = values.argmax(axis=2)  # (s, L)
    if name == "f1":
        errors = 1 - np.array([_macro_f1(each, table) for each in chosen])
    else:
        errors = 1 - table[np.arange(len(table)), chosen].sum(axis=1) / weight
    both: np.ndarray = errors + (0.25 + 200 / n_rows) * squared
    return both


def _auc(shares: Float[np.ndarray, "L k"], table: Float[np.ndarray, "L k"], c: int) -> float:
    """Of class c against the others: how often its rows have the larger share, ties half."""
    _, group = np.unique(shares[:, c], return_inverse=True)
    own = np.bincount(group, table[:, c])
    other = np.bincount(group, table.sum(axis=1) - table[:, c])
    before = np.cumsum(other) - other
    return float(own @ (before + other / 2) / (own.sum() * other.sum()))


def _macro_f1(chosen: Int[np.ndarray, "L"], table: Float[np.ndarray, "L k"]) -> float:
    k = table.shape[1]
    right = np.bincount(chosen, table[np.arange(len(chosen)), chosen], k)
    both = np.bincount(chosen, table.sum(axis=1), k) + table.sum(axis=0)
    present = both > 0
    return float(np.mean(2 * right[present] / both[present]))
