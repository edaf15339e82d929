"""Folders that Spark saved answer as Spark does; one session for all, and small models."""

from __future__ import annotations

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

import decision_machines as dm

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.default.parallelism", "1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def training(n=150):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=n), rng.integers(0, 6, n).astype(float)
    c = rng.choice(["x", "y", "z", "7"], n)
    yes = (a + (c == "x") + 0.3 * rng.normal(size=n) > 0.4).astype(float)
    return pd.DataFrame({"a": a, "b": b, "c": c, "yes": yes, "class": rng.integers(0, 3, n) * 1.0})


def frame(spark, table):
    rows = [
        tuple(None if v is None else v if isinstance(v, str) else float(v) for v in row)
        for row in table.itertuples(index=False, name=None)
    ]
    kinds = ", ".join(f"`{n}` {'string' if n == 'c' else 'double'}" for n in table.columns)
    return spark.createDataFrame(rows, kinds)


@pytest.fixture(scope="module")
def fitted(spark):
    """Models of all kinds; the pipeline reads raw columns, the others vectors."""
    from pyspark.ml import Pipeline, classification, regression
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    table = frame(spark, training())
    stages = [
        StringIndexer(inputCol="c", outputCol="ci", handleInvalid="keep"),
        VectorAssembler(inputCols=["a", "b", "ci"], outputCol="features", handleInvalid="keep"),
    ]
    vectors = Pipeline(stages=stages).fit(table).transform(table).cache()
    # More than three boosted trees are added in an order that depends on the processor.
    few = {"maxIter": 3, "maxDepth": 3, "seed": 1}
    forest = {"numTrees": 4, "maxDepth": 4, "seed": 1}
    found = {
        "tree": classification.DecisionTreeClassifier(labelCol="class", maxDepth=4),
        "tree of numbers": regression.DecisionTreeRegressor(labelCol="a", maxDepth=3),
        "forest": classification.RandomForestClassifier(labelCol="class", **forest),
        "forest of numbers": regression.RandomForestRegressor(labelCol="a", **forest),
        "boosted": classification.GBTClassifier(labelCol="yes", **few),
        "boosted numbers": regression.GBTRegressor(labelCol="a", **few),
    }
    models = {name: learner.fit(vectors) for name, learner in found.items()}
    models["pipeline"] = Pipeline(stages=[*stages, found["forest"]]).fit(table)
    return models


def raw_rows():
    """Rows with unknown labels, None, NaN and infinities."""
    table = training(60)[["a", "b", "c"]].astype({"c": object})
    rng = np.random.default_rng(1)
    table["c"] = rng.choice(["x", "y", "7", "new"], 60)
    table["c"] = [None if i % 11 == 0 else v for i, v in enumerate(table["c"])]
    table.loc[::7, "a"], table.loc[1::7, "a"], table.loc[2::7, "b"] = np.nan, np.inf, -np.inf
    return table


def vectors():
    """As numbers, with places of labels that there are not."""
    rng = np.random.default_rng(2)
    X = np.stack([rng.normal(size=80), rng.integers(0, 6, 80), rng.integers(0, 4, 80)], axis=1)
    X[::7, 0], X[1::7, 1], X[2::7, 2] = np.nan, np.inf, 9.0
    X[3::7, 2], X[4::7, 2], X[5::7, 2], X[6::7, 2] = np.nan, 1.5, -1.0, -0.0
    return X


def theirs(spark, model, rows):
    """The columns of answers that Spark adds."""
    from pyspark.ml.linalg import Vectors

    if isinstance(rows, np.ndarray):
        given = spark.createDataFrame([(Vectors.dense(x),) for x in rows.tolist()], ["features"])
    else:
        given = frame(spark, rows)
    found = model.transform(given)
    names = [n for n in ("rawPrediction", "probability", "prediction") if n in found.columns]
    held = found.select(*names).collect()
    return {
        name: np.array([row[name].toArray() if name != "prediction" else row[name] for row in held])
        for name in names
    }


NAMES = ["tree", "tree of numbers", "forest", "forest of numbers", "boosted", "boosted numbers"]


@pytest.mark.parametrize("name", [*NAMES, "pipeline"])
def test_answers_are_equal_to_the_bit(spark, fitted, tmp_path, name):
    model = fitted[name]
    model.write().save((tmp_path / "model").as_uri())
    machine = dm.load(tmp_path / "model")
    X = raw_rows() if name == "pipeline" else vectors()
    wanted = theirs(spark, model, X)
    found = machine.predict(X)
    assert found.dtype == wanted["prediction"].dtype
    assert np.array_equal(found, wanted["prediction"])
    if "rawPrediction" in wanted:
        assert np.array_equal(machine.margin(X), wanted["rawPrediction"])
        shares = machine.predict_proba(X)
        if name == "boosted":
            # Java brings an exponential of its own, which differs from the C library's by 1 ulp.
            assert np.all(np.abs(shares - wanted["probability"]) <= np.spacing(1.0))
        else:
            assert np.array_equal(shares, wanted["probability"])


@pytest.mark.parametrize("name", ["boosted", "pipeline"])
def test_is_certified(fitted, name):
    machine = dm.convert(fitted[name])
    certificate = dm.certify(machine, fitted[name])
    assert certificate, certificate


def test_a_folder_is_verified_by_its_own_library(fitted, tmp_path):
    from typer.testing import CliRunner

    from decision_machines.cli import app

    fitted["tree"].write().save((tmp_path / "model").as_uri())
    found = CliRunner().invoke(app, ["verify", str(tmp_path / "model")])
    assert found.exit_code == 0, found.output
    assert "PROVEN" in found.output
