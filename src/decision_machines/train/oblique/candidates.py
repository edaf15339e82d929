"""Hard trees that compete for being the one that is returned, and the choice by validation.

Trees of one recipe and one finish are a group. The group is chosen first, by the mean and the best
of its trees on validation, (mean + best) / 2; then its tree. A recipe whose trees are all good
is so for a reason, a single lucky tree may not be. A tree's score is its accuracy less a share of
the log-loss of the soft tree it came from, which sees more than the accuracy of few rows does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .tao import HardTrees, leaf_counts

if TYPE_CHECKING:
    from jaxtyping import Float, Int

LOSS_SHARE = 0.3
"""How much accuracy a unit of log-loss is worth."""


@dataclass(frozen=True)
class Judged:
    """Rows and what is right for them, scaled as in training; NaN is missing."""

    X: Float[np.ndarray, "m n"]
    y: Int[np.ndarray, "m"]
    weight: Float[np.ndarray, "m"]

    def accuracy(self, trees: HardTrees) -> Float[np.ndarray, "R"]:
        """Share of the weight that each tree answers rightly."""
        is_right = trees.predict(self.X) == self.y
        found: np.ndarray = (is_right * self.weight).sum(1) / max(float(self.weight.sum()), 1e-300)
        return found


@dataclass(frozen=True)
class Candidate:
    """One tree, its leaves' probabilities, and where it came from."""

    trees: HardTrees
    """A batch of one."""
    P: Float[np.ndarray, "L K"]
    group: str
    accuracy: float


@dataclass
class Candidates:
    """Groups of trees with their scores on validation."""

    validation: Judged
    groups: dict[str, list[tuple[HardTrees, np.ndarray, np.ndarray, np.ndarray]]] = field(
        default_factory=dict
    )

    def add(
        self,
        group: str,
        trees: HardTrees,
        P: Float[np.ndarray, "R L K"],
        loss: Float[np.ndarray, "R"],
    ) -> Float[np.ndarray, "R"]:
        """Add trees that answer the largest of P; `loss` is that of the soft trees they were."""
        trees = replace(trees, label=P.argmax(2))
        accuracy = self.validation.accuracy(trees)
        self.groups.setdefault(group, []).append((trees, P, accuracy, loss))
        return accuracy

    def score(self, group: str) -> float:
        """(mean + best) / 2 of the group's trees on validation."""
        found = np.concatenate([_scores(*part[2:]) for part in self.groups[group]])
        return float(0.5 * found.mean() + 0.5 * found.max())

    def ranked(self) -> list[str]:
        """Names of the groups, the best first; the earlier of equal ones."""
        return sorted(self.groups, key=lambda group: -self.score(group))

    def is_perfect(self) -> bool:
        """Whether all trees of some group answer every row rightly."""
        return any(all(np.all(part[2] == 1.0) for part in parts) for parts in self.groups.values())

    def best(self) -> Candidate:
        """The best tree of the best group."""
        group = self.ranked()[0]
        parts = self.groups[group]
        i = int(np.argmax([_scores(*part[2:]).max() for part in parts]))
        trees, P, accuracy, loss = parts[i]
        r = int(np.argmax(_scores(accuracy, loss)))
        return Candidate(trees.keep([r]), P[r], group, float(accuracy[r]))


def _scores(accuracy: np.ndarray, loss: np.ndarray) -> np.ndarray:
    return accuracy - LOSS_SHARE * loss


def leaf_probabilities(
    trees: HardTrees,
    learned: Float[np.ndarray, "R L K"],
    rows: Judged,
) -> Float[np.ndarray, "R L K"]:
    """Classes among the rows of each leaf, with the learned probabilities as one row more."""
    _, n_leaves, n_classes = learned.shape
    exits = trees.exit_leaves(rows.X)
    counts = leaf_counts(exits, rows.y, rows.weight, n_leaves, n_classes) + learned
    found: np.ndarray = counts / counts.sum(2, keepdims=True)
    return found
