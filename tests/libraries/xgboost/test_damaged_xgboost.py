"""A damaged or hostile XGBoost file is refused in words, or read as what it says; never a crash."""

from __future__ import annotations

import copy
import functools
import json
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision_machines import (
    DecisionMachine,
    ModelFormatError,
    UnsupportedModelError,
)
from decision_machines.libraries.xgboost.read import looks_like_xgboost, read_xgboost_bytes
from decision_machines.libraries.xgboost.ubjson import read_ubjson

xgb = pytest.importorskip("xgboost")

KINDS = ("plain", "categories", "dart", "vector", "wrapped")


@functools.cache
def saved(kind: str, form: str) -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    X[:, 2] = rng.integers(0, 6, 80)
    y = (X[:, 0] + (X[:, 2] == 1) > 0).astype(float)
    params = {"nthread": 1, "max_depth": 2, "max_cat_to_onehot": 1}
    types = ["q", "q", "q"]
    if kind == "wrapped":
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(
            {"a": X[:, 0], "b": pd.Categorical(np.array(list("uvwxyz"))[X[:, 2].astype(int)])}
        )
        model = xgb.XGBClassifier(
            n_estimators=3, max_depth=2, n_jobs=1, enable_categorical=True, early_stopping_rounds=1
        )
        model.fit(frame, y.astype(int), eval_set=[(frame, y.astype(int))], verbose=False)
        booster = model.get_booster()
        booster.set_attr(scikit_learn='{"_estimator_type": "classifier"}')
        return bytes(booster.save_raw(form))
    if kind == "categories":
        types[2] = "c"
        params["objective"] = "binary:logistic"
    elif kind == "dart":
        params |= {"booster": "dart", "rate_drop": 0.5}
    elif kind == "vector":
        params["multi_strategy"] = "multi_output_tree"
        y = np.stack([y, 1 - y], axis=1)
    booster = xgb.train(params, xgb.DMatrix(X, y, feature_types=types), 3)
    return bytes(booster.save_raw(form))


def survives(data: bytes) -> DecisionMachine | None:
    """The machine, which then must also predict; None where the file is refused in words."""
    looks_like_xgboost(data)
    try:
        machine = read_xgboost_bytes(data, "damaged")
    except (ModelFormatError, UnsupportedModelError):
        return None
    if machine.n_features <= 1000:
        X = np.full((2, machine.n_features), np.nan)
        X[1] = 1.0
        assert machine.margin(X).shape == (2, machine.n_outputs)
        machine.predict(X)
        machine.apply(X)
    return machine


