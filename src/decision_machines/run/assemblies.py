"""The rules of assemblies, each computed as the source computes it: same operations, same order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..machine.assembly import Assembly
from ..machine.soft import RULE as SOFT
from . import chains, distributions, soft, survival
from . import quantiles as of_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine import DecisionMachine

    Member = DecisionMachine | Assembly


@dataclass(frozen=True)
class Asked:
    """An assembly with the rows that it is asked about."""

    assembly: Assembly
    X: Any
    how: dict[str, Any]

    def predict(self, member: int) -> np.ndarray:
        return self.assembly.members[member].predict(self.X, **self.how)

    def proba(self, member: int) -> Any:
        return self.assembly.members[member].predict_proba(self.X, **self.how)

    def decision(self, member: int) -> np.ndarray:
        """scikit-learn's decision_function: margins, a vector where there is one."""
        margin = self.margin(member)
        return np.asarray(margin[:, 0] if margin.shape[1] == 1 else margin)

    def margin(self, member: int) -> np.ndarray:
        machine: Any = self.assembly.members[member]
        return np.asarray(machine.margin(self.X, **self.how))

    def by_method(self, member: int) -> np.ndarray:
        """What the source asks this member for."""
        method = self.assembly.words["methods"][member]
        if method == "predict":
            return self.predict(member)
        return self.decision(member) if method == "decision_function" else self.proba(member)

    def score(self, member: int) -> np.ndarray:
        """The score of the second of two classes."""
        found = self.by_method(member)
        return found[:, 1] if found.ndim == 2 else found

    @property
    def n(self) -> int:
        return len(self.assembly.members)

    def numbers(self, name: str) -> np.ndarray:
        return self.assembly.numbers[name]


def predict(assembly: Assembly, X: Any, *, n_threads: int | None, engine: str) -> np.ndarray:
    """See `Assembly.predict`."""
    asked = Asked(assembly, X, {"n_threads": n_threads, "engine": engine})
    own = PREDICT.get(assembly.rule)
    if own is not None:
        return own(asked)
    assert assembly.classes is not None
    return np.asarray(assembly.classes[np.argmax(PROBABILITIES[assembly.rule](asked), axis=1)])


def predict_proba(assembly: Assembly, X: Any, *, n_threads: int | None, engine: str) -> Any:
    """See `Assembly.predict_proba`."""
    if not has(assembly, "predict_proba"):
        raise InputError(
            "predicting probabilities",
            f"the {assembly.rule} of {assembly.source or 'an assembly'} has none",
            "use predict",
        )
    asked = Asked(assembly, X, {"n_threads": n_threads, "engine": engine})
    return PROBABILITIES[assembly.rule](asked)


# ---------------------------------------------------------------------- votes


def _weights(asked: Asked) -> np.ndarray | None:
    return asked.assembly.numbers.get("weights")


def _average(every: np.ndarray, axis: int, weights: np.ndarray | None) -> np.ndarray:
    """As NumPy's average, which divides by the number of rows even where there are none."""
    if weights is None:
        return np.asarray(every.mean(axis=axis))
    return np.asarray(np.average(every, axis=axis, weights=weights))


def mean_of_probabilities(asked: Asked) -> np.ndarray:
    every = np.asarray([asked.proba(i) for i in range(asked.n)])
    return _average(every, 0, _weights(asked))


def majority(asked: Asked) -> np.ndarray:
    """The class that most members answer, the first where several are as many."""
    answers = np.asarray([asked.predict(i) for i in range(asked.n)]).T.astype(np.intp)
    weights = _weights(asked)
    found = np.array([np.argmax(np.bincount(row, weights=weights)) for row in answers], np.intp)
    assert asked.assembly.classes is not None
    return asked.assembly.classes[found]


def mean_of_values(asked: Asked) -> np.ndarray:
    every = np.asarray([asked.predict(i) for i in range(asked.n)]).T
    return _average(every, 1, _weights(asked))


def sum_of_probabilities(asked: Asked) -> np.ndarray:
    """A bag: members' probabilities added one after the other, then divided by their number."""
    classes = asked.assembly.classes
    assert classes is not None
    total: Any = None
    for i, seen in enumerate(asked.assembly.words["classes of members"]):
        proba = asked.proba(i)
        if total is None:
            total = np.zeros((len(proba), len(classes)))
        if seen == "all":
            total += proba
        else:
            total[:, [int(c) for c in seen.split()]] += proba
    return np.asarray(total / asked.n)


def sum_of_values(asked: Asked) -> np.ndarray:
    return np.asarray(sum(asked.predict(i) for i in range(asked.n)) / asked.n)


# ---------------------------------------------------------------------- calibrations


