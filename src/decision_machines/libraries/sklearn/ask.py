"""Asking scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ..oracles import UNSEEN, Oracle, labels_of, oracle_of
from .read_chains import is_boosted_from_a_model
from .read_trees import without_samplers

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from ...machine import DecisionMachine


def oracle(model: Any, machine: DecisionMachine) -> Oracle:
    """The oracle for a scikit-learn model, by its class."""
    if machine.columns.accepted is not None:
        from .pipelines.ask import PipelineOracle

        return PipelineOracle(model, machine)
    if is_boosted_from_a_model(model):
        return StagesOracle(model, machine)
    for cls in type(model).__mro__:
        if cls.__name__ in KINDS and cls.__module__.startswith("sklearn."):
            return KINDS[cls.__name__](model, machine)
    # What `read` looks through: a search, and a pipeline whose steps before the last do nothing.
    if hasattr(model, "best_estimator_"):
        return oracle_of(model.best_estimator_, machine)
    if hasattr(model, "steps"):
        return oracle_of(model.steps[-1][1], machine)
    if type(model).__name__ == "FrozenEstimator":
        return oracle_of(model.estimator, machine)
    raise UnsupportedModelError(
        "asking a scikit-learn model for its own answers",
        f"a {type(model).__name__}",
        f"use one of {', '.join(sorted(KINDS))}",
    )


class TreesOracle(Oracle):
    """Models that hold `Tree` objects. Trees are asked below the checks that refuse infinity."""

    @property
    def n_trees(self) -> int:
        return len(self.trees())

    def trees(self) -> list[Any]:
        if hasattr(self.model, "tree_"):
            return [self.model.tree_]
        members = self.model.estimators_
        # A pipeline has a length, so only an array of members may be laid out flat.
        flat = members.ravel() if isinstance(members, np.ndarray) else members
        return [without_samplers(estimator).tree_ for estimator in flat]

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"]:
        found: np.ndarray = self.trees()[tree].apply(_float32(self.subset(X, tree)))
        return found

    def subset(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m s"]:
        """The features that one tree was trained on."""
        return X

    def tree_margin(
        self, X: Float[np.ndarray, "m n"], tree: int
    ) -> Float[np.ndarray, "m k"] | None:
        return _flat(self.trees()[tree].predict(_float32(X)), self.model)

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        """The sum as the model takes it, from the trees' own answers."""
        return _flat(self._average(X), self.model)

    def _average(self, X: Float[np.ndarray, "m n"]) -> np.ndarray:
        values: list[np.ndarray] = [tree.predict(_float32(X)) for tree in self.trees()]
        if hasattr(self.model, "tree_"):
            return values[0]
        total = np.zeros_like(values[0])
        for value in values:
            total += value
        found: np.ndarray = total / len(values)
        return found


class ScoreOracle(TreesOracle):
    """Models whose raw score is a public method, which refuses infinity."""

    takes_infinity = False

    @property
    def takes_nan(self) -> bool:  # type: ignore[override]
        found: bool = self.model.__sklearn_tags__().input_tags.allow_nan
        return found

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> None:
        """None: what such a model makes of a tree's value, only its whole score tells."""
        return None

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        names = (cls.__name__ for cls in type(self.model).__mro__)
        score = next(SCORES[name] for name in names if name in SCORES)
        return score(self.model, X)


class StagesOracle(ScoreOracle):
    """The stages of boosted trees that start at a model: their sum without the start."""

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        from sklearn.ensemble._gradient_boosting import predict_stages

        found = np.zeros((len(X), self.model.estimators_.shape[1]))
        predict_stages(self.model.estimators_, _float32(X), self.model.learning_rate, found)
        return found


