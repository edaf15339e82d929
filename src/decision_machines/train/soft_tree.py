"""One soft oblique tree, for its soft answer; and the hard tree nearest to it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..machine import Output
from .fold import class_output, machine_of
from .scaling import Scaling
from .watch import Fit, Watch

if TYPE_CHECKING:
    from .soft_descent import SoftRecipe, SoftTrees

DOING = "training a soft tree"
MOST_DEPTH = 12


@dataclass(frozen=True)
class SoftEffort:
    """For how many steps trees are trained, and by which recipes."""

    first_steps: int
    second_steps: int
    last_steps: int
    recipes: tuple[SoftRecipe, ...]
    n_second: int = 3
    """Trees of the best recipe that are trained longer."""

    @classmethod
    def usual(cls, n_rows: int) -> SoftEffort:
        """All recipes briefly, the best of them longer, its best tree on all rows in the end."""
        from .soft_descent import BATCH_SIZE, RECIPES

        epoch = n_rows / BATCH_SIZE
        first, second, last = (int(np.clip(k * epoch, 8 * k, 80 * k)) for k in (20, 45, 12))
        return cls(first, second, last, RECIPES)

    @property
    def total(self) -> int:
        return self.first_steps + self.second_steps + self.last_steps


def soft_tree(
    X: Any,
    y: Any,
    *,
    n_classes: int | None = None,
    depth: int = 6,
    sample_weight: Any = None,
    validation: tuple | None = None,
    effort: SoftEffort | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    show: bool | None = None,
) -> Fit:
    """A soft oblique tree: its answer is an average over leaves, smooth in the features.

    A few recipes are tried, rows held out choose among them, and several trees of the chosen one
    are trained longer. Where no rows were given to choose by, the best tree goes on learning from
    all rows in the end. Features need no scaling.

    Parameters
    ----------
    X
        (m, n) features. NaN is missing: read as 0 in features where training has one.
    y
        (m,) codes 0..K-1 where `n_classes` is given, else numbers, (m,) or (m, q).
    depth
        Of the complete tree.
    validation
        (X, y) or (X, y, sample_weight) to choose by, never trained on.
    effort
        How long is trained; by default what the number of rows asks for.
    seed
        The same seed gives the same tree.
    n_threads
        Threads of torch while training; by default as it is set.
    show
        Whether to draw a progress bar; None draws it on a terminal.

    Returns
    -------
    Fit
        `soft`, the tree as a torch module; `machine`, the hard tree, its leaves as learned or
        fitted to the rows that exit there, by validation; `report`.

    Examples
    --------
    >>> import torch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> fit = soft_tree(X, y, n_classes=2, depth=1, n_threads=1, show=False)
    >>> fit.soft(torch.tensor([[1.0, 0.0], [0.0, 1.0]])).argmax(1)
    tensor([1, 0])
    """
    is_whole = isinstance(depth, (int, np.integer)) and not isinstance(depth, bool)
    if not is_whole or not 1 <= depth <= MOST_DEPTH:
        raise InputError(DOING, f"depth={depth!r}", f"use a whole number from 1 to {MOST_DEPTH}")
    from .linear_leaves import _require_torch
    from .oblique import _threads

    _require_torch()
    search = _Search(X, y, n_classes, int(depth), sample_weight, validation, effort, seed)
    with _threads(n_threads):
        return search.run(show)


class _Search:
    """The rows as given and as scaled, and the training on them."""

    def __init__(self, X, y, n_classes, depth, weight, validation, effort, seed) -> None:
        from .class_rows import class_rows
        from .regression_rows import checked

        self.n_classes, self.depth, self.seed = n_classes, depth, seed
        if n_classes is not None and (
            not isinstance(n_classes, (int, np.integer)) or n_classes < 1
        ):
            raise InputError(DOING, f"n_classes={n_classes!r}", "use a whole number from 1")

        def read(X: Any, y: Any, weight: Any, name: str):
            if n_classes is None:
                return checked(X, y, weight, name)
            X, y, weight = class_rows(X, y, weight, int(n_classes), name)
            is_there = weight > 0
            if not is_there.any():
                raise InputError(DOING, f"all {len(X)} rows have weight 0", "give one a weight")
            return X[is_there], np.eye(int(n_classes))[y[is_there]], weight[is_there]

        self.given = read(X, y, weight, "X")
        self.is_held_out = validation is None
        if validation is None:
            self.train, self.held = self._hold_out()
        else:
            X_held, y_held, *held_weight = validation
            self.train = self.given
            self.held = read(X_held, y_held, held_weight[0] if held_weight else None, "validation")
        if self.held[0].shape[1] != self.given[0].shape[1]:
            raise InputError(
                DOING,
                f"validation rows of {self.held[0].shape[1]} features beside "
                f"{self.given[0].shape[1]}",
                "give both the same features",
            )
        self.nan_as_zero = np.isnan(self.given[0]).any(0)
        self.scaling = Scaling.of(self._filled(self.given[0]))
        self.targets = Scaling.of(self.given[1]) if n_classes is None else None
        self.effort = SoftEffort.usual(len(self.train[0])) if effort is None else effort

    def _hold_out(self):
        from .class_rows import hold_out as by_class
        from .regression_rows import hold_out

        if self.n_classes is None:
            return hold_out(self.given, self.seed)
        X, target, weight = self.given
        parts = by_class((X, target.argmax(1), weight), self.seed)
        return tuple((part[0], np.eye(self.n_classes)[part[1]], part[2]) for part in parts)

    def _filled(self, X: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(X) & self.nan_as_zero, 0.0, X)

    def _scaled(self, given) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, targets and weights in training's units; a NaN left over is at the mean."""
        X, target, weight = given
        Z = np.nan_to_num(self.scaling(self._filled(X)), nan=0.0)
        if self.targets is not None:
            spread = np.where(self.targets.varies, self.targets.spread, np.inf)
            target = (target - self.targets.centre) / spread
        mean = weight.mean()
        return Z, target, weight / mean

    def run(self, show: bool | None) -> Fit:
        started = time.perf_counter()
        rows, held = self._scaled(self.train), self._scaled(self.held)
        if not self.scaling.varies.any() or np.all(rows[1] == rows[1][0]):
            return self._one_leaf()
        effort = self.effort
        kept: list[tuple[float, SoftTrees]] = []
        scores: dict[str, float] = {}
        is_whole = False
        with Watch("soft tree", total=effort.total, show=show) as watch:
            first = self._trained(rows, effort.recipes, effort.first_steps, 0, watch)
            losses = self._losses(first, rows, held)
            scores = dict(zip((r.name for r in effort.recipes), losses.tolist(), strict=True))
            chosen = int(np.argmin(losses))
            kept.append((float(losses[chosen]), first.keep(chosen)))
            again = [effort.recipes[chosen]] * effort.n_second
            second = self._trained(rows, again, effort.second_steps, 1, watch)
            losses = self._losses(second, rows, held)
            scores[f"longer, {again[0].name}"] = float(losses.min())
            kept.append((float(losses.min()), second.keep(int(np.argmin(losses)))))
            if self.is_held_out:
                trees = min(kept, key=lambda pair: pair[0])[1].keep(0)
                self._train(trees, self._scaled(self.given), effort.last_steps, 2, watch, True)
                kept.append((-np.inf, trees))
                is_whole = True
        if not kept:
            kept.append((np.inf, self._trained(rows, effort.recipes[:1], 0, 0, None)))
        trees = min(kept, key=lambda pair: pair[0])[1]
        # What the leaves of the hard tree hold is chosen by trees that have not seen the rows.
        judged = min(kept, key=lambda pair: pair[0] if pair[0] > -np.inf else np.inf)[1]
        finish = self._finish(judged, rows, held)
        soft, hard = self._machines(trees, self._scaled(self.given) if is_whole else rows, finish)
        report = {
            "chosen": trees.recipes[0].name,
            "leaves of the hard tree": finish,
            "validation losses": scores,
            "rows": len(rows[0]),
            "rows held out": len(held[0]),
            "went on with all rows": is_whole,
            "interrupted": watch.interrupted,
            "seconds": time.perf_counter() - started,
        }
        return Fit(hard, soft, report, watch.history)

    def _trained(self, rows, recipes, n_steps: int, number: int, watch) -> SoftTrees:
        from .soft_descent import SoftTrees

        trees = SoftTrees.start(
            rows[0].shape[1],
            rows[1].shape[1],
            self.depth,
            recipes,
            is_classifier=self.n_classes is not None,
            seed=1000 * self.seed + 10 * number,
        )
        self._train(trees, rows, n_steps, number, watch)
        return trees

    def _train(
        self, trees: SoftTrees, rows, n_steps: int, number: int, watch, is_going_on: bool = False
    ) -> None:
        import torch

        Z, target, weight = (torch.from_numpy(part).float() for part in rows)
        trees.train(
            Z,
            target.t(),
            weight,
            n_steps=n_steps,
            seed=1000 * self.seed + 10 * number + 2,
            is_going_on=is_going_on,
            watch=watch,
        )

    def _losses(self, trees: SoftTrees, rows, held) -> np.ndarray:
        """Of every tree, its soft and its hard answer alike: squared error, or share of errors."""
        import torch

        Z = held[0]
        soft = trees.answers(torch.from_numpy(Z).float())
        found = []
        for which in range(len(soft)):
            exits = self._exits(trees, which, Z)
            hard = self._refitted(trees, which, rows)[exits]
            found.append(self._loss(soft[which].T, held) + self._loss(hard, held))
        losses = 0.5 * np.array(found)
        return np.where(np.isfinite(losses), losses, np.inf)

    def _loss(self, answer: np.ndarray, held) -> float:
        _, target, weight = held
        if self.n_classes is None:
            lost = ((answer - target) ** 2).mean(1)
        else:
            lost = (answer.argmax(1) != target.argmax(1)).astype(float)
        return float(np.average(lost, weights=weight))

    # ------------------------------------------------------------------ hardening

    def _exits(self, trees: SoftTrees, which: int, Z: np.ndarray) -> np.ndarray:
        import torch

        return trees.trees.exit_leaves(torch.from_numpy(Z).float())[which].numpy()

    def _refitted(self, trees: SoftTrees, which: int, rows) -> np.ndarray:
        """Means of the targets in each leaf, with the learned value as one row more."""
        Z, target, weight = rows
        learned = trees.values()[which].detach().double().numpy()
        exits = self._exits(trees, which, Z)
        n_leaves, k = learned.shape
        count = np.bincount(exits, weight, n_leaves)
        total = np.stack([np.bincount(exits, weight * target[:, i], n_leaves) for i in range(k)], 1)
        return (total + learned) / (count + 1.0)[:, None]

    def _finish(self, trees: SoftTrees, rows, held) -> str:
        """Whether the hard tree answers better with leaves as learned, or fitted to its rows."""
        exits = self._exits(trees, 0, held[0])
        values = {
            "as learned": trees.values()[0].detach().double().numpy(),
            "refitted": self._refitted(trees, 0, rows),
        }
        return min(values, key=lambda name: self._loss(values[name][exits], held))

    def _machines(self, trees: SoftTrees, rows, finish: str) -> tuple[Any, Any]:
        W = trees.trees.W.detach()[0].double().numpy()
        t = trees.trees.t.detach()[0].double().numpy()
        goes_right = self._missing_sides(trees, rows)
        learned = trees.values()[0].detach().double().numpy()
        soft = self._machine(W, t, goes_right, learned)
        net = soft.soften("soft_tree", slope=float(trees.beta[0]), learn=("S", "t", "slope", "V"))
        if finish == "as learned":
            return net, soft
        return net, self._machine(W, t, goes_right, self._refitted(trees, 0, rows))

    def _missing_sides(self, trees: SoftTrees, rows) -> np.ndarray:
        """A test that reads a NaN goes the way of more rows."""
        Z, _, weight = rows
        at = self._exits(trees, 0, Z)
        goes_right = np.zeros(trees.trees.n_tests, bool)
        for level in reversed(range(self.depth)):
            balance = np.bincount(at >> 1, np.where(at & 1, weight, -weight), 2**level)
            goes_right[2**level - 1 : 2 ** (level + 1) - 1] = balance > 0
            at = at >> 1
        return goes_right

    def _machine(self, W, t, goes_right, V) -> Any:
        if self.targets is not None:
            spread = np.where(self.targets.varies, self.targets.spread, 0.0)
            V = self.targets.centre + spread * V
        return machine_of(
            W,
            t,
            goes_right,
            V,
            self.scaling,
            output=Output(np.zeros(V.shape[1]))
            if self.n_classes is None
            else class_output(self.n_classes),
            nan_as_zero=self.nan_as_zero,
            source="soft oblique tree",
        )

    def _one_leaf(self) -> Fit:
        """There is nothing to tell apart, or nothing to tell it by."""
        _, target, weight = self._scaled(self.given)
        V = np.average(target, axis=0, weights=weight)[None]
        v = int(self.scaling.varies.sum())
        machine = self._machine(np.zeros((0, v)), np.zeros(0), np.zeros(0, bool), V)
        return Fit(machine, machine.soften("soft_tree"), {"chosen": "one leaf"})
