"""Files that are broken, edited or made to do harm: refused, soon, in little memory."""

from __future__ import annotations

import json
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_machine, probe_rows

import decision_machines as dm
from decision_machines.libraries.own.read import read_dm_bytes
from decision_machines.libraries.own.safetensors import read_container
from decision_machines.libraries.own.write import container, dm_bytes
from decision_machines.machine import schema
from decision_machines.machine.steps import Step

RNG = np.random.default_rng(0)
MACHINES = [
    make_machine([5, 3, 1], RNG, rules=True, n_outputs=2),
    make_machine([4, 6], RNG, oblique=True, narrow=True, n_outputs=3),
    make_machine([8], RNG, rules=False, dtype=np.float32, values="real"),
]
MACHINES.append(
    replace(
        MACHINES[2],
        output=replace(
            MACHINES[2].output,
            link="averaged onnx",
            link_params=(3.0, Step("add", (1.5,)), Step("logistic"), Step("complement")),
        ),
    )
)
FOLDER = Path(__file__).parent / "files"
FILES = [
    *map(dm_bytes, MACHINES),
    *((FOLDER / f"version-1{kind}.dm").read_bytes() for kind in ("-steps", "-averaged-steps")),
]


def refused_or_a_machine(data):
    """Reading either refuses in words or gives a machine that answers."""
    try:
        machine = dm.convert(data)
    except (dm.ModelFormatError, dm.UnsupportedModelError, dm.InputError):
        return
    if machine.n_features < 1000:
        machine.predict(probe_rows(machine, 3)) if machine.n_trees else None


@settings(max_examples=300)
@given(
    which=st.integers(0, len(FILES) - 1),
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_changed_bytes_never_crash(which, changes):
    data = bytearray(FILES[which])
    for at, value in changes:
        data[at % len(data)] = value
    refused_or_a_machine(bytes(data))


@settings(max_examples=100)
@given(which=st.integers(0, len(FILES) - 1), cut=st.integers(0, 10**6), more=st.binary(max_size=9))
def test_files_of_another_length_are_refused(which, cut, more):
    data = FILES[which]
    changed = data[: cut % len(data)] + more
    with pytest.raises(dm.DecisionMachinesError):
        dm.convert(changed)
    if more:
        with pytest.raises(dm.ModelFormatError):
            dm.convert(data + more)


@pytest.mark.parametrize("data", FILES)
def test_a_file_cut_anywhere_is_refused(data):
    for cut in range(9, len(data), 7):
        with pytest.raises(dm.ModelFormatError):
            read_dm_bytes(data[:cut])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(
    which=st.integers(0, len(FILES) - 1),
    part=st.sampled_from(["columns", "output", None]),
    number=st.integers(0, 100),
    value=JSON,
)
def test_any_value_in_place_of_any_other_never_crashes(which, part, number, value):
    metadata, arrays = read_container(FILES[which], "testing")
    texts = json.loads(metadata["machine"])
    place = texts if part is None else texts[part]
    place[sorted(place)[number % len(place)]] = value
    refused_or_a_machine(
        b"".join(container(arrays, {**metadata, "machine": json.dumps(texts, allow_nan=True)}))
    )


@settings(max_examples=300)
@given(
    which=st.integers(0, len(FILES) - 1),
    number=st.integers(0, 100),
    at=st.integers(0, 1000),
    value=st.sampled_from([-(2**63), -(2**31), -2, -1, 0, 1, 2, 7, 100, 2**31 - 1, 2**63 - 1]),
)
def test_any_number_in_place_of_any_other_never_crashes(which, number, at, value):
    """Cycles, children that are not there, columns that are not there, starts that go back."""
    metadata, arrays = read_container(FILES[which], "testing")
    arrays = {name: array.copy() for name, array in arrays.items()}
    array = arrays[sorted(arrays)[number % len(arrays)]]
    if array.size:
        with np.errstate(all="ignore"):
            array.flat[at % array.size] = np.array(value).astype(array.dtype)
    refused_or_a_machine(b"".join(container(arrays, metadata)))


@settings(max_examples=200)
@given(
    which=st.integers(0, len(FILES) - 1),
    number=st.integers(0, 100),
    shape=st.lists(st.integers(0, 9), max_size=3),
    dtype=st.sampled_from(sorted(schema.DTYPES)),
)
def test_arrays_of_other_shapes_and_dtypes_are_refused(which, number, shape, dtype):
    metadata, arrays = read_container(FILES[which], "testing")
    name = sorted(arrays)[number % len(arrays)]
    other = np.zeros(shape, schema.DTYPES[dtype])
    if other.shape == arrays[name].shape:
        return
    with pytest.raises(dm.ModelFormatError):
        dm.convert(b"".join(container({**arrays, name: other}, metadata)))


@pytest.mark.parametrize("which", range(len(FILES)))
def test_an_array_left_out_or_added_is_refused(which):
    metadata, arrays = read_container(FILES[which], "testing")
    for name in arrays:
        fewer = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(dm.ModelFormatError):
            dm.convert(b"".join(container(fewer, metadata)))
    for name in ("more", "output.classes.0", "linear.start", "output.classes.x"):
        # What no machine of this version has may be from a later one.
        is_known = name in schema.ARRAYS
        with pytest.raises(dm.ModelFormatError if is_known else dm.UnsupportedModelError):
            dm.convert(b"".join(container({**arrays, name: np.zeros(1)}, metadata)))


def test_trees_that_lead_back_to_themselves_are_refused():
    metadata, arrays = read_container(FILES[2], "testing")
    children = arrays["children"].copy()
    children[1:] = np.where(children[1:] >= 0, 0, children[1:])
    with pytest.raises(dm.ModelFormatError, match="child"):
        dm.convert(b"".join(container({**arrays, "children": children}, metadata)))


def with_header(header, body=b""):
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return len(text).to_bytes(8, "little") + text + body


META = {"format": schema.FORMAT, "version": str(schema.VERSION), "machine": "{}"}
CLAIMS = {
    "a header longer than the file": (2**40).to_bytes(8, "little") + b'{"decision-machines"',
    "a header of all the bytes there are": (2**64 - 1).to_bytes(8, "little")
    + b'{"decision-machines"',
    "an array of 2**47 numbers": with_header(
        {"__metadata__": META, "V": {"dtype": "F64", "shape": [2**47], "data_offsets": [0, 2**50]}}
    ),
    "a shape whose product is huge": with_header(
        {
            "__metadata__": META,
            "V": {"dtype": "F64", "shape": [2**47, 2**47], "data_offsets": [0, 8]},
        },
        b"x" * 8,
    ),
    "negative sizes": with_header(
        {"__metadata__": META, "V": {"dtype": "F64", "shape": [-1], "data_offsets": [0, -8]}}
    ),
    "sizes that are no whole numbers": with_header(
        {"__metadata__": META, "V": {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]}},
        b"x" * 8,
    ),
    "arrays that overlap": with_header(
        {
            "__metadata__": META,
            "V": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
            "t": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
        },
        b"x" * 8,
    ),
    "a gap between arrays": with_header(
        {"__metadata__": META, "V": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}},
        b"x" * 16,
    ),
    "a dtype that does not exist": with_header(
        {"__metadata__": META, "V": {"dtype": "F65", "shape": [1], "data_offsets": [0, 8]}},
        b"x" * 8,
    ),
    "metadata that is no text": with_header({"__metadata__": {**META, "version": 1}}),
    "no version": with_header({"__metadata__": {"format": schema.FORMAT}}),
    "version 0": with_header({"__metadata__": {**META, "version": "0"}}),
    "a key twice": with_header(
        b'{"__metadata__": {"format": "decision-machines"}, "a": 1, "a": 1}'
    ),
    "a list for a header": with_header(["decision-machines"]),
    "JSON nested deeply": with_header(
        {"__metadata__": {**META, "machine": "[" * 10**6}},
    ),
    "a header nested deeply": with_header(b'{"decision-machines":' + b"[" * 10**6),
    "bytes that are no text": with_header(b'{"decision-machines": "\xff"}'),
    "a number of a million digits": with_header(
        {"__metadata__": {**META, "machine": '{"columns": ' + "9" * 10**6 + "}"}}
    ),
}


