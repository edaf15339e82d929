"""Files through a machine on this machine: every format, every output, nothing half."""

from __future__ import annotations

import gzip
import itertools
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream.conftest import LABELS, NAMES, expected, files, rows

import decision_machines as dm

WRITE = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=70),
    "arrow": lambda table, path: pa.feather.write_feather(table, path, chunksize=60),
    "csv": lambda table, path: pa.csv.write_csv(table, path),
}
READ = {
    "parquet": pq.read_table,
    "arrow": pa.feather.read_table,
    "csv": pa.csv.read_csv,
}
BOTH = ("predict", "margin")


def as_kind(table: pa.Table, kind: str) -> pa.Table:
    """A table as it comes out of a file of a kind: what a CSV carries is text."""
    if kind != "csv":
        return table
    return table.set_column(0, "id", table["id"].cast(pa.string()))


@pytest.mark.parametrize("kind", WRITE)
@pytest.mark.parametrize("into", READ)
def test_every_format_comes_in_and_goes_out_with_equal_answers(machine, tmp_path, kind, into):
    frame = rows(200)
    frame["unread"] = "x"
    WRITE[kind](pa.Table.from_pandas(frame), tmp_path / f"in.{kind}")
    out = tmp_path / f"out.{into}"
    report = dm.stream.score(machine, tmp_path / f"in.{kind}", out, outputs=BOTH, keep="id")
    found = READ[into](out)
    want = expected(machine, frame)
    assert report.rows == len(frame)
    assert found.column_names == want.column_names
    assert [str(v) for v in found["id"].to_pylist()] == [str(i) for i in frame["id"]]
    assert found.drop_columns("id").equals(want.drop_columns("id"))


def test_columns_are_matched_by_name_in_any_order(machine, tmp_path):
    frame = rows(50)
    frame[["s", "id", "q", "p", "r"]].to_parquet(tmp_path / "in.parquet")
    found = dm.stream.score(machine, tmp_path / "in.parquet").read_all()
    assert found["prediction"].to_pylist() == machine.predict(frame[NAMES]).tolist()


def test_all_outputs_are_those_of_the_methods(machine, tmp_path):
    frame = rows(64)
    frame.to_parquet(tmp_path / "in.parquet")
    every = ("predict", "proba", "margin", "leaves")
    found = dm.stream.score(machine, tmp_path / "in.parquet", outputs=every).read_all()
    X = frame[NAMES]
    assert found["prediction"].to_pylist() == machine.predict(X).tolist()
    proba = np.stack([found[f"proba_{label}"].to_numpy() for label in LABELS], axis=1)
    assert np.array_equal(proba, machine.predict_proba(X))
    margin = np.stack([found[f"margin_{label}"].to_numpy() for label in LABELS], axis=1)
    assert np.array_equal(margin, machine.margin(X))
    leaves = np.stack([found[f"leaf_{i}"].to_numpy() for i in range(machine.n_trees)], axis=1)
    assert np.array_equal(leaves, machine.apply(X))


@settings(max_examples=25)
@given(
    cuts=st.lists(st.integers(0, 300), max_size=5),
    rows_at_once=st.integers(1, 400),
    group=st.integers(1, 400),
)
def test_however_the_rows_are_cut_none_is_lost_or_doubled(
    machine, tmp_path_factory, cuts, rows_at_once, group
):
    folder = tmp_path_factory.mktemp("cut")
    os.mkdir(folder / "in")
    frame = rows(300)
    bounds = [0, *sorted(cuts), 300]
    for i, (start, stop) in enumerate(itertools.pairwise(bounds)):
        table = pa.Table.from_pandas(frame[start:stop], preserve_index=False)
        pq.write_table(table, folder / "in" / f"{i}.parquet", row_group_size=group)
    options = {"outputs": BOTH, "keep": "id", "rows_at_once": rows_at_once}
    one = dm.stream.score(machine, folder / "in", folder / "all.parquet", **options)
    many = dm.stream.score(machine, folder / "in", folder / "out", **options)
    want = expected(machine, frame)
    assert one.rows == many.rows == 300
    assert pq.read_table(folder / "all.parquet").equals(want)
    names = [f"{i}.parquet" for i in range(len(bounds) - 1)]
    assert files(folder / "out") == names
    parts = pa.concat_tables([pq.read_table(folder / "out" / name) for name in names])
    assert parts.equals(want)


