"""The search for a regression tree: two rounds of gradients, leaves in closed form, caps, sweeps.

A *shape* is how many levels of tests a tree has and how many are left for caps. The first round
trains a few trees of every recipe and shape, the second more trees of the two best, longer. Every
tree's leaves are fitted by several rules, and capped where there is room. Trees of one recipe,
shape, rule and cap are a group; the group is chosen by its mean error on validation, then its tree:
where one tree of a kind fails, others may fail on rows that validation does not have. The best
group is then swept node by node, as a further one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .descent import BATCH_SIZE, RECIPES, descend
from .leaf_ridge import MOST_NUMBERS, LeafSums, from_root, ridge_towards, root_function
from .sweeps import alternate_regression
from .tree import RegressionTree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...progress import Watch
    from ..starts import Start
    from .descent import LeafRecipe
    from .scaled_rows import ScaledRows

FROM_ABOVE = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
TOWARDS = (1.0, 10.0, 100.0)
ROOT_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
CAP_SHARES = (0.0, 0.01, 0.03)
N_CAPPED = 4
"""Rules of a group of trees that are capped."""
N_SHALLOWER = 3
"""Shapes of linear leaves tried beside the deepest: room for caps, and for few rows."""
CAPS_MAY_COST = 0.005
"""Share of the loss on validation that caps on more sides may cost."""
GOOD_ENOUGH = 1e-6
"""Share of the variance left on validation at which nothing more is tried."""
MOST_FOR_SWEEPS = 2**25
"""Leaves × rows beyond which sweeps are left out."""


@dataclass(frozen=True)
class RegressionEffort:
    """How many trees are trained, and for how long."""

    n_first: int = 3
    n_second: int = 6
    first_steps: int = 800
    second_steps: int = 2000
    recipes: tuple[LeafRecipe, ...] = RECIPES

    @classmethod
    def usual(cls, n_rows: int, is_linear: bool) -> RegressionEffort:
        """More steps where there are more rows."""
        epoch = n_rows / BATCH_SIZE
        return cls(
            first_steps=int(np.clip(40 * epoch, 150, 3000)),
            second_steps=int(np.clip(100 * epoch, 400, 8000)),
        )


@dataclass(frozen=True)
class Rule:
    """How the leaves' functions are fitted: kept, or drawn to their parents' or their own."""

    name: str = "as learned"
    ridge: float = 0.0
    root_ridge: float = 1e-3

    def __str__(self) -> str:
        return self.name if not self.ridge else f"{self.name} {self.ridge:g}"


@dataclass(frozen=True)
class Cap:
    """Where leaves' answers are cut off, and at which share of their rows."""

    share: float = 0.0
    low: bool = False
    high: bool = False

    @property
    def n_sides(self) -> int:
        return int(self.low) + int(self.high)

    def __str__(self) -> str:
        sides = " and ".join(side for side in ("low", "high") if getattr(self, side))
        return f"capped {sides} at {self.share:g}" if sides else "open"


@dataclass(frozen=True)
class Judgement:
    """A tree among the candidates, and how it was made."""

    tree: RegressionTree
    origin: str
    group: str
    loss: float
    rule: Rule
    cap: Cap
    prior: np.ndarray
    """The leaves' functions as learned."""