@pytest.mark.parametrize("data", CLAIMS.values(), ids=CLAIMS)
def test_claims_that_a_file_cannot_keep_cost_nothing(data):
    tracemalloc.start()
    begin = time.perf_counter()
    try:
        with pytest.raises(dm.ModelFormatError):
            dm.convert(data)
        assert time.perf_counter() - begin < 2
        assert tracemalloc.get_traced_memory()[1] < 50 * len(data) + 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("columns", "n_features", 2**31),
        ("columns", "n_features", -1),
        ("columns", "dtype", "float16"),
        ("columns", "integers_as", "object"),
        ("columns", "categories", [[2**40, ["a"]]]),
        ("columns", "label_hash", "md5"),
        ("output", "link", "os.system"),
        ("output", "link", "averaged identity"),
        ("output", "link_params", [1.0, 2.0, 3.0]),
        ("output", "decision", "argmax"),
        ("output", "decision", "above"),
        ("output", "groups", [0, 10**9]),
        ("output", "groups", []),
        ("output", "classes", [{"dtype": "<U999999999", "labels": ["a", "b"]}]),
        ("output", "classes", [{"dtype": "|V8", "labels": ["a", "b"]}]),
        ("output", "classes", [{"dtype": "|O", "labels": [{"a": 1}]}]),
        ("output", "divisor", 0.0),
        ("output", "divisor", "nan"),
        ("output", "aggregate", "mode"),
    ],
)
def test_values_that_no_machine_has_are_refused(part, key, value):
    metadata, arrays = read_container(FILES[2], "testing")
    texts = json.loads(metadata["machine"])
    texts[part][key] = value
    with pytest.raises(dm.ModelFormatError):
        dm.convert(b"".join(container(arrays, {**metadata, "machine": json.dumps(texts)})))


