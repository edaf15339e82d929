"""One row of a pipeline that became a machine: the answer, or the refusal, that a table gets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import decision_machines as dm

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "w": rng.standard_normal(n),
            "v": rng.standard_normal(n) * 10,
            "color": np.array(["red", "green", "blue", "q\"'x"])[rng.integers(4, size=n)],
            "size": np.array([1, 2, 5])[rng.integers(3, size=n)],
        }
    )


@pytest.fixture(scope="module", params=["ordinal", "unknown", "one-hot", "target", "ranges"])
def machine(request, frame):
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        KBinsDiscretizer,
        OneHotEncoder,
        OrdinalEncoder,
        StandardScaler,
        TargetEncoder,
    )

    labels = {
        "unknown": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        "one-hot": OneHotEncoder(),
        "target": TargetEncoder(),
    }.get(request.param, OrdinalEncoder())
    bins = KBinsDiscretizer(4, encode="ordinal", strategy="uniform")
    numbers = (
        make_pipeline(SimpleImputer(), bins) if request.param == "ranges" else StandardScaler()
    )
    steps = make_column_transformer((numbers, ["w", "v"]), (labels, ["color", "size"]))
    forest = RandomForestClassifier(4, max_depth=5, random_state=0)
    y = (frame["w"] > 0) ^ (frame["color"] == "red") ^ (frame["size"] == 5)
    return dm.convert(make_pipeline(steps, forest).fit(frame, y))


def odd_rows(frame):
    """Rows with gaps, unknown labels and numbers out of range."""
    odd = frame.head(12).astype({"color": object, "size": object}).copy()
    odd.loc[1, "color"], odd.loc[2, "color"], odd.loc[3, "color"] = "unseen", None, ""
    odd.loc[4, "w"], odd.loc[5, "w"], odd.loc[6, "v"] = np.nan, np.inf, -1e300
    odd.loc[7, "size"], odd.loc[8, "size"] = 77, np.nan
    return odd


def answer(of):
    """The margins as a list, or None where they are refused."""
    try:
        return np.ravel(of()).tolist()
    except dm.DecisionMachinesError:
        return None


@pytest.mark.parametrize("outputs", ["margin", "apply", "predict"])
def test_rows_by_name_get_what_the_table_gets(machine, frame, outputs):
    of_row = machine.row_function(outputs)
    for row, found in zip(
        frame.head(40).to_dict("records"), getattr(machine, outputs)(frame.head(40)), strict=True
    ):
        assert np.array_equal(of_row(row), found)


def test_odd_rows_are_answered_or_refused_like_tables_of_them(machine, frame):
    odd, of_row = odd_rows(frame), machine.row_function("margin")
    for i, row in enumerate(odd.to_dict("records")):
        kinds = {"size": float} if not isinstance(row["size"], str) else {}
        one = odd[i : i + 1].astype(kinds)
        assert answer(lambda row=row: of_row(row)) == answer(lambda one=one: machine.margin(one)), (
            row
        )


def test_sql_answers_odd_rows_like_rows(machine, frame):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    odd, of_row = odd_rows(frame), machine.row_function("margin")
    rows = odd.astype(object).where(odd.notna(), None).to_dict("records")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows (w DOUBLE, v DOUBLE, color VARCHAR, size DOUBLE)")
        connection.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?)", [list(row.values()) for row in rows]
        )
        found = connection.execute(machine.to_sql()).fetchall()
    for row, margins in zip(rows, found, strict=True):
        wanted = answer(lambda row=row: of_row(row))
        assert (None if margins[0] is None else list(margins)) == wanted, row


def test_explanations_read_odd_rows_like_tables_of_them(machine, frame):
    odd = odd_rows(frame)
    for i, row in enumerate(odd.to_dict("records")):
        kinds = {"size": float} if not isinstance(row["size"], str) else {}
        one = odd[i : i + 1].astype(kinds)
        explained = answer(lambda row=row: machine.proximity(row, frame.head(20)).toarray())
        assert explained == answer(
            lambda one=one: machine.proximity(one, frame.head(20)).toarray()
        ), row
