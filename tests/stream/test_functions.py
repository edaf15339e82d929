"""A machine as a function in pipelines of others: equal to its own methods."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from stream.conftest import LABELS, NAMES, expected, rows

import decision_machines as dm


def test_arrow_batches_and_tables_are_answered_alike(machine):
    frame = rows(100)
    table = pa.Table.from_pandas(frame)
    score = dm.stream.arrow_function(machine, outputs=("predict", "margin"), keep="id")
    want = expected(machine, frame)
    assert score(table).equals(want)
    batches = [score(batch) for batch in table.to_batches(max_chunksize=33)]
    assert pa.Table.from_batches(batches).equals(want)
    assert score(table[:0]).schema.equals(want.schema)


def test_pandas_frames_keep_their_index_and_types(machine):
    frame = rows(50).set_index(pd.Index(np.arange(50) * 3, name="key"))
    frame["when"] = pd.Timestamp("2024-02-29")
    score = dm.stream.pandas_function(machine, outputs="proba", keep=["id", "when"])
    found = score(frame)
    assert found.index.equals(frame.index)
    assert found["when"].equals(frame["when"])
    proba = found[[f"proba_{label}" for label in LABELS]].to_numpy()
    assert np.array_equal(proba, machine.predict_proba(frame[NAMES]))
    assert pickle.loads(pickle.dumps(score))(frame).equals(found)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_polars_expression_answers_row_for_row(machine, lazy):
    frame = rows(100)
    X = frame[NAMES]
    table = pl.DataFrame(frame)
    asked = (table.lazy() if lazy else table).with_columns(
        dm.expr(machine),
        dm.expr(machine, output="proba").alias("sure"),
        dm.expr(machine, output="leaves"),
    )
    found = asked.collect() if lazy else asked
    assert found["prediction"].to_list() == machine.predict(X).tolist()
    assert np.array_equal(found["sure"].struct.unnest().to_numpy(), machine.predict_proba(X))
    assert np.array_equal(found["leaves"].struct.unnest().to_numpy(), machine.apply(X))


def test_a_polars_expression_can_be_filtered_by_and_streamed(machine, tmp_path):
    frame = rows(300)
    frame.to_parquet(tmp_path / "in.parquet")
    lazy = pl.scan_parquet(tmp_path / "in.parquet").filter(dm.expr(machine) == "blue")
    found = lazy.select("id").collect(engine="streaming")
    is_blue = machine.predict(frame[NAMES]) == "blue"
    assert found["id"].to_list() == frame["id"][is_blue].tolist()


def test_an_expression_asks_for_one_thing():
    with pytest.raises(dm.InputError, match="one at a time"):
        dm.expr(dm.figure_one(), output=("predict", "margin"))


def test_kept_columns_that_would_have_an_answers_name_are_refused(machine):
    frame = rows(3).rename(columns={"id": "prediction"})
    with pytest.raises(dm.InputError, match="two are 'prediction'"):
        dm.stream.arrow_function(machine, keep="prediction")(pa.Table.from_pandas(frame))