@pytest.mark.parametrize("kind", WRITE)
def test_a_file_without_rows_gives_a_file_without_rows(machine, tmp_path, kind):
    WRITE[kind](pa.Table.from_pandas(rows(1), preserve_index=False)[:0], tmp_path / f"in.{kind}")
    dm.stream.score(machine, tmp_path / f"in.{kind}", tmp_path / "out.parquet", outputs=BOTH)
    found = pq.read_table(tmp_path / "out.parquet")
    assert len(found) == 0
    assert found.schema.field("prediction").type == pa.string()


def test_globs_lists_datasets_and_folders_find_the_same_files(machine, tmp_path):
    folder = tmp_path / "in"
    os.makedirs(folder / "deep")
    frame = rows(90)
    for i, name in enumerate(("a", "deep/b", "c")):
        frame[30 * i : 30 * i + 30].to_parquet(folder / f"{name}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").touch()
    paths = [folder / "a.parquet", folder / "c.parquet", folder / "deep" / "b.parquet"]
    found = [
        dm.stream.score(machine, data, keep="id").read_all()["id"].to_pylist()
        for data in (
            folder,
            f"{folder}/**/*.parquet",
            paths,
            pyarrow.dataset.dataset(folder),
        )
    ]
    assert found[0] == [*range(30), *range(60, 90), *range(30, 60)]
    assert found[1] == found[2] == found[3] == found[0]


def test_the_files_of_a_list_are_taken_as_listed(machine, tmp_path):
    for i, name in enumerate("zay"):
        rows(10)[i : i + 1].to_parquet(tmp_path / f"{name}.parquet")
    paths = [tmp_path / f"{name}.parquet" for name in "zay"]
    assert dm.stream.score(machine, paths, keep="id").read_all()["id"].to_pylist() == [0, 1, 2]


def test_values_in_folder_names_are_columns(machine, tmp_path):
    os.makedirs(tmp_path / "in" / "year=2024" / "kind=a%20b")
    rows(3).to_parquet(tmp_path / "in" / "year=2024" / "kind=a%20b" / "x.parquet")
    found = dm.stream.score(machine, tmp_path / "in", keep=["year", "kind"]).read_all()
    assert found["year"].to_pylist() == [2024] * 3
    assert found["kind"].to_pylist() == ["a b"] * 3


# ------------------------------------------------------------------ CSV, whose types are guessed


def test_the_first_block_of_a_csv_does_not_decide_for_the_rest(machine, tmp_path, monkeypatch):
    monkeypatch.setattr("decision_machines.files.csv_text.BLOCK", 256)
    frame = rows(100).round(0)
    frame.loc[50:, NAMES] += 0.25
    frame.loc[60, "q"] = np.nan
    lines = ["id,p,q,r,s"]
    for i, *values in frame.itertuples(index=False):
        cells = ["" if v != v else f"{v:g}" for v in values]
        lines.append(",".join([f"{i:05}" if i < 50 else f"key {i}", *cells]))
    (tmp_path / "in.csv").write_text("\n".join(lines))
    found = dm.stream.score(machine, tmp_path / "in.csv", outputs=BOTH, keep="id").read_all()
    assert found["id"].to_pylist()[:2] == ["00000", "00001"]
    assert found["id"].to_pylist()[-1] == "key 99"
    want = expected(machine, frame).drop_columns("id")
    assert found.drop_columns("id").equals(want)


def test_a_broken_row_of_a_csv_is_named(machine, tmp_path):
    text = rows(40).to_csv(index=False).splitlines()
    text[21] = "20,1.0,two,3.0,4.0"
    (tmp_path / "in.csv").write_text("\n".join(text))
    with pytest.raises(dm.InputError, match=r"in\.csv.*'two' in row 22"):
        dm.stream.score(machine, tmp_path / "in.csv", tmp_path / "out.parquet")
    text[21] = "20,1.0"
    (tmp_path / "in.csv").write_text("\n".join(text))
    with pytest.raises(dm.InputError, match=r"in\.csv.*Row #22.*Expected 5 columns"):
        dm.stream.score(machine, tmp_path / "in.csv", tmp_path / "out.parquet")
    assert files(tmp_path) == ["in.csv"]


def test_a_packed_csv_is_unpacked(machine, tmp_path):
    frame = rows(30)
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    found = dm.stream.score(machine, tmp_path / "in.csv.gz", outputs="margin").read_all()
    assert np.array_equal(found["margin_blue"].to_numpy(), machine.margin(frame[NAMES])[:, 1])


