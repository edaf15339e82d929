"""Spark's workers answer as this process does."""

from __future__ import annotations

import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from stream.conftest import expected, files, rows

import decision_machines as dm

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
# Of Spark's own support, not of what is about to go.
pytestmark = pytest.mark.filterwarnings("default:PySpark does not yet fully support:FutureWarning")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)

BOTH = ("predict", "margin")


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    os.mkdir(folder / "in")
    frame = rows(400)
    for i in range(4):
        frame[100 * i : 100 * i + 100].to_parquet(folder / "in" / f"{i}.parquet", index=False)
    return folder


def test_files_scored_by_tasks_are_the_local_ones_to_the_byte(machine, folder, spark):
    options = {"outputs": BOTH, "keep": "id"}
    dm.stream.score(machine, folder / "in", folder / "here", **options)
    report = dm.stream.score(
        machine, folder / "in", folder / "there", engine="spark", cluster=spark, **options
    )
    assert report.rows == 400
    assert files(folder / "here") == files(folder / "there") != []
    for name in files(folder / "here"):
        assert (folder / "here" / name).read_bytes() == (folder / "there" / name).read_bytes()
    again = dm.stream.score(machine, folder / "in", folder / "there", engine="spark", **options)
    assert (again.found_finished, again.rows_scored) == (4, 0)


def test_shapley_values_of_tasks_are_the_local_ones(machine, folder, spark):
    lazy = spark.read.parquet(str(folder / "in"))
    found = dm.stream.spark_frame(machine, lazy, outputs="shap", keep="id").toPandas()
    values = found.sort_values("id").to_numpy()[:, 1 + machine.n_outputs :]
    wanted = machine.shap_values(rows(400)[list(machine.columns.names)])
    assert np.array_equal(values, wanted.reshape(400, -1))


def test_answers_come_as_a_spark_frame(machine, folder, spark):
    found = dm.stream.score(machine, folder / "in", engine="spark", outputs=BOTH, keep="id")
    table = pa.Table.from_pandas(found.toPandas(), preserve_index=False)
    want = expected(machine, rows(400))
    assert table.cast(want.schema).equals(want)


def test_a_spark_frame_is_scored_row_for_row(machine, folder, spark):
    frame = spark.read.parquet(str(folder / "in"))
    found = dm.stream.spark_frame(machine, frame, outputs=BOTH, keep="id").toPandas()
    found = found.sort_values("id")
    assert np.array_equal(found["id"], np.arange(400))
    want = expected(machine, rows(400))
    assert pa.Table.from_pandas(found, preserve_index=False).cast(want.schema).equals(want)


def test_an_error_in_a_task_names_the_file_and_finished_files_stay(machine, folder, spark):
    os.mkdir(folder / "bad")
    for i in range(3):
        frame = rows(10)
        if i == 1:
            frame["q"] = "text"
        frame.to_parquet(folder / "bad" / f"{i}.parquet")
    with pytest.raises(dm.InputError, match=r"1\.parquet, row group 0: column 'q'"):
        dm.stream.score(machine, folder / "bad", folder / "out", engine="spark", cluster=spark)
    assert files(folder / "out") == ["0.parquet", "2.parquet"]
    rows(10).to_parquet(folder / "bad" / "1.parquet")
    report = dm.stream.score(machine, folder / "bad", folder / "out", engine="spark", cluster=spark)
    assert (report.found_finished, report.rows) == (2, 30)