edits = st.lists(
    st.tuples(
        st.sampled_from(["set", "insert", "delete", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.one_of(
            st.binary(min_size=1, max_size=6),
            st.sampled_from([b"[", b"{", b'"', b"-", b"e9", b"\xff"]),
        ),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150)
@given(kind=st.sampled_from(KINDS), form=st.sampled_from(["json", "ubj"]), edits=edits)
def test_damaged_bytes_are_refused_or_read(kind, form, edits):
    data = saved(kind, form)
    for what, where, part in edits:
        at = int(where * len(data))
        if what == "set":
            data = data[:at] + part + data[at + len(part) :]
        elif what == "insert":
            data = data[:at] + part + data[at:]
        elif what == "delete":
            data = data[:at] + data[at + len(part) :]
        elif what == "repeat":
            data = data[:at] + data[at // 2 :]
        else:
            data = data[:at]
    survives(data)


@pytest.mark.parametrize("form", ["json", "ubj"])
def test_every_truncation_is_refused(form):
    data = saved("categories", form)
    for end in range(0, len(data), 7):
        assert survives(data[:end]) is None


def places(value, path=()):
    """Every place in a document."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))


@functools.cache
def places_of(kind: str) -> list:
    """Places, each kind of field as likely as any other, however many trees and nodes there are."""
    by_field: dict = {}
    for path in places(json.loads(saved(kind, "json"))):
        if path:
            field = tuple("*" if isinstance(step, int) else step for step in path)
            by_field.setdefault(field, []).append(path)
    return list(by_field.values())


ODD = st.sampled_from(
    (
        *(None, True, -1, 0, 1, 2, 3, 7, 2**31, 2**63, 10**30, -(10**30), 0.5, 1e300),
        *(float("nan"), float("inf"), -float("inf"), "", "0", "1", "-1", "9" * 20, "9" * 5000),
        *("1e999", "nan", "[", "[]", "[1,2]", "gblinear", "dart", "multi:softmax", "binary:hinge"),
        *([], {}, [[]], [0], [None], ["a" * 1000], {"name": "x"}, [1, 2, 3]),
    )
)


@settings(max_examples=400)
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_damaged_fields_are_refused_or_read(kind, data):
    document = json.loads(saved(kind, "json"))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(data.draw(st.sampled_from(places_of(kind)))))
        holder = document
        try:
            for step in path[:-1]:
                holder = holder[step]
            what = data.draw(st.sampled_from(["replace", "delete", "double", "shift"]))
            if what == "delete":
                del holder[path[-1]]
            elif what == "double" and isinstance(holder, list):
                holder.insert(path[-1], copy.deepcopy(holder[path[-1]]))
            elif what == "shift" and isinstance(holder[path[-1]], (int, float)):
                holder[path[-1]] += data.draw(st.integers(-3, 3))
            else:
                holder[path[-1]] = copy.deepcopy(data.draw(ODD))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier edit took the place away
    survives(json.dumps(document).encode())


@pytest.mark.parametrize("opening", [b"[", b'{"learner":', b'{"learner":[', b"[#i\x01", b"{i\x01a"])
def test_deep_nesting_is_refused(opening):
    assert survives(opening * 200_000) is None
    assert survives(b'{"learner":' + b"[" * 200_000) is None
    assert survives(b"{i\x07learner" + opening * 100_000) is None


@pytest.mark.parametrize("count", [2**31, 2**40, 2**62, 2**63 - 1, -1])
@pytest.mark.parametrize("start", [b"[$d#", b"[$U#", b"[#", b"S", b"{#", b"{"])
def test_lengths_beyond_the_file_cost_no_memory(start, count):
    data = b"{i\x07learner" + start + b"L" + struct.pack(">q", count) + b"\0" * 100
    tracemalloc.start()
    try:
        with pytest.raises(ModelFormatError, match="length"):
            read_ubjson(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_long_text_among_numbers_costs_no_memory():
    document = json.loads(saved("plain", "json"))
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["base_weights"] = tree["split_conditions"] = ["x" * 1_000_000] + [0.5] * 5000
    raw = json.dumps(document).encode()
    tracemalloc.start()
    try:
        assert survives(raw) is None
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("claim", ["leaves", "rounds", "classes"])
def test_claims_beyond_the_file_cost_no_memory(claim):
    document = json.loads(saved("wrapped" if claim == "rounds" else "vector", "json"))
    model = document["learner"]["gradient_booster"]["model"]
    param = document["learner"]["learner_model_param"]
    if claim == "leaves":
        param["num_target"], param["base_score"] = "999999999", "[0.5]"
        for tree in model["trees"]:
            tree["tree_param"]["size_leaf_vector"] = "999999999"
    elif claim == "rounds":
        del model["iteration_indptr"]
        model["gbtree_model_param"]["num_parallel_tree"] = str(2**62)
    else:
        param["num_class"], param["num_target"], param["base_score"] = "999999999", "1", "[0.5]"
    raw = json.dumps(document).encode()
    tracemalloc.start()
    try:
        assert survives(raw) is None
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def ubjson(value) -> bytes:
    """Our own writer, for the round trip."""
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + ubjson(len(value.encode())) + value.encode()
    if isinstance(value, list):
        return b"[" + b"".join(map(ubjson, value)) + b"]"
    return b"{" + b"".join(ubjson(key)[1:] + ubjson(item) for key, item in value.items()) + b"}"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_ubjson_reads_back_what_was_written(value):
    assert read_ubjson(ubjson(value)) == value


@given(
    st.sampled_from([">i1", ">u1", ">i2", ">i4", ">i8", ">f4", ">f8"]),
    st.lists(st.integers(-90, 90)),
)
def test_typed_arrays_are_arrays(dtype, numbers):
    marker = {">i1": "i", ">u1": "U", ">i2": "I", ">i4": "l", ">i8": "L", ">f4": "d", ">f8": "D"}[
        dtype
    ]
    array = np.abs(np.array(numbers, int)).astype(dtype)
    data = f"[${marker}#".encode() + ubjson(len(array)) + array.tobytes()
    assert np.array_equal(read_ubjson(data), array)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data):
    for start in (b"", b"{", b"[", b"{i\x07learner"):
        try:
            read_ubjson(start + data)
        except ModelFormatError:
            continue
