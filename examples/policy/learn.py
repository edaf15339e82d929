"""Searching the parameters of a tree layer by the cross-entropy method, scored by its hard tree.

The score of a layer is what its *hard* tree earns, so nothing is lost when it is hardened. Layers
are drawn around a mean, the best of them make the next mean and spread, and so on: a layer's
selection of features, its thresholds and its leaves are all searched together. Several short
searches start from layers of other random numbers, and the best of them is gone on with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

import decision_machines as dm

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynamics import World

DIGITS = 3
"""Decimals of thresholds: what is searched, scored and printed has no more."""
SURE = 4.0
"""How far the action of a leaf stands above the others, in logits."""
ONE_HOT = 2.0
"""A gap of logits from which on 1.5-entmax selects one feature alone."""


@dataclass(frozen=True)
class Plan:
    """How a policy is searched."""

    depth: int = 3
    starts: int = 4
    """Short searches, of which the best is gone on with."""
    short: int = 12
    """Rounds of a short search."""
    rounds: int = 40
    """Of the whole search."""
    members: int = 128
    """Layers drawn in each round."""
    kept: int = 16
    """The best of them, which make the next mean and spread."""
    fewest: int = 8
    """Episodes for each layer in the first round."""
    most: int = 64
    """And in the last."""
    limit: int = 500
    """Steps after which an episode is cut off in training."""
    checks: int = 2000
    """Other episodes, that choose among the rounds and the starts."""
    spreads: tuple[float, float, float] = (2.0, 0.7, 1.0)
    """Of logits, thresholds and leaves in the first round."""


PLANS = {"cartpole": Plan(limit=1000), "acrobot": Plan()}


class HardTrees(NamedTuple):
    """The hard trees of many layers of one depth."""

    column: np.ndarray
    """(p, J) the feature that each test reads."""
    t: np.ndarray
    """(p, J) thresholds: larger values go right."""
    action: np.ndarray
    """(p, L) of each leaf."""

    def act(self, rows: np.ndarray, tree: np.ndarray) -> np.ndarray:
        """(m,) actions for (m, n) observations, each by the tree of that number."""
        at, row = np.zeros(len(rows), int), np.arange(len(rows))
        n_tests = self.t.shape[1]
        while at[0] < n_tests:  # complete trees: all rows are on one level
            at = 2 * at + 1 + (rows[row, self.column[tree, at]] > self.t[tree, at])
        return self.action[tree, at - n_tests]

    def scores(self, world: World, states: np.ndarray, limit: int) -> np.ndarray:
        """(p,) mean returns over episodes that start in these states."""
        p, m = len(self.t), len(states)
        tree = np.repeat(np.arange(p), m)
        found = world.returns(
            lambda rows, at: self.act(rows, tree[at]), np.tile(states, (p, 1)), limit
        )
        return found.reshape(p, m).mean(1)


def new_layer(world: World, depth: int, rng: np.random.Generator) -> dm.nn.TreeLayer:
    """One tree from observations to probabilities of actions, on the scale of random play."""
    layer = dm.nn.TreeLayer(
        len(world.features),
        len(world.actions),
        depth=depth,
        trees=1,
        form="axis",
        leaves="probabilities",
        norm="fixed",
        tau=0.05,
        dtype=torch.float64,
    )
    states, seen = world.begin(256, rng), []
    for _ in range(60):
        seen.append(world.observe(states))
        states = world.move(states, rng.integers(len(world.actions), size=len(states)))
        over = world.is_over(states)
        states[over] = world.begin(int(over.sum()), rng)
    return layer.measure(torch.from_numpy(np.concatenate(seen)).double())


class Search:
    """Layers drawn around a mean: their parameters as (p, d) vectors."""

    def __init__(
        self, world: World, plan: Plan, rng: np.random.Generator, checks: np.ndarray
    ) -> None:
        self.world, self.plan, self.rng, self.checks = world, plan, rng, checks
        self.layer = new_layer(world, plan.depth, rng)
        parts = [part.detach().numpy() for part in (self.layer.logits, self.layer.t, self.layer.V)]
        self.shapes = [part.shape for part in parts]
        self.mean = np.concatenate([part.reshape(-1) for part in parts])
        self.spread = np.repeat(plan.spreads, [part.size for part in parts])
        self.first_spread = self.spread
        self.round = 0
        self.best, self.score = self.mean, -np.inf

    def trees(self, vectors: np.ndarray) -> HardTrees:
        """What the layers of these parameters harden to, with rounded thresholds."""
        logits, t, V = self._parts(vectors)
        column = logits.argmax(-1)
        mean, spread = self.layer.inputs.mean.numpy(), self.layer.inputs.spread.numpy()
        # Adding 0 makes 0 of -0.
        return HardTrees(
            column, np.round(mean[column] + spread[column] * t, DIGITS) + 0.0, V.argmax(-1)
        )

    def run(self, rounds: int) -> None:
        """Go on for some rounds."""
        plan = self.plan
        for _ in range(rounds):
            done = self.round / max(plan.rounds - 1, 1)
            drawn = self.rng.standard_normal((plan.members, len(self.mean)))
            vectors = self.mean + self.spread * drawn
            episodes = round(plan.fewest * (plan.most / plan.fewest) ** done)
            starts = self.world.begin(episodes, self.rng)
            scores = self.trees(vectors).scores(self.world, starts, plan.limit)
            best = vectors[np.argsort(-scores, kind="stable")[: plan.kept]]
            self.mean = 0.2 * self.mean + 0.8 * best.mean(0)
            self.spread = np.maximum(
                0.2 * self.spread + 0.8 * best.std(0), 0.05 * (1 - done) * self.first_spread
            )
            self.round += 1
            if self.round % 4 == 0 or self.round == plan.rounds:
                self._check(np.stack([self.mean, best[0]]))

    def _check(self, vectors: np.ndarray) -> None:
        scores = self.trees(vectors).scores(self.world, self.checks, self.plan.limit)
        at = int(scores.argmax())
        if scores[at] >= self.score:
            self.score, self.best = float(scores[at]), vectors[at]

    @torch.no_grad()
    def found(self) -> dm.nn.TreeLayer:
        """The layer of the best parameters: each test selects one feature, each leaf an action."""
        column, t, action = (torch.from_numpy(part[0]) for part in self.trees(self.best[None]))
        inputs, layer = self.layer.inputs, self.layer
        layer.logits.copy_(ONE_HOT * torch.nn.functional.one_hot(column, layer.in_features))
        layer.t.copy_((t - inputs.mean[column]) / inputs.spread[column])
        layer.V.copy_(SURE * torch.nn.functional.one_hot(action, layer.out_features))
        return layer.eval()

    def _parts(self, vectors: np.ndarray) -> list[np.ndarray]:
        sizes = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        parts = np.split(vectors, sizes, axis=1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, self.shapes, strict=True)]


def train(
    world: World, plan: Plan, seed: int, tell: Callable[[str], None] = lambda _: None
) -> tuple[dm.nn.TreeLayer, float]:
    """A layer whose hard tree earns much, and its mean return on the episodes that chose it."""
    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 1])
    checks = world.begin(plan.checks, rng)
    searches = []
    for start in range(plan.starts):
        searches.append(Search(world, plan, rng, checks))
        searches[-1].run(min(plan.short, plan.rounds))
        tell(f"start {start + 1} of {plan.starts}: {searches[-1].score:.1f}")
    best = max(searches, key=lambda search: search.score)
    while best.round < plan.rounds:
        best.run(min(4, plan.rounds - best.round))
        tell(f"round {best.round} of {plan.rounds}: {best.score:.1f}")
    return best.found(), best.score


def policy_of(layer: dm.nn.TreeLayer, world: World) -> dm.DecisionMachine:
    """The layer hardened, in words: features and actions by name, one action for each leaf.

    Leaves that say the same are merged. An action's margin is 1 where it is taken and 0 elsewhere.
    """
    machine = layer.harden()
    return replace(
        machine,
        t=np.round(machine.t, DIGITS) + 0.0,
        V=np.eye(len(world.actions))[machine.V.argmax(-1)],
        columns=replace(machine.columns, names=world.features),
        output=replace(machine.output, classes=(np.array(world.actions),)),
    ).simplify()
