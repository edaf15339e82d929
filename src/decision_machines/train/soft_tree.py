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
    recipes: tuple[SoftRecipe, ...]

    @classmethod
    def usual(cls, n_rows: int) -> SoftEffort:
        """All recipes briefly, then the best of them longer."""
        from .soft_descent import BATCH_SIZE, RECIPES

        epoch = n_rows / BATCH_SIZE
        first = int(np.clip(25 * epoch, 200, 2500))
        return cls(first, int(np.clip(90 * epoch, 600, 9000)), RECIPES)


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

    A few recipes are tried, rows held out choose among them, and the chosen one is trained longer:
    on all rows where none were given to choose by. Features need no scaling.

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
    >>> fit = soft_tree(X, (X[:, 0] > X[:, 1]).astype(int), n_classes=2, depth=1, show=False)
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
        total = effort.first_steps + effort.second_steps
        best: tuple[float, Any] | None = None
        scores: dict[str, float] = {}
        with Watch("soft tree", total=total, show=show) as watch:
            first = self._trained(rows, effort.recipes, effort.first_steps, 0, watch)
            losses = self._losses(first, held)
            scores = dict(zip((r.name for r in effort.recipes), losses.tolist(), strict=True))
            chosen = int(np.argmin(losses))
            best = float(losses[chosen]), (first, chosen)
            finish = self._finish(first, chosen, rows, held)
            longer = self._scaled(self.given) if self.is_held_out else rows
            recipe = effort.recipes[chosen]
            second = self._trained(longer, [recipe], effort.second_steps, 1, watch)
            loss = float(self._losses(second, held)[0])
            scores[f"longer {recipe.name}"] = loss
            if self.is_held_out or loss <= best[0]:
                best, rows = (loss, (second, 0)), longer
                if not self.is_held_out:
                    finish = self._finish(second, 0, rows, held)
        if best is None:
            start = self._trained(rows, effort.recipes[:1], 0, 0, None)
            best, finish = (float("nan"), (start, 0)), "refitted"
        trees, which = best[1]
        soft, hard = self._machines(trees, which, rows, finish)
        report = {
            "chosen": trees.recipes[which].name,
            "leaves of the hard tree": finish,
            "validation losses": scores,
            "rows": len(rows[0]),
            "rows held out": len(held[0]),
            "trained again on all rows": self.is_held_out and trees is not first,
            "interrupted": watch.interrupted,
            "seconds": time.perf_counter() - started,
        }
        return Fit(hard, soft, report, watch.history)

    def _trained(self, rows, recipes, n_steps: int, number: int, watch) -> SoftTrees:
        import torch

        from .soft_descent import SoftTrees

        Z, target, weight = (torch.from_numpy(part).float() for part in rows)
        seed = 1000 * self.seed + 10 * number
        trees = SoftTrees.start(
            Z.shape[1],
            target.shape[1],
            self.depth,
            recipes,
            is_classifier=self.n_classes is not None,
            seed=seed,
        )
        trees.train(Z, target.t(), weight, n_steps=n_steps, seed=seed + 2, watch=watch)
        return trees

    def _losses(self, trees: SoftTrees, rows) -> np.ndarray:
        """Of every tree's soft answer: log-loss, or mean squared error."""
        import torch

        Z, target, weight = rows
        answer = trees.answers(torch.from_numpy(Z).float())
        if self.n_classes is None:
            lost = ((answer - target.T) ** 2).mean(1)
        else:
            lost = -(np.log(answer + 1e-7) * target.T).sum(1)
        losses = np.average(lost, axis=1, weights=weight)
        return np.where(np.isfinite(losses), losses, np.inf)

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

    def _finish(self, trees: SoftTrees, which: int, rows, held) -> str:
        """Whether the hard tree answers better with leaves as learned, or fitted to its rows."""
        Z, target, weight = held
        exits = self._exits(trees, which, Z)
        losses = {}
        for name, values in (
            ("as learned", trees.values()[which].detach().double().numpy()),
            ("refitted", self._refitted(trees, which, rows)),
        ):
            answer = values[exits]
            if self.n_classes is None:
                lost = ((answer - target) ** 2).mean(1)
            else:
                lost = (answer.argmax(1) != target.argmax(1)).astype(float)
            losses[name] = float(np.average(lost, weights=weight))
        return min(losses, key=lambda name: losses[name])

    def _machines(self, trees: SoftTrees, which: int, rows, finish: str) -> tuple[Any, Any]:
        W = trees.trees.W.detach()[which].double().numpy()
        t = trees.trees.t.detach()[which].double().numpy()
        goes_right = self._missing_sides(trees, which, rows)
        learned = trees.values()[which].detach().double().numpy()
        soft = self._machine(W, t, goes_right, learned)
        net = soft.soften(
            "soft_tree", slope=float(trees.beta[which]), learn=("S", "t", "slope", "V")
        )
        if finish == "as learned":
            return net, soft
        return net, self._machine(W, t, goes_right, self._refitted(trees, which, rows))

    def _missing_sides(self, trees: SoftTrees, which: int, rows) -> np.ndarray:
        """A test that reads a NaN goes the way of more rows."""
        Z, _, weight = rows
        at = self._exits(trees, which, Z)
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