def test_labels_in_a_csv_are_labels_and_no_text_is_no_label(tmp_path):
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "green"], 300), "x": rng.random(300)})
    y = (frame["colour"] == "red") ^ (frame["x"] > 0.5)
    frame.loc[::7, "colour"] = None
    frame["colour"] = frame["colour"].astype("category")
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=5, random_state=0
    ).fit(frame, y)
    machine = dm.convert(model)
    frame.to_csv(tmp_path / "in.csv", index=False)
    found = dm.stream.score(machine, tmp_path / "in.csv", outputs="proba").read_all()
    assert np.array_equal(found.columns[1].to_numpy(), model.predict_proba(frame)[:, 1])


# ------------------------------------------------------------------ models without names


@pytest.fixture(scope="module")
def nameless():
    machine = dm.figure_one()
    return replace(machine, columns=replace(machine.columns, names=None))


def test_without_names_the_columns_but_the_kept_are_the_features(nameless, tmp_path):
    pq.write_table(pa.table({"id": [7], **{n: [2.0] for n in "abcd"}}), tmp_path / "in.parquet")
    found = dm.stream.score(nameless, tmp_path / "in.parquet", keep="id").read_all()
    assert found["prediction"].to_pylist() == nameless.predict([[2.0] * 4]).tolist()
    with pytest.raises(dm.InputError, match="5 columns besides"):
        dm.stream.score(nameless, tmp_path / "in.parquet")


def test_chosen_columns_are_the_features_in_their_order(nameless, tmp_path):
    values = {"w": [2.0], "z": [9], "y": [2], "x": [1.0], "v": [2.0]}
    pq.write_table(pa.table(values), tmp_path / "in.parquet")
    found = dm.stream.score(nameless, tmp_path / "in.parquet", columns=list("vxyw"), keep="v")
    assert found.read_all().to_pylist() == [{"v": 2.0, "prediction": 5.0}]
    with pytest.raises(dm.InputError, match="no column 'u'"):
        dm.stream.score(nameless, tmp_path / "in.parquet", columns=list("vxyu"))


def test_one_column_may_be_two_features(nameless, tmp_path):
    pq.write_table(pa.table({"x": [2.0]}), tmp_path / "in.parquet")
    found = dm.stream.score(nameless, tmp_path / "in.parquet", columns=["x"] * 4).read_all()
    assert found["prediction"].to_pylist() == nameless.predict([[2.0] * 4]).tolist()


# ------------------------------------------------------------------ going on, starting again


@pytest.fixture
def folder(tmp_path):
    os.mkdir(tmp_path / "in")
    for i in range(4):
        rows(20, seed=i).to_parquet(tmp_path / "in" / f"{i}.parquet")
    return tmp_path


def test_a_second_run_does_nothing_again(machine, folder):
    dm.stream.score(machine, folder / "in", folder / "out")
    times = [os.stat(folder / "out" / name).st_mtime_ns for name in files(folder / "out")]
    again = dm.stream.score(machine, folder / "in", folder / "out")
    assert (again.rows, again.rows_scored, again.found_finished) == (80, 0, 4)
    assert times == [os.stat(folder / "out" / name).st_mtime_ns for name in files(folder / "out")]


def test_changed_new_and_lost_files_are_done_again_and_no_other(machine, folder):
    dm.stream.score(machine, folder / "in", folder / "out", keep="id")
    rows(33, seed=9).to_parquet(folder / "in" / "1.parquet")
    rows(5, seed=10).to_parquet(folder / "in" / "new.parquet")
    os.remove(folder / "out" / "2.parquet")
    with open(folder / "out" / "3.parquet", "ab") as file:
        file.write(b"more")
    report = dm.stream.score(machine, folder / "in", folder / "out", keep="id")
    assert (report.found_finished, report.rows_scored, report.rows) == (1, 33 + 5 + 40, 98)
    whole = dm.stream.score(machine, folder / "in", keep="id").read_all()
    assert pyarrow.dataset.dataset(folder / "out").to_table().equals(whole)


def test_a_folder_of_answers_is_readable_as_one_table_by_others(machine, folder):
    dm.stream.score(machine, folder / "in", folder / "out")
    assert len(pl.read_parquet(folder / "out")) == len(pd.read_parquet(folder / "out")) == 80


def test_another_question_is_not_answered_into_the_same_folder(machine, forest, folder):
    dm.stream.score(machine, folder / "in", folder / "out")
    with pytest.raises(dm.InputError, match="another outputs"):
        dm.stream.score(machine, folder / "in", folder / "out", outputs="margin")
    with pytest.raises(dm.InputError, match="another model"):
        dm.stream.score(machine.mask([0]), folder / "in", folder / "out")
    report = dm.stream.score(machine, folder / "in", folder / "out", outputs="proba", fresh=True)
    assert report.rows_scored == 80
    assert pq.read_table(folder / "out" / "0.parquet").column_names[0] == "proba_amber"


