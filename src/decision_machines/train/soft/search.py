"""The search for a soft tree: recipes, more trees of the best, a teacher, all rows in the end.

Everything is judged by rows that were not trained on, soft and hard answers alike. Where no such
rows were given and some were held out, the best tree goes on learning from all rows in the end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...machine import Output
from ...progress import Verbosity, Watch
from ..fit import Fit
from ..fold import class_output, machine_of
from ..oblique.tree import class_hold_out
from ..regression.scaled_rows import number_hold_out, number_rows, number_validation
from ..rows import Rows, read_rows, read_validation
from ..scaling import Scaling
from .tree import DOING, SoftEffort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...machine import DecisionMachine
    from .descent import SoftRecipe, SoftTrees

N_BEST = 2
"""Recipes that are trained longer, taking turns."""

Scaled = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Features, targets (m, k) and weights in training's units."""


class SoftSearch:
    """The rows as given and as scaled, and the training on them."""

    def __init__(
        self,
        X: Any,
        y: Any,
        n_classes: int | None,
        depth: int,
        weight: Any,
        validation: tuple[Any, ...] | None,
        effort: SoftEffort | None,
        seed: int,
    ) -> None:
        self.n_classes, self.depth, self.seed = n_classes, depth, seed
        self.kept: list[tuple[float, SoftTrees]] = []
        self.finish = "refitted"
        self.scores: dict[str, float] = {}
        if n_classes is not None and (
            not isinstance(n_classes, (int, np.integer)) or n_classes < 1
        ):
            raise InputError(DOING, f"n_classes={n_classes!r}", "use a whole number of at least 1")

        if n_classes is None:
            self.given = number_rows(X, y, weight)
        else:
            self.given = read_rows(X, y, weight, int(n_classes), doing=DOING).weighted(DOING)
        self.is_held_out = validation is None
        if validation is not None:
            self.train, self.held = self.given, self._validation(validation)
        elif n_classes is None:
            self.train, self.held = number_hold_out(self.given, seed)
        else:
            self.train, self.held = class_hold_out(self.given, seed)
        self.nan_as_zero = np.isnan(self.given.X).any(0)
        self.scaling = Scaling.of(self._filled(self.given.X))
        self.targets = Scaling.of(self.given.y) if n_classes is None else None
        self.effort = SoftEffort.usual(len(self.train)) if effort is None else effort

    def _validation(self, given: Any) -> Rows:
        if self.n_classes is None:
            return number_validation(given, self.given)
        rows = read_validation(given, int(self.n_classes), self.given, doing=DOING)
        return rows.weighted(DOING)

    def _filled(self, X: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(X) & self.nan_as_zero, 0.0, X)

    def _scaled(self, given: Rows) -> Scaled:
        """Rows, targets and weights in training's units; a NaN left over is at the mean."""
        X, target, weight = given.X, given.y, given.w
        if self.n_classes is not None:
            target = np.eye(int(self.n_classes))[target]
        Z = np.nan_to_num(self.scaling(self._filled(X)), nan=0.0)
        if self.targets is not None:
            spread = np.where(self.targets.varies, self.targets.spread, np.inf)
            target = (target - self.targets.centre) / spread
        mean = weight.mean()
        return Z, target, weight / mean

    def run(self, verbose: Verbosity, keep_best: bool) -> Fit:
        started = time.perf_counter()
        rows, held = self._scaled(self.train), self._scaled(self.held)
        if not self.scaling.varies.any() or np.all(rows[1] == rows[1][0]):
            return self._one_leaf()
        with Watch("soft tree", self.effort.total, verbose, keep_best=keep_best) as watch:
            self._learn(rows, held, watch)
            best = min(self.kept, key=lambda pair: pair[0])[1]
            self._choose_finish(best, rows, held)
            if self.is_held_out:
                every = self._scaled(self.given)
                best = best.keep(0)
                self._train(best, every, self.effort.last_steps, 2, watch, is_going_on=True)
                self.kept.append((-np.inf, best))
                rows = every
        if not self.kept:
            self.kept.append((np.inf, self._trained(rows, self.effort.recipes[:1], 0, 0, None)))
        trees = min(self.kept, key=lambda pair: pair[0])[1]
        report = {
            "chosen": trees.recipes[0].name,
            "leaves of the hard tree": self.finish,
            "validation losses": self.scores,
            "rows": len(self.train),
            "rows held out": len(held[0]),
            "went on with all rows": self.is_held_out and not watch.interrupted,
            "interrupted": watch.interrupted,
            "seconds": time.perf_counter() - started,
        }
        soft = self._machine(trees, rows, "as learned").soften(
            "soft_tree", slope=float(trees.beta[0]), learn=("S", "t", "slope", "V")
        )
        hard = self._machine(trees, rows, self.finish)
        return Fit(hard, soft, report, watch.history)

    def _learn(self, rows: Scaled, held: Scaled, watch: Watch) -> None:
        """All recipes briefly, more trees of the best longer, and trees taught by those."""
        effort = self.effort
        first = self._trained(rows, effort.recipes, effort.first_steps, 0, watch)
        losses = self._keep(first, "", rows, held)
        best = [effort.recipes[i] for i in np.argsort(losses, kind="stable")[:N_BEST]]
        recipes = [best[i % len(best)] for i in range(effort.n_second)]
        second = self._trained(rows, recipes, effort.second_steps, 1, watch)
        losses = self._keep(second, "longer, ", rows, held)
        if self.n_classes is not None and effort.n_taught:
            chosen = second.recipes[int(np.argmin(losses))]
            third = self._taught(second, rows, [chosen] * effort.n_taught, watch)
            self._keep(third, "taught, ", rows, held)

    def _keep(self, trees: SoftTrees, prefix: str, rows: Scaled, held: Scaled) -> np.ndarray:
        """Keep the best tree of every recipe, scored by (mean + best) / 2 of all of that recipe."""
        losses = self._losses(trees, rows, held)
        names = np.array([recipe.name for recipe in trees.recipes])
        for name in dict.fromkeys(names.tolist()):
            own = np.flatnonzero(names == name)
            best = int(own[np.argmin(losses[own])])
            score = float(0.5 * losses[own].mean() + 0.5 * losses[best])
            self.scores[f"{prefix}{name}"] = score
            self.kept.append((score, trees.keep(best)))
        return losses

    def _taught(
        self, teachers: SoftTrees, rows: Scaled, recipes: list[SoftRecipe], watch: Watch
    ) -> SoftTrees:
        """Trees that learn halfway from the average answer of others, and from mixtures of rows."""
        import torch

        from ..oblique.soft_batch import taught

        def teacher(Z: Any) -> Any:
            return torch.from_numpy(teachers.answers(Z).mean(0)).float()

        Z, target, weight = (torch.from_numpy(part).float() for part in rows)
        Z, target = taught(
            teacher,
            Z,
            target.t() * weight,
            n_rows=len(Z),
            seed=self.seed + 5,
        )
        more = Z.numpy(), target.t().numpy(), np.ones(len(Z))
        return self._trained(more, recipes, self.effort.second_steps, 3, watch)

    def _choose_finish(self, best: SoftTrees, rows: Scaled, held: Scaled) -> None:
        """Whether the hard tree answers better with leaves as learned, or fitted to its rows."""
        exits = self._exits(best, 0, held[0])
        losses = {
            finish: self._loss(self._values(best, rows, finish)[exits], held)
            for finish in ("refitted", "as learned")
        }
        self.finish = min(losses, key=lambda finish: losses[finish])

    def _trained(
        self,
        rows: Scaled,
        recipes: Sequence[SoftRecipe],
        n_steps: int,
        number: int,
        watch: Watch | None,
    ) -> SoftTrees:
        from .descent import SoftTrees

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
        self,
        trees: SoftTrees,
        rows: Scaled,
        n_steps: int,
        number: int,
        watch: Watch | None,
        is_going_on: bool = False,
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

    def _losses(self, trees: SoftTrees, rows: Scaled, held: Scaled) -> np.ndarray:
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

    def _loss(self, answer: np.ndarray, held: Scaled) -> float:
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

    def _refitted(self, trees: SoftTrees, which: int, rows: Scaled) -> np.ndarray:
        """Means of the targets in each leaf, with the learned value as one row more."""
        Z, target, weight = rows
        learned = trees.values()[which].detach().double().numpy()
        exits = self._exits(trees, which, Z)
        n_leaves, k = learned.shape
        count = np.bincount(exits, weight, n_leaves)
        total = np.stack([np.bincount(exits, weight * target[:, i], n_leaves) for i in range(k)], 1)
        found: np.ndarray = (total + learned) / (count + 1.0)[:, None]
        return found

    def _values(self, trees: SoftTrees, rows: Scaled, finish: str) -> np.ndarray:
        """What the leaves of the first tree hold."""
        if finish == "refitted":
            return self._refitted(trees, 0, rows)
        return trees.values()[0].detach().double().numpy()

    def _machine(self, trees: SoftTrees, rows: Scaled, finish: str) -> DecisionMachine:
        W = trees.trees.W.detach()[0].double().numpy()
        t = trees.trees.t.detach()[0].double().numpy()
        return self._fold(W, t, self._missing_sides(trees, rows), self._values(trees, rows, finish))

    def _missing_sides(self, trees: SoftTrees, rows: Scaled) -> np.ndarray:
        """A test that reads a NaN goes the way of more rows."""
        Z, _, weight = rows
        at = self._exits(trees, 0, Z)
        goes_right = np.zeros(trees.trees.n_tests, bool)
        for level in reversed(range(self.depth)):
            balance = np.bincount(at >> 1, np.where(at & 1, weight, -weight), 2**level)
            goes_right[2**level - 1 : 2 ** (level + 1) - 1] = balance > 0
            at = at >> 1
        return goes_right

    def _fold(
        self, W: np.ndarray, t: np.ndarray, goes_right: np.ndarray, V: np.ndarray
    ) -> DecisionMachine:
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
        machine = self._fold(np.zeros((0, v)), np.zeros(0), np.zeros(0, bool), V)
        return Fit(machine, machine.soften("soft_tree"), {"chosen": "one leaf"})
