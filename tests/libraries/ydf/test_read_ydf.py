"""YDF's models, folders and bytes answer as YDF does, to the bit, on rows that are not nice."""

from __future__ import annotations

import functools
import struct

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decision_machines as dm
from decision_machines.libraries.ydf.wire import Message, decode

ydf = pytest.importorskip("ydf", reason="ydf has no wheel for this Python")
ydf.verbose(0)

FEATURES = ["a", "b", "c", "d"]
TASK = ydf.Task


@functools.cache
def training():
    rng = np.random.default_rng(0)
    n = 400
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n).astype("f4"),
            "b": rng.integers(0, 9, n).astype(float),
            "c": rng.choice(["x", "y", "z", "long label", "7"], n),
            "d": rng.random(n) < 0.4,
        }
    )
    table.loc[::17, "a"] = np.nan
    table.loc[::13, "c"] = None
    filled = table.a.fillna(0)
    table["binary"] = np.where(filled + (table.c == "x") + table.d > 0.7, "yes", "no")
    table["number"] = filled * 2 + table.b
    table["count"] = rng.poisson(1 + table.b)
    table["class"] = rng.choice(["u", "v", "w"], n)
    table["grade"] = rng.integers(0, 5, n)
    table["group"] = np.arange(n) // 10
    return table


