"""The search for a hard oblique tree that classifies: two rounds of soft trees, then finishing.

The first round trains a few trees of every recipe, briefly. The second trains more trees of the
two best recipes, longer: once on the rows as they are, and once taught by the first round's best
ensemble, which takes noise out of the labels. Every tree is hardened in several ways: with its
leaves refitted to their rows, after alternating optimisation, and after alternating optimisation
towards the teacher's answers. Validation chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from .candidates import Candidates, Judged, leaf_probabilities
from .descent import LEAST
from .recipes import RECIPES, SLOW_RECIPES
from .soft_batch import SoftBatch, Teacher, taught
from .tao import HardTrees, alternate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...progress import Watch
    from .recipes import Recipe

N_BEST = 2
"""Recipes that reach the second round."""
LARGE = 2 * 10**7
"""Numbers in X beyond which the second round is two trees of a recipe."""
MANY_ROWS = 20_000
"""Rows beyond which deep trees are also trained slowly, and longer."""
MOST_FOR_SWEEPS = 2 * 10**8
"""Rows × features² beyond which alternating optimisation is left out: its regressions take longer
the more there are, and after trees that were taught slowly they gain nothing."""


@dataclass(frozen=True)
class Effort:
    """How many trees are trained, and for how long.

    Parameters
    ----------
    n_first, n_second
        Trees of each recipe in either round.
    first_steps, second_steps
        Steps of either round.
    batch_size
        Rows in a step.
    ridge, n_sweeps
        Of alternating optimisation.
    teach_together
        Whether all trees of a round may teach, beside those of one recipe.
    """

    n_first: int
    n_second: int
    first_steps: int
    second_steps: int
    batch_size: int = 128
    recipes: tuple[Recipe, ...] = RECIPES
    ridge: float = 1.0
    n_sweeps: int = 10
    teach_together: bool = False

    @classmethod
    def usual(cls, n_rows: int, n_features: int, depth: int) -> Effort:
        """More trees where they are small, more steps where there are more rows."""
        is_shallow = depth <= 5
        batch_size = 128 if is_shallow else 256
        epoch = n_rows / batch_size
        is_large = n_rows * n_features > LARGE
        is_slow = n_rows > MANY_ROWS and not is_shallow and not is_large
        return cls(
            n_first=max(1, min(3, 128 // 2**depth)),
            n_second=2 if is_large else max(2, min(6, 1024 // 2**depth)),
            first_steps=int(min(max(10 * epoch, 400), 1700 if is_slow else 1200)),
            second_steps=int(
                min(
                    max(25 * epoch, 700) if is_shallow else max(50 * epoch, 1500),
                    6000 if is_slow else 4000,
                )
            ),
            batch_size=batch_size,
            recipes=(*RECIPES, *SLOW_RECIPES) if is_slow else RECIPES,
            teach_together=is_slow,
        )

    @property
    def total(self) -> int:
        return self.first_steps + 2 * self.second_steps


class ClassSearch:
    """What is known while searching: the rows, the trees in training, the candidates so far."""

    def __init__(
        self,
        rows: Judged,
        validation: Judged,
        *,
        n_classes: int,
        depth: int,
        effort: Effort,
        seed: int,
    ) -> None:
        self.rows, self.n_classes, self.depth = rows, n_classes, depth
        self.effort, self.seed = effort, seed
        self.candidates = Candidates(validation)
        # A dense test answers for a row with a NaN by its missing side: such rows teach directions
        # nothing, and join when the tree is hard.
        is_whole = ~np.isnan(rows.X).any(1)
        if not is_whole.any():
            is_whole[:] = True
        self.X = torch.from_numpy(np.nan_to_num(rows.X[is_whole], nan=0.0)).float()
        self.target = torch.zeros(n_classes, len(self.X))
        at = torch.from_numpy(rows.y[is_whole]), torch.arange(len(self.X))
        self.target[at] = torch.from_numpy(rows.weight[is_whole]).float()
        whole = ~np.isnan(validation.X).any(1)
        self.judged_X = torch.from_numpy(validation.X[whole]).float()
        self.judged_y = torch.from_numpy(validation.y[whole])
        self.judged_weight = torch.from_numpy(validation.weight[whole]).float()
        self.batch: SoftBatch | None = None

    def run(self, watch: Watch) -> None:
        """Both rounds; what was finished stays among the candidates if this is interrupted."""
        effort = self.effort
        recipes = [r for r in effort.recipes for _ in range(effort.n_first)]
        first = self._train(recipes, self.X, self.target, effort.first_steps, 0, watch)
        self._harden(first, "")
        if self.candidates.is_perfect():
            return
        best = self._best_recipes(effort.recipes)
        recipes = [recipe for recipe in best for _ in range(effort.n_second)]
        second = self._train(recipes, self.X, self.target, effort.second_steps, 1, watch)
        # A tree that is alone in its group would be judged by its own luck: it joins the others.
        self._harden(second, "" if effort.n_first == 1 else "longer ")
        teacher = self._teacher(first, second)
        X, target = taught(teacher, self.X, self.target, n_rows=3000, seed=self.seed + 5)
        third = self._train(recipes, X, target, effort.second_steps, 2, watch)
        self._harden(third, "taught ", teacher)

    def finish_early(self) -> None:
        """Where nothing is finished yet, the trees as far as they have come."""
        if not self.candidates.groups:
            if self.batch is None:
                recipes = self.effort.recipes[:1]
                self.batch = SoftBatch.start(
                    self.X.shape[1], self.n_classes, self.depth, recipes, self.seed
                )
            self._harden(self.batch, "", sweep=False)

    def _train(
        self,
        recipes: Sequence[Recipe],
        X: torch.Tensor,
        target: torch.Tensor,
        n_steps: int,
        number: int,
        watch: Watch,
    ) -> SoftBatch:
        seed = 1000 * self.seed + 10 * number
        self.batch = SoftBatch.start(X.shape[1], self.n_classes, self.depth, recipes, seed)
        self.batch.train(
            X,
            target,
            n_steps=n_steps,
            batch_size=self.effort.batch_size,
            seed=seed + 2,
            watch=watch,
        )
        return self.batch

    def _losses(self, answer: torch.Tensor) -> np.ndarray:
        """Mean log-loss on validation of answers (R, K, m)."""
        if not len(self.judged_X):
            return np.zeros(len(answer))
        own = answer.gather(1, self.judged_y.expand(len(answer), 1, -1))[:, 0]
        weight = self.judged_weight / self.judged_weight.sum().clamp_min(1e-30)
        return -(own.add(LEAST).log() * weight).sum(1).double().numpy()

    def _harden(
        self,
        batch: SoftBatch,
        prefix: str,
        teacher: Teacher | None = None,
        *,
        sweep: bool = True,
    ) -> None:
        """Add the batch's trees to the candidates, in every finish."""
        rows = self.rows
        losses = self._losses(batch.probabilities(self.judged_X))
        trees, learned = batch.hard()
        trees = with_missing_sides(trees, rows)
        finishes = {"refitted": (trees, leaf_probabilities(trees, learned, rows))}
        if sweep and len(rows.X) * rows.X.shape[1] ** 2 <= MOST_FOR_SWEEPS:
            targets = {"swept": rows.y}
            if teacher is not None:
                targets["swept to the teacher"] = self._said(teacher)
            for finish, y in targets.items():
                swept = alternate(
                    trees,
                    rows.X,
                    y,
                    rows.weight,
                    n_classes=self.n_classes,
                    ridge=self.effort.ridge,
                    n_sweeps=self.effort.n_sweeps,
                )
                finishes[finish] = (swept, leaf_probabilities(swept, learned, rows))
        names = [recipe.name for recipe in batch.recipes]
        for finish, (found, P) in finishes.items():
            for name in dict.fromkeys(names):
                which = [i for i, other in enumerate(names) if other == name]
                group = f"{prefix}{name}, {finish}"
                self.candidates.add(group, found.keep(which), P[which], losses[which])

    def _said(self, teacher: Teacher) -> np.ndarray:
        """The teacher's class for every row; its own for a row with a NaN."""
        y = self.rows.y.copy()
        whole = ~np.isnan(self.rows.X).any(1)
        if whole.any():
            y[whole] = teacher(self.X).argmax(0).numpy()
        return y

    def _best_recipes(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """The recipes of the best groups so far."""
        ranked = [group.rsplit(", ", 1)[0] for group in self.candidates.ranked()]
        names = list(dict.fromkeys(ranked))[:N_BEST]
        return [recipe for name in names for recipe in recipes if recipe.name == name]

    def _teacher(self, *batches: SoftBatch) -> Teacher:
        """The trees whose average has the least log-loss on validation.

        Those of one recipe, or all of a round, where they may teach together.
        """
        found: list[tuple[float, int, Teacher]] = []
        for batch in batches:
            answers = batch.probabilities(self.judged_X)
            names = [recipe.name for recipe in batch.recipes]
            groups = [
                [i for i, other in enumerate(names) if other == name]
                for name in dict.fromkeys(names)
            ]
            if self.effort.teach_together:
                groups.append(list(range(len(names))))
            for which in groups:
                loss = float(self._losses(answers[which].mean(0, keepdim=True))[0])
                found.append((loss, len(found), Teacher(batch, which)))
        return min(found, key=lambda item: item[:2])[2]


def with_missing_sides(trees: HardTrees, rows: Judged) -> HardTrees:
    """The trees, a test that reads a NaN going the way of more rows."""
    is_right = trees.answers(rows.X)
    reached = trees.nodes(is_right)
    R = len(trees.W)
    goes_right = trees.goes_right.copy()
    for level, at in enumerate(reached[:-1]):
        width = 2**level
        tests = slice(width - 1, 2 * width - 1)
        side = np.take_along_axis(is_right[:, tests], at[:, None], 1)[:, 0]
        node = at + width * np.arange(R)[:, None]
        balance = np.bincount(
            node.ravel(), np.where(side, rows.weight, -rows.weight).ravel(), R * width
        )
        goes_right[:, tests] = balance.reshape(R, width) > 0
    return HardTrees(trees.W, trees.t, trees.label, goes_right, trees.slope)
