"""Members that feed each other: chains of targets, and boosting that starts at a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .decide import decide
from .decide import probabilities as probabilities_of

if TYPE_CHECKING:
    from .assemblies import Asked


def _chained(asked: Asked, method: str) -> np.ndarray:
    """Every member's answer; each reads the features and the answers before it."""
    from .assemblies import Asked as Question

    first: Any = asked.assembly.members[0]
    X = first.features(asked.X, dtype=np.float64)
    fed, found = np.zeros((len(X), asked.n)), np.zeros((len(X), asked.n))
    for i in range(asked.n):
        rows = np.hstack([X, fed[:, :i]])
        given = rows if i else asked.X
        question = Question(asked.assembly, given, asked.how)
        fed[:, i] = _one(question, i, asked.assembly.words["methods"][i])
        found[:, i] = _one(question, i, method)
    order = asked.numbers("order")
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return found[:, inverse]


def _one(asked: Asked, member: int, method: str) -> np.ndarray:
    if method == "predict":
        return asked.predict(member)
    if method == "decision_function":
        return asked.decision(member)
    return np.asarray(asked.proba(member))[:, 1]


def chain_prediction(asked: Asked) -> np.ndarray:
    return _chained(asked, "predict")


def chain_probabilities(asked: Asked) -> np.ndarray:
    """(m, targets) the probability of the second class of every target."""
    return _chained(asked, "predict_proba")


def _start(asked: Asked) -> np.ndarray:
    """What the first member answers, as margins."""
    from scipy.special import logit
    from scipy.stats import gmean

    link = asked.assembly.words["link"][0]
    if asked.assembly.classes is None:
        found = asked.predict(0).astype(np.float64)
        return found.reshape(-1, 1) if found.ndim == 1 else found
    least = float(asked.numbers("least"))
    p = np.asarray(asked.proba(0))
    p = p if link == "MultinomialLogit" else p[:, 1]
    p = np.clip(p, least, 1 - least, dtype=np.float64)
    if link == "MultinomialLogit":
        return np.asarray(np.log(p / gmean(p, axis=1)[:, np.newaxis]))
    return np.asarray(logit(p) if link == "LogitLink" else 0.5 * logit(p)).reshape(-1, 1)


def _boosted(asked: Asked) -> np.ndarray:
    """Margins: the stages' values added to the start one after the other."""
    total = np.array(_start(asked))
    stages: Any = asked.assembly.members[1]
    leaves = stages.apply(asked.X, **asked.how) + stages.trees.leaf_start[:-1]
    for tree, output in enumerate(stages.trees.feeds):
        total[:, max(int(output), 0)] += stages.V[leaves[:, tree], 0]
    return total


def boosted_prediction(asked: Asked) -> np.ndarray:
    stages: Any = asked.assembly.members[1]
    return decide(stages, _boosted(asked))


def boosted_probabilities(asked: Asked) -> Any:
    stages: Any = asked.assembly.members[1]
    return probabilities_of(stages, _boosted(asked))