def test_files_of_others_are_never_overwritten_or_removed(machine, folder):
    os.mkdir(folder / "out")
    (folder / "out" / "0.parquet").write_text("precious")
    for fresh in (False, True):
        with pytest.raises(dm.InputError, match="no record"):
            dm.stream.score(machine, folder / "in", folder / "out", fresh=fresh)
    assert (folder / "out" / "0.parquet").read_text() == "precious"


def test_answers_to_data_that_is_gone_do_not_stay_unnoticed(machine, folder):
    dm.stream.score(machine, folder / "in", folder / "out")
    os.remove(folder / "in" / "2.parquet")
    with pytest.raises(dm.InputError, match=r"2\.parquet.*answers none"):
        dm.stream.score(machine, folder / "in", folder / "out")


def test_two_runs_do_not_write_into_one_folder(machine, folder):
    from decision_machines.stream.records import Records

    with Records(str(folder / "out")).alone(), pytest.raises(dm.InputError, match="another run"):
        dm.stream.score(machine, folder / "in", folder / "out")


@pytest.mark.parametrize("out", ["in", "in/out", "in/0.parquet", "."])
def test_answers_do_not_lie_among_the_data(machine, folder, out):
    before = {name: (folder / name).read_bytes() for name in files(folder)}
    with pytest.raises(dm.InputError, match="the data"):
        dm.stream.score(machine, folder / "in", folder / out)
    assert before == {name: (folder / name).read_bytes() for name in files(folder)}


# ------------------------------------------------------------------ what is refused, and how


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda m, f: dm.stream.score(m, f / "nothing"), "nothing is there"),
        (lambda m, f: dm.stream.score(m, f / "in", outputs="probs"), "outputs 'probs'"),
        (lambda m, f: dm.stream.score(m, f / "in", outputs=()), "of no kind"),
        (lambda m, f: dm.stream.score(m, f / "in", engine="ray"), "engine='ray'"),
        (lambda m, f: dm.stream.score(m, f / "in", keep="missing"), "no column 'missing'"),
        (lambda m, f: dm.stream.score(m, f / "in", f / "out", format="xls"), "format='xls'"),
        (lambda m, f: dm.stream.score(m, f / "in", f / "o.csv.gz"), "packed"),
        (lambda m, f: dm.stream.score(m, f / "in", rows_at_once=0), "0 rows"),
        (lambda m, f: dm.stream.score(m, f / "in", f / "o.csv", engine="dask"), "many workers"),
        (lambda m, f: dm.stream.score(m, [f / "in", f / "in"]), "named twice"),
    ],
)
def test_wrong_calls_are_refused_in_three_parts(machine, folder, call, says):
    with pytest.raises(dm.InputError, match=says) as error:
        call(machine, folder)
    assert "What to do" in str(error.value)


def test_probabilities_are_refused_where_there_are_no_classes(nameless, folder):
    with pytest.raises(dm.InputError, match="no classes"):
        dm.stream.score(nameless, folder / "in", outputs="proba")


def test_missing_columns_are_named_with_their_file(machine, folder):
    rows(5).drop(columns=["q"]).to_parquet(folder / "in" / "2.parquet")
    with pytest.raises(dm.InputError, match=r"2\.parquet: the data has no column 'q'"):
        dm.stream.score(machine, folder / "in", folder / "out")


def test_a_strange_file_in_a_folder_is_named_not_passed_over(machine, folder):
    (folder / "in" / "notes.docx").write_text("hello")
    with pytest.raises(dm.InputError, match=r"notes\.docx"):
        dm.stream.score(machine, folder / "in", folder / "out")


def test_kept_columns_of_another_type_do_not_slip_into_one_file(machine, folder):
    frame = rows(5)
    frame["id"] = "x"
    frame.to_parquet(folder / "in" / "2.parquet")
    with pytest.raises(dm.InputError, match=r"2\.parquet.*do not fit"):
        dm.stream.score(machine, folder / "in", folder / "all.parquet", keep="id")
    assert not os.path.exists(folder / "all.parquet")


def test_stopping_early_ends_the_threads(machine, folder):
    import threading

    before = threading.active_count()
    batches = dm.stream.score(machine, folder / "in", rows_at_once=1)
    batches.read_next_batch()
    del batches
    assert threading.active_count() == before


def test_progress_counts_every_row_and_ends_at_the_whole(machine, folder):
    told = []
    dm.stream.score(
        machine,
        folder / "in",
        folder / "out",
        progress=lambda rows, share: told.append((rows, share)),
    )
    assert told[-1] == (80, 1.0)
    assert told == sorted(told)