def calibrated(asked: Asked) -> np.ndarray:
    """The mean over members of their scores, each through its calibrators."""
    mean: Any = None
    for i in range(asked.n):
        found = _calibrated_member(asked, i)
        mean = np.zeros(found.shape) if mean is None else mean
        mean += found
    return np.asarray(mean / asked.n)


def _calibrated_member(asked: Asked, i: int) -> np.ndarray:
    numbers = asked.assembly.numbers
    assert asked.assembly.classes is not None
    n_classes = len(asked.assembly.classes)
    scores = asked.by_method(i)
    is_decision = asked.assembly.words["methods"][i] == "decision_function"
    if f"{i}.beta" in numbers:
        return _one_at_most(_temperature(scores, is_decision, float(numbers[f"{i}.beta"])))
    if scores.ndim == 2 and n_classes == 2:
        scores = scores[:, 1]
    columns = scores.reshape(-1, 1) if scores.ndim == 1 else scores
    proba = np.zeros((len(columns), n_classes))
    for c, at in enumerate(numbers[f"{i}.classes"].tolist()):
        if c >= columns.shape[1]:
            break
        proba[:, at + (n_classes == 2)] = _bent(numbers, f"{i}.{c}", columns[:, c])
    if n_classes == 2:
        proba[:, 0] = 1.0 - proba[:, 1]
    else:
        total = np.sum(proba, axis=1)[:, None]
        proba = np.divide(proba, total, out=np.full_like(proba, 1 / n_classes), where=total != 0)
    return _one_at_most(proba)


def _bent(numbers: Any, name: str, scores: np.ndarray) -> np.ndarray:
    """Scores through one calibrator: a sigmoid, or an isotonic function."""
    if f"{name}.sigmoid" in numbers:
        from scipy.special import expit

        a, b = numbers[f"{name}.sigmoid"]
        return np.asarray(expit(-(a * scores + b)))
    from scipy.interpolate import interp1d

    x, y = numbers[f"{name}.x"], numbers[f"{name}.y"]
    low, high = numbers[f"{name}.range"]
    scores = np.clip(scores.astype(x.dtype), low, high)
    if len(y) == 1:
        return np.asarray(y.repeat(scores.shape))
    return np.asarray(
        interp1d(x, y, kind="linear", bounds_error=False)(scores).astype(scores.dtype)
    )


def _temperature(scores: np.ndarray, is_decision: bool, beta: float) -> np.ndarray:
    """Scores divided by a temperature, then the softmax; probabilities by their logarithms.

    As the source does, rows given together are taken for probabilities where all look so.
    """
    if scores.ndim == 1:
        scores = np.concatenate([-scores[:, None], scores[:, None]], axis=1)
        return softmax(beta * scores)
    if not is_decision and scores.shape[1] == 2:
        second = scores[:, 1:]
        scores = np.concatenate([1 - second, second], axis=1)
    lie_between = np.all((scores >= 0) & (scores <= 1))
    if lie_between and np.all(np.isclose(np.sum(scores, axis=1), 1.0)):
        scores = np.log(scores + 1e-12)
    return softmax(beta * scores)


def _one_at_most(proba: np.ndarray) -> np.ndarray:
    proba[(proba > 1.0) & (proba <= 1.0 + 1e-5)] = 1.0
    return proba


def softmax(x: np.ndarray) -> np.ndarray:
    """scikit-learn's softmax of rows."""
    x = x - np.max(x, axis=1).reshape((-1, 1))
    e = np.exp(x)
    return np.asarray(e / np.sum(e, axis=1).reshape((-1, 1)))


def threshold(asked: Asked) -> np.ndarray:
    """The positive label where the score is at least the threshold."""
    assert asked.assembly.classes is not None
    at, positive = float(asked.numbers("threshold")), int(asked.numbers("positive"))
    found = asked.by_method(0)
    one = found if positive == 1 else -found
    score = found[:, positive] if found.ndim == 2 else one
    labels = asked.assembly.classes[[1 - positive, positive]]
    return labels[(score >= at).astype(np.intp)]


# ---------------------------------------------------------------------- stacks


def _stacked_rows(asked: Asked) -> np.ndarray:
    """What the members answer, side by side; of two classes the second's probability alone."""
    parts = []
    for i, method in enumerate(asked.assembly.words["methods"]):
        found = asked.by_method(i)
        if found.ndim == 1:
            found = found.reshape(-1, 1)
        elif method == "predict_proba" and found.shape[1] == 2:
            found = found[:, 1:]
        parts.append(found)
    if "passthrough" in asked.assembly.numbers:
        parts.append(_passed_through(asked, parts))
    return np.hstack(parts)