def rows(n=700):
    """Rows with NaN, infinities, unseen and empty labels, None."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) * 3),
            "b": np.where(rng.random(n) < 0.2, np.nan, rng.integers(-2, 12, n).astype(float)),
            "c": rng.choice(["x", "y", "z", "long label", "7", "new", "", "<OOD>"], n).astype("O"),
            "d": rng.random(n) < 0.5,
        }
    )
    table.loc[::11, "c"] = None
    table.loc[::50, "a"] = np.inf
    table.loc[1::50, "a"] = -np.inf
    return table


def boosted(label, **settings):
    return ydf.GradientBoostedTreesLearner(
        label=label, features=FEATURES, **{"num_trees": 6} | settings
    )


def forest(label, **settings):
    return ydf.RandomForestLearner(label=label, features=FEATURES, num_trees=7, **settings)


REGRESSION = {"task": TASK.REGRESSION}
RANKING = {"task": TASK.RANKING, "ranking_group": "group"}
DEEP = {"max_depth": 14, "min_examples": 1, "num_trees": 3}
LEARNERS = {
    "binary": lambda: boosted("binary"),
    "binary, deep": lambda: boosted("class", **DEEP),
    "focal": lambda: boosted("binary", loss="BINARY_FOCAL_LOSS"),
    "classes": lambda: boosted("class"),
    "number": lambda: boosted("number", **REGRESSION),
    "number, deep": lambda: boosted("number", **REGRESSION, **DEEP),
    "absolute": lambda: boosted("number", loss="MEAN_AVERAGE_ERROR", **REGRESSION),
    "poisson": lambda: boosted("count", loss="POISSON", **REGRESSION),
    "poisson, deep": lambda: boosted("count", loss="POISSON", **REGRESSION, **DEEP),
    "ranking": lambda: boosted("grade", **RANKING),
    "cross-entropy ranking": lambda: boosted("grade", loss="XE_NDCG_MART", **RANKING),
    "logits": lambda: boosted("class", apply_link_function=False),
    "bins": lambda: boosted("binary", discretize_numerical_columns=True),
    "pure": lambda: boosted("binary", pure_serving_model=True),
    "slow": lambda: boosted("binary", missing_value_policy="LOCAL_IMPUTATION"),
    "slow number": lambda: boosted("number", missing_value_policy="LOCAL_IMPUTATION", **REGRESSION),
    "votes": lambda: forest("binary"),
    "votes, classes": lambda: forest("class"),
    "shares": lambda: forest("binary", winner_take_all=False),
    "shares, classes": lambda: forest("class", winner_take_all=False),
    "forest": lambda: forest("number", **REGRESSION),
    "cart": lambda: ydf.CartLearner(label="binary", features=FEATURES),
    "isolation": lambda: ydf.IsolationForestLearner(features=FEATURES, num_trees=8),
}


@functools.cache
def model(name):
    return LEARNERS[name]().train(training())


@functools.cache
def ours(name):
    return dm.convert(model(name))


def theirs(name, table):
    slow = not model(name).list_compatible_engines()
    return model(name).predict(table, use_slow_engine=slow)


@pytest.mark.parametrize("name", LEARNERS)
def test_answers_are_equal_to_the_bit(name):
    machine = ours(name)
    table = rows()
    found, wanted = machine.predict(table), theirs(name, table)
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)
    one = machine.row_function()
    for i in range(20):
        assert np.array_equal(machine.predict(table[i : i + 1])[0], wanted[i])
        assert np.array_equal(one(table.iloc[i].to_dict()), wanted[i])
    assert machine.predict(table[:0]).shape == (0, *wanted.shape[1:])


@pytest.mark.parametrize("name", ["binary", "classes", "slow", "votes, classes", "isolation"])
def test_is_certified(name):
    certificate = dm.certify(ours(name), model(name), rows(100))
    assert certificate, certificate


@pytest.mark.parametrize("name", LEARNERS)
def test_folders_and_bytes_are_the_same_machine(name, tmp_path):
    machine = ours(name)
    model(name).save(str(tmp_path / "model"))
    assert dm.load(tmp_path / "model").equals(machine)
    assert dm.convert(model(name).serialize()).equals(machine)
    (tmp_path / "bytes").write_bytes(model(name).serialize())
    assert dm.load(tmp_path / "bytes").equals(machine)
    machine.save(tmp_path / "m.dm")
    again = dm.load(tmp_path / "m.dm")
    assert again.equals(machine)
    assert np.array_equal(again.predict(rows(50)), machine.predict(rows(50)))


def test_a_folder_with_a_prefix_is_found(tmp_path):
    options = ydf.ModelIOOptions(file_prefix="mine_")
    model("binary").save(str(tmp_path / "model"), options)
    assert dm.load(tmp_path / "model").equals(dm.convert(model("binary")))


def test_tables_of_any_library_and_further_columns():
    machine, table = dm.convert(model("binary")), rows()
    wanted = machine.predict(table)
    for given_table in (
        pl.from_pandas(table),
        pl.from_pandas(table).to_arrow(),
        table.assign(binary="no", further=1),
        table[["d", "c", "b", "a"]],
        table.to_numpy(dtype=object),
    ):
        assert np.array_equal(machine.predict(given_table), wanted)
    categories = table.assign(c=table.c.astype("category"))
    assert np.array_equal(machine.predict(categories), wanted)


def test_integers_are_labels_by_their_digits():
    table = training().assign(c=np.arange(400) % 5 + np.where(np.arange(400) % 3, 0, 1000))
    learner = ydf.RandomForestLearner(
        label="class", features=["a", ydf.Feature("c", ydf.Semantic.CATEGORICAL)], num_trees=5
    )
    found = learner.train(table)
    machine = dm.convert(found)
    asked = pd.DataFrame({"a": np.zeros(1010, "f4"), "c": np.arange(-2, 1008)})
    assert np.array_equal(machine.predict(asked), found.predict(asked))
    as_text = asked.assign(c=asked.c.astype(str))
    assert np.array_equal(machine.predict(as_text), found.predict(as_text))
    assert dm.certify(machine, found)


def test_probabilities_have_labels():
    machine = dm.convert(model("binary"))
    found = machine.predict_proba(rows(5))
    assert found.shape == (5, 2)
    assert machine.output.classes[0].tolist() == model("binary").label_classes()
    assert np.array_equal(found[:, 1], theirs("binary", rows(5)))


VALUES = st.one_of(st.floats(width=32), st.just(float("nan")))
LABELS = st.sampled_from(["x", "y", "7", "", "other", "long label"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES, LABELS, st.booleans()), min_size=1, max_size=8))
def test_rows_that_hypothesis_finds(given_rows):
    table = pd.DataFrame(given_rows, columns=FEATURES)
    for name in ("binary", "shares, classes", "isolation"):
        assert np.array_equal(ours(name).predict(table), theirs(name, table))


# ---------------------------------------------------------------------- refusals


def refused(learner, table=None):
    found = learner.train(training() if table is None else table)
    with pytest.raises(dm.UnsupportedModelError) as raised:
        dm.convert(found)
    return raised.value.found


def test_what_a_machine_cannot_say_is_refused_by_name():
    assert "oblique" in refused(boosted("binary", split_axis="SPARSE_OBLIQUE"))
    words = training().assign(c=[["p", "q"][: i % 3] for i in range(400)])
    learner = ydf.RandomForestLearner(
        label="class", features=["a", ydf.Feature("c", ydf.Semantic.CATEGORICAL_SET)], num_trees=2
    )
    assert "CATEGORICAL_SET" in refused(learner, words)
    coded = training().assign(c=np.arange(400) % 4)
    feature = ydf.Feature("c", ydf.Semantic.CATEGORICAL, is_already_integerized=True)
    learner = ydf.RandomForestLearner(label="class", features=["a", feature], num_trees=2)
    assert "is_already_integerized" in refused(learner, coded)
    missing = training().assign(a=np.where(training().binary == "yes", np.nan, training().a))
    assert "na_condition" in refused(forest("binary", allow_na_conditions=True), missing)
    assert "LOCAL_IMPUTATION" in refused(forest("class", missing_value_policy="LOCAL_IMPUTATION"))


def blobs(data):
    found, at = [], 8
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def joined(parts):
    return b"BS\x01\x00\0\0\0\0" + b"".join(struct.pack("<I", len(p)) + p for p in parts)


UNKNOWN = bytes([0xF8, 0x3F, 0x01])
"""Field 1023, a number."""


def test_an_unknown_field_is_refused_by_its_number(tmp_path):
    model("binary").save(str(tmp_path))
    for name in ("header.pb", "data_spec.pb", "gradient_boosted_trees_header.pb"):
        path = tmp_path / name
        whole = path.read_bytes()
        path.write_bytes(whole + UNKNOWN)
        with pytest.raises(dm.UnsupportedModelError, match="field 1023 of"):
            dm.load(tmp_path)
        path.write_bytes(whole)
    path = tmp_path / "nodes-00000-of-00001"
    nodes = blobs(path.read_bytes())
    path.write_bytes(joined([*nodes[:-1], nodes[-1] + UNKNOWN]))
    with pytest.raises(dm.UnsupportedModelError, match="field 1023 of Node"):
        dm.load(tmp_path)
    path.write_bytes(joined(nodes))
    assert dm.load(tmp_path).equals(dm.convert(model("binary")))


def test_fields_of_every_message_are_those_that_ydf_has():
    """What YDF's own descriptors list is read or idle here, under the same number."""
    from yggdrasil_decision_forests.dataset import data_spec_pb2
    from yggdrasil_decision_forests.model import abstract_model_pb2
    from yggdrasil_decision_forests.model.decision_tree import decision_tree_pb2
    from yggdrasil_decision_forests.model.gradient_boosted_trees import gradient_boosted_trees_pb2
    from yggdrasil_decision_forests.model.random_forest import random_forest_pb2

    from decision_machines.libraries.ydf import fields

    for message, descriptor in (
        (fields.DATA_SPEC, data_spec_pb2.DataSpecification.DESCRIPTOR),
        (fields.COLUMN, data_spec_pb2.Column.DESCRIPTOR),
        (fields.CATEGORICAL, data_spec_pb2.CategoricalSpec.DESCRIPTOR),
        (fields.HEADER, abstract_model_pb2.AbstractModel.DESCRIPTOR),
        (fields.NODE, decision_tree_pb2.Node.DESCRIPTOR),
        (fields.CONDITION, decision_tree_pb2.Condition.DESCRIPTOR),
        (fields.GRADIENT_BOOSTED_TREES, gradient_boosted_trees_pb2.Header.DESCRIPTOR),
        (fields.RANDOM_FOREST, random_forest_pb2.Header.DESCRIPTOR),
    ):
        theirs = {field.number for field in descriptor.fields}
        assert theirs == {*message.read, *message.idle}, descriptor.name


