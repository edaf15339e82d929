"""Asking Spark, which needs Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..oracles import Oracle, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from ...machine import DecisionMachine

LEAVES = "decision_machines_leaves"


class SparkOracle(Oracle):
    """Leaves of all trees at once, and `rawPrediction` or `prediction` as the margin.

    Spark adds boosted trees by the library for linear algebra that its Java finds, in an order and
    with roundings that depend on the processor. There the values of its trees are asked for one by
    one, and their weighted sum is taken in the order of the trees.
    """

    def __init__(self, model: Any, machine: DecisionMachine) -> None:
        super().__init__(model, machine)
        self.names = machine.columns.names
        self.trees = trees_of(model)
        self.takes_nan = machine.columns.accepted is None or bool(
            np.all(machine.columns.accepted.missing)
        )
        self._refused = {} if machine.columns.accepted is None else machine.columns.accepted.refused
        self._asked: tuple[bytes, Any] | None = None

    @property
    def codes(self) -> dict[int, list[float]]:
        found = super().codes
        return {
            f: [c for c in known if c not in self._refused.get(f, ())] for f, known in found.items()
        }

    @property
    def n_trees(self) -> int:
        return int(getattr(self.trees, "getNumTrees", 1))

    def _rows(self, X: Float[np.ndarray, "m n"]) -> Any:
        """Rows as a DataFrame: a vector each, or the raw columns of a pipeline."""
        from pyspark.ml.linalg import Vectors
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        if self.names is None:
            held = self.trees.getOrDefault("featuresCol")
            return session.createDataFrame([(Vectors.dense(x),) for x in X.tolist()], [held])
        columns = []
        for feature in range(X.shape[1]):
            x = X[:, feature]
            known = self.labels.get(feature)
            columns.append(x.tolist() if known is None else list(map(text_of, labels_of(x, known))))
        kinds = ", ".join(
            f"`{name}` {'string' if i in self.labels else 'double'}"
            for i, name in enumerate(self.names)
        )
        return session.createDataFrame(list(zip(*columns, strict=True)), kinds)

    def _answers(self, X: Float[np.ndarray, "m n"]) -> tuple[np.ndarray, np.ndarray]:
        """Leaves, and margins, of rows that were asked for last or are asked for now."""
        key = X.tobytes()
        if self._asked is not None and self._asked[0] == key:
            found: tuple[np.ndarray, np.ndarray] = self._asked[1]
            return found
        model = self.model.copy()
        trees = trees_of(model)
        trees.setLeafCol(LEAVES)
        is_class = trees.hasParam("rawPredictionCol")
        answer = trees.getOrDefault("rawPredictionCol" if is_class else "predictionCol")
        rows = model.transform(self._rows(X)).select(LEAVES, answer).collect()
        leaves = np.array([_numbers(row[0]) for row in rows]).astype(np.int64)
        margins = np.array([_numbers(row[1]) for row in rows], np.float64)
        self._asked = (key, (leaves, margins))
        return leaves, margins

    def leaves(self, X: Float[np.ndarray, "m n"], tree: int) -> Int[np.ndarray, "m"]:
        if not len(X):
            return np.empty(0, np.int64)
        found: np.ndarray = self._answers(X)[0][:, tree]
        return found

    def margin(self, X: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m k"]:
        if not len(X):
            return np.empty((0, self.machine.n_outputs))
        leaves, margins = self._answers(X)
        if not type(self.trees).__name__.startswith("GBT"):
            return margins
        total = np.zeros(len(X))
        for number, (tree, weight) in enumerate(
            zip(self.trees.trees, self.trees.treeWeights, strict=True)
        ):
            total += weight * _leaf_values(tree)[leaves[:, number]]
        return np.stack([-total, total], axis=1) if margins.shape[1] == 2 else total[:, None]


def _leaf_values(tree: Any) -> Float[np.ndarray, "L"]:
    """The predictions of a Spark tree's leaves, from left to right."""
    found, waiting = [], [tree._java_obj.rootNode()]
    while waiting:
        node = waiting.pop()
        if node.getClass().getSimpleName() == "LeafNode":
            found.append(node.prediction())
        else:
            waiting += [node.rightChild(), node.leftChild()]
    return np.array(found, np.float64)


def trees_of(model: Any) -> Any:
    """The model of trees: the model itself, or a stage of a pipeline."""
    return next(
        (s for s in getattr(model, "stages", ()) if hasattr(s, "featureImportances")), model
    )


def text_of(label: Any) -> str | None:
    """A label as Spark's StringIndexer reads it."""
    return None if label is None else str(label)


def _numbers(value: Any) -> list[float]:
    return value.toArray().tolist() if hasattr(value, "toArray") else [float(value)]


def predictor(model: Any) -> Callable[[Any, int], Any]:
    """Spark's `transform`, of which the prediction is collected."""
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    trees = trees_of(model)

    def predict(X: Any, threads: int) -> Any:
        if hasattr(X, "columns"):
            rows = session.createDataFrame(
                list(X.itertuples(index=False, name=None)), list(map(str, X.columns))
            )
        else:
            held = trees.getOrDefault("featuresCol")
            rows = session.createDataFrame(
                [(Vectors.dense(x),) for x in np.asarray(X, np.float64).tolist()], [held]
            )
        found = model.transform(rows).select(trees.getOrDefault("predictionCol")).collect()
        return np.array([row[0] for row in found])

    return predict


def open_folder(folder: Any, kind: str) -> Any:
    """Spark's own object of a folder; a session is begun where there is none."""
    import importlib

    from pyspark.sql import SparkSession

    SparkSession.builder.getOrCreate()
    module, _, name = kind.removeprefix("org.apache.spark.").rpartition(".")
    cls = getattr(importlib.import_module(f"pyspark.{module}"), name)
    return cls.load(folder.resolve().as_uri())
