"""What a sum of machines is to predict: the objective, and the output that all members share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...machine import Columns, DecisionMachine, Output, Trees

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float, Num

    from ..rows import Rows

DOING = "choosing what a sum of machines predicts"
LOG_RATES = ("poisson", "gamma", "tweedie")
"""Objectives whose margins are logarithms of the answer."""
OF_NUMBERS = ("squared", "absolute", "huber", "quantile", *LOG_RATES)


@dataclass(frozen=True)
class SumGoal:
    """An objective as `tune` names it, and the classes or targets.

    Parameters
    ----------
    objective
        "logistic", "softmax", or one of `OF_NUMBERS`, with a number after a colon where it takes
        one: "quantile:0.9".
    n_classes
        None where numbers are predicted.
    """

    objective: str
    n_classes: int | None = None

    @classmethod
    def of_classes(cls, n_classes: int) -> SumGoal:
        return cls("logistic" if n_classes == 2 else "softmax", n_classes)

    @classmethod
    def of_numbers(
        cls,
        objective: str = "squared",
        *,
        doing: str = DOING,
        asked: str | None = None,
        known: Iterable[str] = OF_NUMBERS,
    ) -> SumGoal:
        """Refuses what is not an objective for single numbers.

        Parameters
        ----------
        objective
            One of `OF_NUMBERS`.
        doing, asked, known
            What the refusal says: what the caller was doing, what it was asked for, and the names
            that it knows objectives by.
        """
        if objective.partition(":")[0] not in OF_NUMBERS:
            found = f"objective={objective!r}" if asked is None else asked
            raise InputError(doing, found, f"use one of {', '.join(known)}")
        from ..tune.objectives import objective_for

        probe = cls(objective).constant(1, np.array([1.0]))
        return cls(objective_for(probe, objective).name)

    @property
    def kind(self) -> str:
        return self.objective.partition(":")[0]

    @property
    def parameter(self) -> float | None:
        text = self.objective.partition(":")[2]
        return float(text) if text else None

    @property
    def is_classes(self) -> bool:
        return self.n_classes is not None

    @property
    def n_outputs(self) -> int:
        return self.n_classes if self.n_classes is not None and self.n_classes > 2 else 1

    def output(self, base: Float[np.ndarray, "k"]) -> Output:
        """What every member does to its margins."""
        if self.n_classes == 2:
            return Output(base, link="expit", decision="margin_above", classes=(np.arange(2),))
        if self.n_classes is not None:
            classes = (np.arange(self.n_classes),)
            return Output(base, link="softmax", decision="argmax", classes=classes)
        return Output(base, link="exp" if self.kind in LOG_RATES else "identity")

    def constant(self, n_features: int, base: Float[np.ndarray, "k"]) -> DecisionMachine:
        """The machine that answers the same for every row."""
        return DecisionMachine(
            columns=Columns(n_features),
            selection=np.empty(0, np.int32),
            t=np.empty(0),
            missing=np.empty(0, np.int8),
            children=np.empty((0, 2), np.int32),
            V=np.zeros((1, self.n_outputs)),
            trees=Trees(np.array([0, 0])),
            output=self.output(base),
            source="a constant",
        )

    def best_constant(self, rows: Rows) -> Float[np.ndarray, "k"]:
        """The margin that fits the rows best where every row gets the same."""
        y, w = rows.y, rows.w / rows.w.sum()
        if self.n_classes is not None:
            share = (np.bincount(y, w, self.n_classes) + 1e-3) / (1 + 1e-3 * self.n_classes)
            log = np.log(share)
            margin: np.ndarray = log[1:] - log[:1] if self.n_classes == 2 else log - log.mean()
            return margin
        y = y.reshape(len(rows), -1)[:, 0]
        if self.kind in ("absolute", "huber", "quantile"):
            at = self.parameter if self.kind == "quantile" and self.parameter else 0.5
            order = np.argsort(y, kind="stable")
            place = min(int(np.searchsorted(np.cumsum(w[order]), at)), len(y) - 1)
            return np.array([y[order[place]]])
        mean = float(np.average(y, weights=w))
        return np.array([np.log(max(mean, 1e-9)) if self.kind in LOG_RATES else mean])

    def losses(
        self, margin: Float[np.ndarray, "m k"], y: Num[np.ndarray, "m"]
    ) -> Float[np.ndarray, "m"]:
        """The loss of each row, as `tune` counts it."""
        import torch

        from ..tune.objectives import objective_for

        probe = self.constant(1, np.zeros(self.n_outputs))
        objective = objective_for(probe, None if self.is_classes else self.objective)
        target = torch.from_numpy(np.asarray(y, np.float64).reshape(len(y), -1))
        found: np.ndarray = objective.loss(torch.from_numpy(margin.astype(float)), target).numpy()
        return found

    def alike(self, machine: DecisionMachine) -> DecisionMachine:
        """The machine over float64 columns and with this goal's output, margins as they were."""
        from ...machine import direct_sum

        bare = replace(_over_doubles(machine), output=machine.output.as_margins(), source="")
        total = direct_sum([bare])
        return replace(
            total,
            output=self.output(total.output.base.astype(np.float64)),
            source=machine.source,
            cover=None,
        )


def _over_doubles(machine: DecisionMachine) -> DecisionMachine:
    """The machine that reads rows in float64; what it read as float32 it tells apart as before."""
    old = machine.columns
    columns = Columns(old.n_features, feature=old.feature, rule=old.rule, sets=old.sets)
    t = machine.t.astype(np.float64) if old.dtype == np.float64 else widened(machine.t)
    trees = Trees(machine.trees.test_start, machine.trees.feeds)
    return replace(machine, columns=columns, t=t, trees=trees, cover=None)


def widened(t: Float[np.ndarray, "J"]) -> Float[np.ndarray, "J"]:
    """The largest float64 that is at most t once it is rounded to float32.

    Examples
    --------
    >>> t = np.array([0.1], np.float32)
    >>> T = widened(t)
    >>> bool(np.float32(T[0]) <= t[0]), bool(np.float32(np.nextafter(T[0], 1)) <= t[0])
    (True, False)
    """
    single = t.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        above = np.nextafter(single, np.float32(np.inf)).astype(np.float64)
        above = np.where(np.isinf(above) & (single > 0), 2.0**128, above)
        below = np.where(np.isneginf(single), -(2.0**128), single.astype(np.float64))
        middle = below / 2 + above / 2
        keeps = middle.astype(np.float32) <= single
    found = np.where(keeps, middle, np.nextafter(middle, -np.inf))
    return np.where(single == np.float32(np.inf), np.inf, found)