def test_files_that_are_cut_off_or_changed_give_our_errors(tmp_path):
    data = model("binary").serialize()
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(data), 60):
        with pytest.raises(dm.DecisionMachinesError):
            dm.convert(data[: int(size)] or b"B")
    model("binary").save(str(tmp_path))
    path = tmp_path / "nodes-00000-of-00001"
    whole = path.read_bytes()
    for _ in range(150):
        changed = bytearray(whole)
        for at in rng.integers(0, len(whole), 3):
            changed[at] = rng.integers(0, 256)
        path.write_bytes(bytes(changed))
        try:
            dm.load(tmp_path)
        except dm.DecisionMachinesError:
            continue
    path.unlink()
    with pytest.raises(dm.ModelFormatError, match="nodes-00000-of-00001 cannot be read"):
        dm.load(tmp_path)


def test_a_folder_of_something_else_says_what_is_read(tmp_path):
    with pytest.raises(dm.InputError, match="YDF model"):
        dm.load(tmp_path)


def test_kinds_of_the_wire_format_are_checked():
    message = Message("M", {1: ("a", "float"), 2: ("b", "ints")})
    assert decode(b"\x12\x02\x01\x02", message, "reading")["b"] == [1, 2]
    for wrong in (b"\x08\x01", b"\x0d\x00", b"\x12\x05\x01", b"\x15\0\0\0\0", b"\xff" * 12):
        with pytest.raises(dm.DecisionMachinesError):
            decode(wrong, message, "reading")