class IsolationOracle(ScoreOracle):
    """The response is `score_samples`; the margin below it is not a method of the model."""

    compared = "leaves and scores"

    def subset(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m s"]:
        return X[:, self.model.estimators_features_[tree]]

    def whole(self, X: Float[np.ndarray, "m n"]) -> tuple[str, np.ndarray, np.ndarray]:
        return "score", self.machine.response(X)[:, 0], self.model.score_samples(X)


class BaggingOracle(ScoreOracle):
    def subset(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m s"]:
        return X[:, self.model.estimators_features_[tree]]


class HistOracle(Oracle):
    """HistGradientBoosting tells no leaf numbers; its predictors' values stand for them."""

    compared = "values and margins"

    @property
    def n_trees(self) -> int:
        return sum(len(stage) for stage in self.model._predictors)

    def _encoded(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m n"]:
        """The rows as the trees see them: labels through the model's own encoder."""
        if getattr(self.model, "_preprocessor", None) is None:
            return np.ascontiguousarray(X, np.float64)
        import pandas

        table = pandas.DataFrame(X, columns=getattr(self.model, "feature_names_in_", None))
        for feature, labels in self.labels.items():
            name = table.columns[feature]
            is_number = all(isinstance(label, (int, float)) for label in labels.values())
            column = labels_of(X[:, feature], labels)
            if is_number:
                column = [-1e9 if label is UNSEEN else label for label in column]
            table[name] = pandas.Series(column, dtype=float if is_number else object)
        is_named = hasattr(self.model, "feature_names_in_")
        found: np.ndarray = self.model._preprocessor.transform(
            table if is_named else table.to_numpy(float)
        )
        return found

    def tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m k"]:
        return self._tree_margin(self._encoded(X), tree)

    def _tree_margin(self, X: Float[np.ndarray, "m n"], tree: int) -> Float[np.ndarray, "m k"]:
        stage, within = divmod(tree, len(self.model._predictors[0]))
        bitsets, feature_map = self.model._bin_mapper.make_known_categories_bitsets()
        found = np.zeros((len(X), len(self.model._predictors[0])))
        found[:, within] = self.model._predictors[stage][within].predict(
            np.ascontiguousarray(X, np.float64), bitsets, feature_map, 1
        )
        return found

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        X = self._encoded(X)
        total: np.ndarray = (
            np.zeros((len(X), len(self.model._predictors[0]))) + self.model._baseline_prediction
        )
        for tree in range(self.n_trees):
            total += self._tree_margin(X, tree)
        return total


def _float32(X: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(X, np.float32)


def _flat(value: np.ndarray, model: Any) -> np.ndarray:
    """(m, outputs, classes) as the columns of our margin."""
    if value.ndim < 3:
        if hasattr(model, "classes_"):
            return value[:, : int(np.max(model.n_classes_))]
        return value.reshape(len(value), -1)
    if not hasattr(model, "classes_"):
        return value[:, :, 0]
    n_classes = np.atleast_1d(model.n_classes_).tolist()
    return np.concatenate([value[:, o, :k] for o, k in enumerate(n_classes)], axis=1)


def _bagging_score(model: Any, X: np.ndarray) -> np.ndarray:
    found: np.ndarray = model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)
    return found


SCORES: dict[str, Callable[[Any, np.ndarray], np.ndarray]] = {
    "GradientBoostingClassifier": lambda model, X: model.decision_function(X),
    "GradientBoostingRegressor": lambda model, X: model.predict(X),
    "AdaBoostClassifier": lambda model, X: model.decision_function(X),
    "AdaBoostRegressor": lambda model, X: model.predict(X),
    "BaggingClassifier": _bagging_score,
    "BaggingRegressor": _bagging_score,
}

KINDS: dict[str, type[Oracle]] = {
    "DecisionTreeClassifier": TreesOracle,
    "DecisionTreeRegressor": TreesOracle,
    "RandomForestClassifier": TreesOracle,
    "RandomForestRegressor": TreesOracle,
    "ExtraTreesClassifier": TreesOracle,
    "ExtraTreesRegressor": TreesOracle,
    "GradientBoostingClassifier": ScoreOracle,
    "GradientBoostingRegressor": ScoreOracle,
    "AdaBoostClassifier": ScoreOracle,
    "AdaBoostRegressor": ScoreOracle,
    "BaggingClassifier": BaggingOracle,
    "BaggingRegressor": BaggingOracle,
    "IsolationForest": IsolationOracle,
    "HistGradientBoostingClassifier": HistOracle,
    "HistGradientBoostingRegressor": HistOracle,
}


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """scikit-learn's `predict` as its users call it."""
    has_jobs = "n_jobs" in model.get_params()

    def predict(X: Any, threads: int) -> Any:
        if has_jobs:
            model.set_params(n_jobs=threads)
        return model.predict(X)

    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return predict
    import pandas

    # Given an array, scikit-learn would warn at every call that names are missing.
    return lambda X, threads: predict(
        X if hasattr(X, "columns") else pandas.DataFrame(X, columns=names), threads
    )
