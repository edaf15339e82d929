"""Folders as Spark saves them, written without Spark, and what Spark would answer, walked."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet

SPLIT = pa.struct(
    [
        ("featureIndex", pa.int32()),
        ("leftCategoriesOrThreshold", pa.list_(pa.float64())),
        ("numCategories", pa.int32()),
    ]
)
NODE = pa.struct(
    [
        ("id", pa.int32()),
        ("prediction", pa.float64()),
        ("impurity", pa.float64()),
        ("impurityStats", pa.list_(pa.float64())),
        ("rawCount", pa.int64()),
        ("gain", pa.float64()),
        ("leftChild", pa.int32()),
        ("rightChild", pa.int32()),
        ("split", SPLIT),
    ]
)
PARAMS = {
    "featuresCol": "features",
    "predictionCol": "prediction",
    "maxDepth": 5,
    "impurity": "gini",
}


def metadata(folder, kind, params=(), version="4.3.0", **more):
    """The metadata of a model or stage."""
    (folder / "metadata").mkdir(parents=True)
    content = {
        "class": f"org.apache.spark.ml.{kind}",
        "timestamp": 1,
        "sparkVersion": version,
        "uid": folder.name.split("_", 1)[-1],
        "paramMap": dict(params),
        "defaultParamMap": {} if "feature." in kind or kind == "PipelineModel" else PARAMS,
    } | more
    (folder / "metadata" / "_SUCCESS").write_bytes(b"")
    (folder / "metadata" / "part-00000").write_text(json.dumps(content) + "\n")


def table(folder, name, columns, n_files=1):
    (folder / name).mkdir(parents=True)
    found = pa.table(columns)
    ends = np.linspace(0, len(found), n_files + 1).astype(int)
    for i in range(n_files):
        part = found.slice(ends[i], ends[i + 1] - ends[i])
        pa.parquet.write_table(part, folder / name / f"part-{i:05}.snappy.parquet")


def leaf(prediction, stats):
    return {"prediction": prediction, "impurityStats": stats}


def split(feature, held, n_categories, left, right, prediction=0.0, stats=(1.0, 0.0)):
    """A test; `n_categories` is -1 where `held` is a threshold."""
    return {
        "prediction": prediction,
        "impurityStats": list(stats),
        "split": (feature, held, n_categories),
        "below": (left, right),
    }


def rows_of(tree):
    """The rows of a tree's nodes, each before its children."""
    found = []

    def visit(node):
        row = {
            "id": len(found),
            "prediction": node["prediction"],
            "impurity": 0.5,
            "impurityStats": list(node["impurityStats"]),
            "rawCount": 1,
            "gain": -1.0,
            "leftChild": -1,
            "rightChild": -1,
            "split": {
                "featureIndex": -1,
                "leftCategoriesOrThreshold": [],
                "numCategories": -1,
            },
        }
        found.append(row)
        if "below" in node:
            feature, held, n_categories = node["split"]
            row["split"] = {
                "featureIndex": feature,
                "leftCategoriesOrThreshold": held,
                "numCategories": n_categories,
            }
            row["leftChild"] = visit(node["below"][0])
            row["rightChild"] = visit(node["below"][1])
        return row["id"]

    visit(tree)
    return found


def save(folder, kind, trees, weights=None, release=4, order=None, n_files=1, **more):
    """A model of trees in its folder, as Spark `release` lays it out."""
    version = {3: "3.5.6", 4: "4.3.0"}[release]
    if kind.split(".")[-1].startswith("DecisionTree"):
        rows = [pa.scalar(row, NODE).as_py() for row in rows_of(trees[0])]
        held = pa.array(rows, NODE)
        metadata(folder, kind, version=version, **more)
        columns = {f.name: held.field(i) for i, f in enumerate(NODE)}
    else:
        held = [(i, row) for i, tree in enumerate(trees) for row in rows_of(tree)]
        held = held if order is None else [held[i] for i in order(len(held))]
        columns = {
            "treeID": pa.array([i for i, _ in held], pa.int32()),
            "nodeData": pa.array([row for _, row in held], NODE),
        }
        metadata(folder, kind, version=version, numTrees=len(trees), **more)
        names = ["treeID", "metadata", "weights"] if release == 3 else ["_1", "_2", "_3"]
        weights = [1.0] * len(trees) if weights is None else weights
        parts = [
            pa.array(range(len(trees)), pa.int32()),
            pa.array(["{}"] * len(trees)),
            pa.array(weights, pa.float64()),
        ]
        table(folder, "treesMetadata", dict(zip(names, parts, strict=True)))
    table(folder, "data", columns, n_files)


def walk(tree, x):
    """The leaf that Spark reaches."""
    while "below" in tree:
        feature, held, n = tree["split"]
        value = x[feature]
        if n < 0:
            goes_left = value <= held[0]
        elif len(held) <= n // 2:
            goes_left = value in held
        else:
            goes_left = value not in [c for c in range(n) if c not in held]
        tree = tree["below"][0 if goes_left else 1]
    return tree


def answers(kind, trees, X, weights=None):
    """(rawPrediction or prediction) of rows, added one tree after the other."""
    found = []
    for x in np.asarray(X, float).tolist():
        leaves = [walk(tree, x) for tree in trees]
        if "GBT" in kind:
            total = 0.0
            for held, weight in zip(leaves, weights, strict=True):
                total += held["prediction"] * weight
            found.append([-total, total] if "Class" in kind else [total])
        elif "Regression" in kind:
            total = 0.0
            for held in leaves:
                total += held["prediction"]
            found.append([total / len(trees)])
        elif "DecisionTree" in kind:
            found.append(list(leaves[0]["impurityStats"]))
        else:
            votes = np.zeros(len(leaves[0]["impurityStats"]))
            for held in leaves:
                stats = held["impurityStats"]
                if sum(stats):
                    votes += np.array(stats) / sum(stats)
            found.append(votes.tolist())
    return np.array(found)