class RegressionSearch:
    """The rows, and the candidates so far."""

    def __init__(
        self,
        rows: ScaledRows,
        judged: ScaledRows,
        *,
        depth: int,
        effort: RegressionEffort,
        is_capped: bool,
        seed: int,
    ) -> None:
        self.rows, self.judged, self.effort, self.seed = rows, judged, effort, seed
        self.depth, self.is_capped = depth, is_capped
        shallower = N_SHALLOWER if rows.U.shape[1] > 1 else 1
        least = max(depth - shallower, min(depth, 1))
        self.shapes = [d for d in range(depth, least - 1, -1) if d > 0]
        self.groups: dict[str, list[Judgement]] = {}
        self.is_constant = bool(np.all(rows.y == rows.y[0])) or rows.Z.shape[1] == 0
        self._one_function()

    @property
    def n_steps(self) -> int:
        """How many steps `run` will take, for the progress bar."""
        if self.is_constant or not self.shapes:
            return 1
        return len(self.shapes) * self.effort.first_steps + 2 * self.effort.second_steps

    def run(self, watch: Watch) -> None:
        """All rounds; what was finished stays among the candidates if this is interrupted."""
        if self.is_constant:
            return
        effort = self.effort
        recipes = [recipe for recipe in effort.recipes for _ in range(effort.n_first)]
        for depth in self.shapes:
            self._train(depth, recipes, effort.first_steps, f"depth {depth}, ", watch, depth)
        if self.rows.U.shape[1] == 1:
            self._grown()
        if self.best().loss < GOOD_ENOUGH:
            return
        tried = [(depth, recipe) for depth in self.shapes for recipe in effort.recipes]
        tried.sort(key=lambda pair: self._best_of(f"depth {pair[0]}, {pair[1].name},"))
        for i, (depth, recipe) in enumerate(tried[:2]):
            recipes = [recipe] * effort.n_second
            prefix = f"longer, depth {depth}, "
            self._train(depth, recipes, effort.second_steps, prefix, watch, 100 + i)
        self._sweep()

    # ------------------------------------------------------------------ candidates

    def best(self) -> Judgement:
        """The best tree of the best group.

        Caps guard against rows unlike any that validation has, so validation cannot tell what
        they are worth: where the same trees with caps on more sides lose next to nothing by it,
        they are taken.
        """
        group = min(self.groups, key=self._score)
        chosen = self.groups[group][0]
        bound = self._score(group) * (1 + CAPS_MAY_COST)
        for other, (found, *_) in self.groups.items():
            if (found.origin, found.rule) != (chosen.origin, chosen.rule):
                continue
            key = found.cap.n_sides, -self._score(other)
            own = self.groups[group][0].cap.n_sides, -self._score(group)
            if key > own and self._score(other) <= bound:
                group = other
        return min(self.groups[group], key=lambda found: found.loss)

    def scores(self) -> dict[str, float]:
        """The ten best groups and their scores: mean squared errors in units of the variance."""
        ranked = sorted(self.groups, key=self._score)[:10]
        return {group: self._score(group) for group in ranked}

    def refitted(self, found: Judgement, rows: ScaledRows) -> RegressionTree:
        """The tree with leaves and caps fitted to these rows by the same rules."""
        tree = found.tree.settled(rows)
        tree = tree.with_functions(self._functions(tree, found.prior, found.rule, rows))
        cap = found.cap
        if not cap.n_sides:
            return tree
        return tree.capped(
            tree.ranges(tree.exit_leaves(rows.Z), rows), cap.share, cap.low, cap.high
        )

    def _score(self, group: str) -> float:
        return float(np.mean([found.loss for found in self.groups[group]]))

    def _best_of(self, prefix: str) -> float:
        found = [self._score(group) for group in self.groups if group.startswith(prefix)]
        return min(found, default=np.inf)

    def _add(self, prefix: str, made: list[tuple[RegressionTree, np.ndarray]], depth: int) -> None:
        """Trees made alike, with their learned functions: fitted by every rule, then capped.

        The rules that serve these trees best on the whole are capped in every way that has room.
        A group thus always holds all of them: the best tree of many must not stand for itself.
        """
        exits = [tree.exit_leaves(self.rows.Z) for tree, _ in made]
        held = [tree.exit_leaves(self.judged.Z) for tree, _ in made]
        sums = [self._sums(e, self.rows, len(t.V)) for e, (t, _) in zip(exits, made, strict=True)]
        fits: list[tuple[float, int, Rule, list[RegressionTree]]] = []
        for rule in self._rules(depth) if sums[0] is not None else [Rule()]:
            trees = [
                tree.with_functions(prior if own is None else _solve(own, prior, rule))
                for (tree, prior), own in zip(made, sums, strict=True)
            ]
            losses = [self._loss(tree, e) for tree, e in zip(trees, held, strict=True)]
            fits.append((float(np.mean(losses)), len(fits), rule, trees))
            for tree, loss, (_, prior) in zip(trees, losses, made, strict=True):
                self._keep(prefix, tree, loss, rule, Cap(), prior)
        for _, _, rule, trees in sorted(fits, key=lambda fit: fit[:2])[:N_CAPPED]:
            caps = list(self._caps(depth))
            for tree, trained, e, (_, prior) in zip(trees, exits, held, made, strict=True):
                if not caps:
                    break
                ranges = tree.ranges(trained, self.rows)
                for cap in caps:
                    capped = tree.capped(ranges, cap.share, cap.low, cap.high)
                    self._keep(prefix, capped, self._loss(capped, e), rule, cap, prior)

    def _loss(self, tree: RegressionTree, exits: np.ndarray) -> float:
        """On validation, where rows exit at these leaves."""
        loss = self.judged.loss(tree.answers_of(exits, self.judged))
        return loss if np.isfinite(loss) else np.inf

    def _keep(
        self,
        prefix: str,
        tree: RegressionTree,
        loss: float,
        rule: Rule,
        cap: Cap,
        prior: np.ndarray,
    ) -> None:
        group = f"{prefix}, {rule}, {cap}"
        found = Judgement(tree, prefix, group, loss, rule, cap, prior)
        self.groups.setdefault(group, []).append(found)

    def _rules(self, depth: int) -> Iterator[Rule]:
        if depth == 0:
            yield from (Rule("one function", 1.0, root_ridge) for root_ridge in ROOT_RIDGES)
            return
        yield Rule()
        yield from (Rule("from above", ridge) for ridge in FROM_ABOVE)
        yield from (Rule("towards the learned", ridge) for ridge in TOWARDS)

    def _caps(self, depth: int) -> Iterator[Cap]:
        room = self.depth - depth if self.is_capped else 0
        for share in CAP_SHARES:
            if room >= 1:
                yield from (Cap(share, low=True), Cap(share, high=True))
            if room >= 2:
                yield Cap(share, low=True, high=True)

    # ------------------------------------------------------------------ leaves

    def _sums(self, exits: np.ndarray, rows: ScaledRows, n_leaves: int) -> LeafSums | None:
        if n_leaves * rows.U.shape[1] ** 2 > MOST_NUMBERS:
            return None
        own = rows.is_whole
        if not own.any():
            own = np.ones(len(rows), bool)
        return LeafSums.of(rows.U[own], rows.y[own], rows.weight[own], exits[own], n_leaves)

    def _functions(
        self, tree: RegressionTree, prior: np.ndarray, rule: Rule, rows: ScaledRows
    ) -> np.ndarray:
        sums = self._sums(tree.exit_leaves(rows.Z), rows, len(tree.V))
        return prior if sums is None else _solve(sums, prior, rule)

    # ------------------------------------------------------------------ where trees come from

    def _one_function(self) -> None:
        """One function, or one constant, for all rows: the least that there is to beat."""
        rows = self.rows
        p, q = rows.U.shape[1], rows.y.shape[1]
        nothing = np.zeros((0, rows.Z.shape[1])), np.zeros(0), np.zeros(0)
        prior = np.zeros((1, p, q))
        prior[0, -1] = np.average(rows.y, axis=0, weights=rows.weight)
        tree = RegressionTree.of_tests(*nothing, prior, rows)
        self._add("one leaf", [(tree, prior)], 0)

    def _train(
        self,
        depth: int,
        recipes: list[LeafRecipe],
        n_steps: int,
        prefix: str,
        watch: Watch,
        number: int,
    ) -> None:
        seed = 1000 * self.seed + 10 * number
        learned = descend(self.rows, depth, recipes, n_steps=n_steps, seed=seed, watch=watch)
        made: dict[str, list[tuple[RegressionTree, np.ndarray]]] = {}
        for W, t, slope, A, recipe in zip(
            learned.W, learned.t, learned.slope, learned.A, recipes, strict=True
        ):
            tree = RegressionTree.of_tests(W, t, np.full(len(t), slope), A, self.rows)
            made.setdefault(recipe.name, []).append((tree, A))
        for name, trees in made.items():
            self._add(f"{prefix}{name}", trees, depth)

    def _grown(self) -> None:
        """CART's trees, candidates themselves and starts for sweeps, where leaves are constants.

        With linear leaves they gained nothing, and single trees are chosen by luck.
        """
        try:
            from ..starts import cart_start
        except ImportError:
            return
        rows = self.rows
        for depth in self.shapes:
            start = cart_start(
                rows.Z,
                rows.y,
                n_classes=None,
                max_leaves=2**depth,
                max_depth=depth,
                sample_weight=rows.weight,
                rng=None,
                seed=self.seed,
            )
            W, t = _completed(start, depth)
            A = np.zeros((2**depth, rows.U.shape[1], rows.y.shape[1]))
            tree = RegressionTree.of_tests(W, t, np.full(len(t), 10.0), A, rows)
            A = self._functions(tree, A, Rule("from above", 1.0), rows)
            self._add(f"depth {depth}, grown", [(tree, A)], depth)

    def _sweep(self) -> None:
        """The trees of the best group of each origin, swept; leaves drawn to what they were."""
        ranked = sorted((g for g in self.groups if not g.startswith("one leaf")), key=self._score)
        grown = [group for group in ranked if "grown" in group][:1]
        for group in dict.fromkeys([*ranked[:1], *grown]):
            made = []
            for found in self.groups[group]:
                tree = found.tree
                if len(tree.V) * len(self.rows) > MOST_FOR_SWEEPS:
                    return
                bare = tree.with_functions(tree.A)
                ridge = max(found.rule.ridge, 1.0)
                swept = alternate_regression(bare, self.rows, tree.A, ridge=ridge)
                made.append((swept, swept.A))
            self._add(f"swept {group}", made, made[0][0].n_levels)


def _solve(sums: LeafSums, prior: np.ndarray, rule: Rule) -> np.ndarray:
    """The functions of the leaves by this rule."""
    if not rule.ridge:
        return prior
    if rule.name == "towards the learned":
        return ridge_towards(sums, prior, rule.ridge)
    return from_root(sums, root_function(sums, rule.root_ridge), rule.ridge)


def _completed(start: Start, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The tests of a tree of at most this depth in level order; absent ones send all left."""
    W = np.zeros((2**depth - 1, start.W.shape[1]))
    t = np.full(2**depth - 1, np.inf)
    if len(start.t) == 0:
        return W, t
    waiting = [(0, 0)]
    while waiting:
        node, place = waiting.pop()
        W[place], t[place] = start.W[node], start.t[node]
        for side, child in enumerate(start.children[node]):
            if child >= 0:
                waiting.append((int(child), 2 * place + 1 + side))
    return W, t
