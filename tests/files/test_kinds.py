"""Which kind of table a file holds is told by its content, the separator by its own name."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import decision_machines as dm
from decision_machines.files.kinds import ending, kind_of, separator
from decision_machines.files.tables import read_table

TABLE = pa.table({"a": [1.5, 2.5], "b": ["x", "y, z"]})


def text(separator=","):
    buffer = pa.BufferOutputStream()
    csv.write_csv(TABLE, buffer, csv.WriteOptions(delimiter=separator))
    return buffer.getvalue().to_pybytes()


def write(path):
    end = ending(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if end == ".parquet":
        parquet.write_table(TABLE, path)
    elif end in (".arrow", ".feather"):
        feather.write_feather(TABLE, path, compression="uncompressed")
    else:
        content = text("\t" if ".tsv" in end else ",")
        path.write_bytes(gzip.compress(content) if end.endswith(".gz") else content)
    return path


NAMES = ["r.csv", "r.csv.gz", "r.tsv", "r.tsv.gz", "r.txt", "r.parquet", "r.arrow", "r.feather"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", ["data", "made.tsv", "packed.gz", "x.parquet"])
def test_a_folders_name_has_no_say(tmp_path, name, folder):
    path = write(tmp_path / folder / name)
    assert read_table(path).equals(TABLE)


@pytest.mark.parametrize("folder", ["data", "made.tsv"])
def test_nor_has_it_in_a_stream(tmp_path, folder):
    machine = dm.figure_one()
    path = tmp_path / folder / "year=2024" / "rows.csv"
    path.parent.mkdir(parents=True)
    path.write_text("x0,x1,x2,x3\n2,1,2,2\n")
    for data in (path, tmp_path / folder, tmp_path):
        found = dm.stream.score(machine, data, columns=["x0", "x1", "x2", "x3"]).read_all()
        assert found["prediction"].to_pylist() == [5]


def test_content_comes_before_the_name(tmp_path):
    write(tmp_path / "r.parquet").rename(tmp_path / "r.csv")
    assert kind_of(tmp_path / "r.csv") == "parquet"
    assert read_table(tmp_path / "r.csv").equals(TABLE)
    (tmp_path / "packed.csv").write_bytes(gzip.compress(text()))
    assert read_table(tmp_path / "packed.csv").equals(TABLE)


def test_a_text_that_the_user_names_is_a_table_whatever_its_name(tmp_path):
    (tmp_path / "adult.data").write_bytes(text())
    assert read_table(tmp_path / "adult.data").equals(TABLE)
    with pytest.raises(dm.InputError, match="its name does not end in"):
        kind_of(tmp_path / "adult.data", is_named=False)


def test_what_is_no_table_is_refused_in_words(tmp_path):
    (tmp_path / "r.parquet").write_bytes(b"PK\3\4 not that")
    with pytest.raises(dm.InputError, match="its name says parquet"):
        read_table(tmp_path / "r.parquet")
    (tmp_path / "r.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(dm.InputError, match="not Parquet, Arrow or text"):
        read_table(tmp_path / "r.csv")
    with pytest.raises(dm.InputError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(dm.InputError, match="no such file"):
        read_table(tmp_path / "nothing.csv")
    (tmp_path / "r.csv").write_text("a,a\n1,2\n")
    with pytest.raises(dm.InputError, match="several columns are named 'a'"):
        read_table(tmp_path / "r.csv")


def test_a_quoted_cell_may_hold_separators_quotes_and_line_breaks(tmp_path, monkeypatch):
    monkeypatch.setattr("decision_machines.files.csv_text.BLOCK", 256)
    rows = [f'{i},"line one of {i}\nand ""two"", quoted"\n' for i in range(200)]
    (tmp_path / "r.csv").write_text("a,b\n" + "".join(rows))
    found = read_table(tmp_path / "r.csv")
    assert found["a"].to_pylist() == list(range(200))
    assert found["b"][7].as_py() == 'line one of 7\nand "two", quoted'


def test_separators():
    assert separator("a.tsv/b.csv") == separator("b.txt") == ","
    assert separator("b.TSV") == separator("a.csv/b.tsv.gz") == "\t"