def _passed_through(asked: Asked, parts: list[np.ndarray]) -> np.ndarray:
    """The features themselves, which a stack's last model reads after the members' answers."""
    if isinstance(asked.X, np.ndarray) and asked.X.dtype.kind in "biuf":
        return asked.X
    first = asked.assembly.machines[0]
    if all(part.dtype == np.float32 for part in parts) or first.columns.categories:
        raise InputError(
            "predicting with a stack that passes features through",
            "rows that are not an array of numbers",
            "give a NumPy array of numbers",
        )
    found: np.ndarray = first.features(asked.X, dtype=np.float64)
    return found


def stacked_probabilities(asked: Asked) -> Any:
    return asked.assembly.members[-1].predict_proba(_stacked_rows(asked), **asked.how)


def stacked_prediction(asked: Asked) -> np.ndarray:
    """The last member's answer; it knows classes by their numbers."""
    found = asked.assembly.members[-1].predict(_stacked_rows(asked), **asked.how)
    classes = asked.assembly.classes
    return found if classes is None else classes[found]


def _linear_scores(asked: Asked) -> np.ndarray:
    coef, intercept = asked.numbers("coef"), asked.numbers("intercept")
    if asked.assembly.numbers.get("by_column", False):
        coef = np.asfortranarray(coef)
    X = np.asarray(asked.X)
    scores = X @ coef if coef.ndim == 1 else X @ coef.T
    scores = scores + intercept
    is_row = scores.ndim == 2 and scores.shape[1] == 1
    return np.asarray(
        scores.reshape(-1) if is_row and asked.assembly.classes is not None else scores
    )


def linear_probabilities(asked: Asked) -> np.ndarray:
    scores = _linear_scores(asked)
    if asked.assembly.words["kind"] == ("softmax",):
        return softmax(scores)
    from scipy.special import expit

    p = expit(scores)
    return np.stack([1 - p, p], axis=1)


def linear_prediction(asked: Asked) -> np.ndarray:
    scores, classes = _linear_scores(asked), asked.assembly.classes
    if classes is None:
        return scores
    if scores.ndim == 1:
        return classes[(scores > 0).astype(np.intp)]
    return np.asarray(classes[np.argmax(scores, axis=1)])


# ---------------------------------------------------------------------- targets


def one_against_the_rest(asked: Asked) -> np.ndarray:
    Y = np.array([asked.proba(i)[:, 1] for i in range(asked.n)]).T
    if asked.n == 1:
        Y = np.concatenate(((1 - Y), Y), axis=1)
    total = np.sum(Y, axis=1)[:, np.newaxis]
    return np.asarray(np.divide(Y, total, out=Y, where=total != 0))


def rest_prediction(asked: Asked) -> np.ndarray:
    classes = asked.assembly.classes
    assert classes is not None
    if asked.n == 1:
        at = 0.0 if asked.assembly.words["methods"][0] == "decision_function" else 0.5
        return classes[(asked.score(0) > at).astype(np.intp)]
    scores = np.stack([asked.score(i) for i in range(asked.n)], axis=1)
    return np.asarray(classes[np.argmax(scores, axis=1)])


def one_against_one(asked: Asked) -> np.ndarray:
    """Votes, with confidences to break ties."""
    classes = asked.assembly.classes
    assert classes is not None
    k = len(classes)
    answers = np.vstack([asked.predict(i) for i in range(asked.n)]).T
    confidence = np.vstack([asked.score(i) for i in range(asked.n)]).T
    votes, total = np.zeros((len(answers), k)), np.zeros((len(answers), k))
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    for at, (i, j) in enumerate(pairs):
        total[:, i] -= confidence[:, at]
        total[:, j] += confidence[:, at]
        votes[answers[:, at] == 0, i] += 1
        votes[answers[:, at] == 1, j] += 1
    Y = votes + total / (3 * (np.abs(total) + 1))
    if k == 2:
        is_decision = asked.assembly.words["methods"][0] == "decision_function"
        return np.asarray(classes[(Y[:, 1] > (0.0 if is_decision else 0.5)).astype(np.intp)])
    return np.asarray(classes[Y.argmax(axis=1)])


def several_targets(asked: Asked) -> np.ndarray:
    return np.asarray([asked.predict(i) for i in range(asked.n)]).T


def several_probabilities(asked: Asked) -> list[np.ndarray]:
    return [asked.proba(i) for i in range(asked.n)]


def inverse_of_target(asked: Asked) -> np.ndarray:
    """The member's values, through the inverse of what was done to the target."""
    found = asked.predict(0)
    column = found.reshape(-1, 1) if found.ndim == 1 else found
    name = asked.assembly.words["function"][0]
    if name in INVERSES:
        column = INVERSES[name](column, asked.assembly.numbers)
    else:
        column = getattr(np, name)(column)
    is_vector = bool(asked.numbers("vector")) and column.shape[1] == 1
    return column.squeeze(axis=1) if is_vector else column