def with_link(link, params, version=schema.VERSION, which=2):
    """A file whose link and its parameters are these."""
    metadata, arrays = read_container(FILES[which], "testing")
    texts = json.loads(metadata["machine"])
    texts["output"] |= {"link": link, "link_params": params}
    metadata = {**metadata, "version": str(version), "machine": json.dumps(texts)}
    return b"".join(container(arrays, metadata))


@pytest.mark.parametrize("version", range(1, schema.VERSION + 1))
@pytest.mark.parametrize(
    "params",
    [
        *([99.0, 0.0], [0.0], [0.0, 5.0], [0.5, 0.0], [0.0, -1.0], [10.0, "nan"], [10.0, 1.5]),
        *([0.0, "inf"], [True, 0.0], [None, 0.0], [{}, 0.0], [[], []], ["single", 0.0]),
        *([0.0, 1e300], [-1.0, 0.0], [10.0, 1.0, "x"], [10.0, 1.0, None], [10.0, 0.0]),
        *([2.0, 1.0, 0.5], [10.0, 2.0, 1.0], ["onnx"]),
    ],
    ids=str,
)
def test_a_program_of_steps_that_do_not_exist_is_refused(params, version):
    for link, before in (("onnx", []), ("averaged onnx", [3.0])):
        with pytest.raises(dm.ModelFormatError, match=r"link_params|step"):
            dm.convert(with_link(link, [*before, *params], version))


ADD = {"step": "add", "constants": [1.0]}
WRONG_STEPS = {
    "an unknown step": {"step": "os.system", "constants": []},
    "no step": {"step": "", "constants": []},
    "a step by number": {"step": 10, "constants": [1.0]},
    "a step of no text": {"step": None, "constants": []},
    "a step that is a list": {"step": ["add"], "constants": [1.0]},
    "a constant too many": {"step": "logistic", "constants": [1.0]},
    "no constant": {"step": "add", "constants": []},
    "constants that are no list": {"step": "add", "constants": 1.0},
    "constants that are an object": {"step": "add", "constants": {"0": 1.0}},
    "a constant that is text": {"step": "add", "constants": ["1.0"]},
    "a constant that is nothing": {"step": "add", "constants": [None]},
    "a constant that is a truth value": {"step": "add", "constants": [True]},
    "a constant that is a step": {"step": "add", "constants": [ADD]},
    "constants left out": {"step": "logistic"},
    "a name left out": {"constants": []},
    "a field too many": {**ADD, "more": 1},
    "a list": ["add", 1.0],
    "text": "add",
    "nothing": None,
    "a number": 10.0,
}


@pytest.mark.parametrize("step", WRONG_STEPS.values(), ids=WRONG_STEPS)
def test_a_step_of_another_form_is_refused(step):
    for link, before in (("onnx", []), ("averaged onnx", [3.0])):
        with pytest.raises(dm.ModelFormatError, match=r"link_params|step"):
            dm.convert(with_link(link, [*before, ADD, step]))


@pytest.mark.parametrize(
    ("link", "params"),
    [
        ("identity", [ADD]),
        ("softmax", [0.0, ADD]),
        ("averaged onnx", [ADD]),
        ("averaged onnx", [ADD, 3.0]),
        ("averaged onnx", [0.0, ADD]),
        ("averaged onnx", ["nan", ADD]),
        ("averaged onnx", [-3.0, ADD]),
        ("onnx", [3.0, ADD]),
        ("expit", [0.0]),
        ("expit", [-1.0]),
    ],
)
def test_a_link_with_parameters_of_another_is_refused(link, params):
    with pytest.raises(dm.ModelFormatError, match="link_params"):
        dm.convert(with_link(link, params))


def test_constants_for_other_columns_than_there_are_are_refused():
    machine = make_machine([3], np.random.default_rng(0), n_outputs=2)
    metadata, arrays = read_container(dm_bytes(machine), "testing")
    texts = json.loads(metadata["machine"])
    for steps in (
        [{"step": "add", "constants": [1.0, 2.0, 3.0]}],
        [{"step": "complement", "constants": []}, {"step": "add", "constants": [1.0, 2.0]}],
    ):
        texts["output"] |= {"link": "onnx", "link_params": steps}
        with pytest.raises(dm.ModelFormatError, match="constants for"):
            dm.convert(b"".join(container(arrays, {**metadata, "machine": json.dumps(texts)})))


def test_steps_that_would_fill_the_memory_are_refused():
    with pytest.raises(dm.ModelFormatError, match="columns"):
        dm.convert(with_link("onnx", [{"step": "opposite", "constants": []}] * 60))


def test_fewer_labels_than_a_link_gives_responses_are_refused():
    machine = make_machine([3], np.random.default_rng(0), n_outputs=1)
    metadata, arrays = read_container(dm_bytes(machine), "testing")
    texts = json.loads(metadata["machine"])
    texts["output"] |= {
        "decision": "argmax",
        "classes": [{"dtype": "<U1", "labels": ["a", "b"]}],
        "link": "onnx",
        "link_params": [{"step": "opposite", "constants": []}] * 2,
    }
    with pytest.raises(dm.ModelFormatError, match="labels"):
        dm.convert(b"".join(container(arrays, {**metadata, "machine": json.dumps(texts)})))
