"""A good tree to start from: the better it is, the more the search can leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...run.engines.processor import cpu_count
from ..axis.nodes import Nodes
from ..axis.ranks import Ranks
from ..axis.search import Limits as SearchLimits
from ..axis.search import Searches, Setting
from ..axis.standard_rows import standardised
from ..rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tree import Limits

FEWEST_LEVELS = 4
"""Trees of fewer are found and proven in less time than a start takes."""
N_MOVES = 200


def start_tree(
    rows: Rows,
    n_classes: int | None,
    limits: Limits,
    label_features: Sequence[int],
    seed: int,
    n_threads: int | None,
) -> tuple[Nodes, np.ndarray] | None:
    """What a short local search finds, and the leaf of each row; None where it is not worth it."""
    if limits.max_depth < FEWEST_LEVELS or limits.most_leaves < 4:
        return None
    y = rows.y if n_classes is not None else rows.y.reshape(len(rows), -1)
    given = standardised(Rows(rows.X, y, rows.w), n_classes)
    least = limits.min_samples_leaf
    aims = [Setting(least=least, n_moves=N_MOVES)]
    if n_classes is not None:
        aims = [
            Setting(gini=0.1, error=1.0, least=least, n_moves=N_MOVES),
            Setting(gini=0.5, error=1.0, least=least, n_moves=N_MOVES),
        ]
    bounds = SearchLimits(limits.most_leaves, limits.max_depth, seed, n_threads or cpu_count())
    ranks = Ranks.of(given.X)
    searches = Searches(given, ranks, aims, bounds)
    for _ in searches.grow():
        pass
    for _ in searches.advance(1.0):
        pass
    which = int(np.argmin([searches.loss(i) for i in range(len(aims))]))
    nodes = searches.nodes(which)
    exits = nodes.exits(rows.X)
    leaf = (np.cumsum(nodes.left < 0) - 1)[exits]
    for feature in label_features:  # a cut of the labels' codes is a set of them
        tests = (nodes.left >= 0) & (nodes.feature == feature)
        cuts = np.clip(np.floor(nodes.t[tests]), -1, 62).astype(np.int64)
        nodes.t[tests] = np.where(np.isinf(nodes.t[tests]), np.inf, 2.0 ** (cuts + 1) - 1)
    return nodes, leaf