INVERSES: dict[str, Callable[[np.ndarray, Any], np.ndarray]] = {
    "scaled": lambda x, numbers: x * numbers["scale"] + numbers["shift"],
    "min to max": lambda x, numbers: (x - numbers["shift"]) / numbers["scale"],
    "itself": lambda x, numbers: x,
}
"""How a target comes back, where it is not a function of NumPy's of this name."""
FUNCTIONS = ("exp", "expm1", "exp2", "log", "log1p", "square", "sqrt", "cbrt", "sinh", "arcsinh")
"""NumPy's functions that may bring a target back."""

PROBABILITIES: dict[str, Callable[[Asked], Any]] = {
    "mean of probabilities": mean_of_probabilities,
    "sum of probabilities": sum_of_probabilities,
    "calibrated": calibrated,
    "stacked": stacked_probabilities,
    "linear": linear_probabilities,
    "threshold": lambda asked: asked.proba(0),
    "one against the rest": one_against_the_rest,
    "several targets": several_probabilities,
    "distribution": distributions.probabilities,
    "chain": chains.chain_probabilities,
    "boosted from a model": chains.boosted_probabilities,
    SOFT: soft.shares,
}
PREDICT: dict[str, Callable[[Asked], np.ndarray]] = {
    "majority": majority,
    "mean of values": mean_of_values,
    "sum of values": sum_of_values,
    "threshold": threshold,
    "stacked": stacked_prediction,
    "linear": linear_prediction,
    "one against the rest": rest_prediction,
    "one against one": one_against_one,
    "several targets": several_targets,
    "inverse of the target": inverse_of_target,
    "quantiles of leaves": of_leaves.default_quantiles,
    "survival forest": survival.forest_risk,
    "proportional hazards": survival.proportional_risk,
    "distribution": distributions.prediction,
    "chain": chains.chain_prediction,
    "boosted from a model": chains.boosted_prediction,
    SOFT: soft.prediction,
}
"""Rules whose prediction is not the label of the largest probability."""

OTHERS: dict[str, dict[str, Callable[[Asked], Any]]] = {
    "predict_survival_function": {
        "survival forest": survival.forest_survival,
        "proportional hazards": survival.proportional_survival,
    },
    "predict_cumulative_hazard_function": {
        "survival forest": survival.forest_hazard,
        "proportional hazards": survival.proportional_hazard,
    },
    "predict_parameters": {"distribution": distributions.parameters},
}
"""Verbs that few rules have."""


def answer(assembly: Assembly, verb: str, X: Any, *, n_threads: int | None, engine: str) -> Any:
    """What one of `OTHERS` answers."""
    found = OTHERS[verb].get(assembly.rule)
    if found is None:
        raise _no_such(assembly, verb, OTHERS[verb])
    if assembly.rule == "survival forest" and len(assembly.members) == 1:
        raise InputError(
            f"asking an assembly for {verb}",
            "its forest was fitted with low_memory=True, and keeps no functions of time",
            "fit it with low_memory=False, or use predict",
        )
    return found(Asked(assembly, X, {"n_threads": n_threads, "engine": engine}))


def predict_quantiles(
    assembly: Assembly,
    X: Any,
    quantiles: Any,
    *,
    n_threads: int | None,
    engine: str,
    **options: Any,
) -> np.ndarray:
    """See `Assembly.predict_quantiles`."""
    if assembly.rule != "quantiles of leaves":
        raise _no_such(assembly, "predict_quantiles", ["quantiles of leaves"])
    how = of_leaves.how_of(assembly, quantiles, **options)
    return of_leaves.quantiles(Asked(assembly, X, {"n_threads": n_threads, "engine": engine}), how)


def _no_such(assembly: Assembly, verb: str, rules: Any) -> InputError:
    return InputError(
        f"asking an assembly for {verb}",
        f"the {assembly.rule} of {assembly.source or 'an assembly'} has none",
        f"use predict; {verb} is there for: {', '.join(rules)}",
    )


def has(assembly: Assembly, verb: str) -> bool:
    """Whether an assembly has an answer to a verb."""
    rule = assembly.rule
    if verb == "predict_proba":
        is_known = (
            rule == "several targets"
            or assembly.classes is not None
            or assembly.words.get("kind") == ("classes",)
        )
        return rule in PROBABILITIES and is_known
    if verb == "predict_quantiles":
        return rule == "quantiles of leaves"
    if verb in OTHERS:
        return rule in OTHERS[verb] and (rule != "survival forest" or len(assembly.members) == 3)
    return verb == "predict"
