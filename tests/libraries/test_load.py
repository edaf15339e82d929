"""`dm.load`: files told apart by content, pickles refused, skops files that cannot do harm."""

import bz2
import functools
import gzip
import io
import json
import lzma
import os
import pickle
import zipfile
import zlib

import joblib
import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble, tree
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

import decision_machines as dm

X, Y = make_classification(120, 5, random_state=0)
CATEGORIES = np.column_stack([np.round(X[:, 0]), X[:, 1:]])
REFUSED = (dm.ModelFormatError, dm.UnsupportedModelError)


@functools.cache
def models():
    with threadpool_limits(1):
        return {
            "tree": tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y),
            "forest": ensemble.RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, Y),
            "extra trees": ensemble.ExtraTreesRegressor(3, max_depth=3, random_state=0).fit(X, Y),
            "boosting": ensemble.GradientBoostingClassifier(n_estimators=3).fit(X, Y),
            "exponential": ensemble.GradientBoostingClassifier(
                loss="exponential", n_estimators=3
            ).fit(X, Y),
            "huber": ensemble.GradientBoostingRegressor(loss="huber", n_estimators=3).fit(X, Y),
            "hist": ensemble.HistGradientBoostingRegressor(max_iter=3).fit(X, Y),
            "hist categories": ensemble.HistGradientBoostingClassifier(
                max_iter=3, categorical_features=[0]
            ).fit(CATEGORIES, Y),
            "adaboost": ensemble.AdaBoostClassifier(n_estimators=3).fit(X, Y),
            "median": ensemble.AdaBoostRegressor(n_estimators=3).fit(X, Y),
            "bagging": ensemble.BaggingClassifier(n_estimators=3, max_features=3).fit(X, Y),
            "isolation": ensemble.IsolationForest(n_estimators=3, max_features=3).fit(X),
        }


MODELS = ["tree", "forest", "extra trees", "boosting", "exponential", "huber", "hist"]
MODELS += ["hist categories", "adaboost", "median", "bagging", "isolation"]


@functools.cache
def packed(name):
    return skops.io.dumps(models()[name])


@pytest.fixture
def file(tmp_path):
    def write(data, name="model.bin"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


# ---------------------------------------------------------------- told apart by content


@pytest.mark.parametrize("suffix", ["skops", "txt", "json", "pkl", "onnx", ""])
def test_the_name_of_a_file_says_nothing(file, suffix):
    path = file(packed("forest"), f"model.{suffix}")
    assert dm.load(path).equals(dm.convert(models()["forest"]))
    assert dm.load(str(path)).equals(dm.convert(models()["forest"]))


@pytest.mark.parametrize("kind", ["json", "ubj"])
def test_xgboost_files_are_known(file, kind):
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, Y, nthread=1), 3)
    data = bytes(booster.save_raw(kind))
    expected = dm.convert(booster)
    assert dm.load(file(data, "model.txt")).equals(expected)
    assert dm.convert(data).equals(expected)
    if kind == "json":
        assert dm.convert(data.decode()).equals(expected)


def test_lightgbm_files_are_known(file):
    lightgbm = pytest.importorskip("lightgbm")
    options = {"verbose": -1, "num_threads": 1, "objective": "binary"}
    booster = lightgbm.train(options, lightgbm.Dataset(X, Y), 3)
    text = booster.model_to_string()
    expected = dm.convert(booster)
    assert dm.load(file(text.encode(), "model.json")).equals(expected)
    assert dm.convert(text).equals(expected)


@pytest.mark.parametrize("kind", ["cbm", "json"])
def test_catboost_files_are_known(tmp_path, kind):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(
        iterations=3, depth=2, thread_count=1, verbose=0, allow_writing_files=False
    ).fit(X, Y)
    path = tmp_path / "model.pkl"
    model.save_model(str(path), format=kind)
    assert np.array_equal(dm.load(path).predict(X), model.predict(X))
    assert np.array_equal(dm.convert(path.read_bytes()).predict(X), model.predict(X))


def test_onnx_files_are_known(file):
    skl2onnx = pytest.importorskip("skl2onnx")
    proto = skl2onnx.to_onnx(models()["tree"], X[:1].astype(np.float32))
    data = proto.SerializeToString()
    assert dm.load(file(data, "model.txt")).equals(dm.convert(proto))


# ---------------------------------------------------------------- no model at all


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(dm.InputError, match="no such file"):
        dm.load(tmp_path / "absent.json")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(dm.InputError, match="folder"):
        dm.load(tmp_path)


@pytest.mark.parametrize("path", [5, None, b"bytes", "nul\0inside"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(dm.InputError):
        dm.load(path)


def test_an_empty_file_is_said_to_be_empty(file):
    with pytest.raises(dm.ModelFormatError, match="empty"):
        dm.load(file(b""))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_of_another_kind_is_to_be_unpacked_first(file, pack):
    with pytest.raises(dm.ModelFormatError, match="decompress"):
        dm.load(file(pack(b"tree\nversion=v4\n")))


@settings(max_examples=200, deadline=None)
@given(data=st.binary(min_size=1, max_size=80))
def test_random_bytes_are_never_a_model(data):
    with pytest.raises((dm.ModelFormatError, dm.UnsupportedModelError, dm.InputError)):
        dm.convert(data)


def test_a_path_handed_to_convert_is_sent_to_load(file):
    path = file(packed("tree"))
    for given_path in (path, str(path)):
        with pytest.raises(dm.InputError, match=r"dm\.load"):
            dm.convert(given_path)


def test_an_object_of_another_world_is_refused():
    with pytest.raises(dm.UnsupportedModelError, match=r"builtins\.dict"):
        dm.convert({})


# ---------------------------------------------------------------- pickles


class Bomb:
    """A pickle of it calls os.mkdir when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def pickles(value):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        plain = pickle.dumps(value, protocol)
        yield f"protocol {protocol}", plain
    for name in ("gzip", "zlib", "bz2", "xz", "lzma"):
        buffer = io.BytesIO()
        joblib.dump(value, buffer, compress=(name, 3))
        yield f"joblib {name}", buffer.getvalue()
    buffer = io.BytesIO()
    joblib.dump(value, buffer)
    yield "joblib", buffer.getvalue()


def test_pickles_are_refused_unless_trusted(file):
    expected = dm.convert(models()["forest"])
    for name, data in pickles(models()["forest"]):
        path = file(data, "model.json")
        with pytest.raises(dm.InputError, match="runs the code") as caught:
            dm.load(path)
        assert "trust=True" in caught.value.remedy, name
        assert dm.load(path, trust=True).equals(expected), name
        with pytest.raises(dm.InputError, match="runs the code"):
            dm.convert(data)


def test_code_in_a_pickle_does_not_run(tmp_path, file):
    trap = tmp_path / "trap"
    for name, data in pickles(Bomb(trap)):
        with pytest.raises(dm.DecisionMachinesError):
            dm.load(file(data))
        assert not trap.exists(), name


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_change_to_a_pickle_makes_it_run(tmp_path_factory, data):
    trap = tmp_path_factory.getbasetemp() / "trap"
    _, content = data.draw(st.sampled_from(list(pickles(Bomb(trap)))))
    content = bytearray(content)
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255))
    with pytest.raises(dm.DecisionMachinesError):
        dm.convert(bytes(content[: data.draw(st.integers(at + 1, len(content)))]))
    assert not trap.exists()


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_truncated_pickle_is_broken_even_where_trusted(file, share):
    for _, data in pickles(models()["forest"]):
        with pytest.raises(dm.ModelFormatError):
            dm.load(file(data[: max(int(len(data) * share), 40)]), trust=True)


def test_a_pickle_of_something_else_is_no_model(file):
    with pytest.raises(dm.UnsupportedModelError, match=r"builtins\.list"):
        dm.load(file(pickle.dumps([1, 2])), trust=True)


def test_a_pickle_of_a_lost_library_names_it(file):
    data = pickle.dumps(models()["tree"], 0).replace(b"sklearn.tree._classes", b"lost_library")
    with pytest.raises(dm.MissingLibraryError, match="lost_library"):
        dm.load(file(data), trust=True)


def test_trust_changes_nothing_for_files_that_need_none(file):
    assert dm.load(file(packed("tree")), trust=True).equals(dm.convert(models()["tree"]))
    with pytest.raises(dm.ModelFormatError):
        dm.load(file(b"nothing we know"), trust=True)


# ---------------------------------------------------------------- skops


@pytest.mark.parametrize("name", MODELS)
def test_every_model_passes_through_skops(name, file):
    assert dm.load(file(packed(name))).equals(dm.convert(models()[name]))


def test_compressed_skops_files_are_read(file):
    data = skops.io.dumps(models()["forest"], compression=zipfile.ZIP_DEFLATED)
    assert dm.load(file(data)).equals(dm.convert(models()["forest"]))


def stranger(x):
    return x


def test_a_skops_file_with_foreign_types_is_refused_by_name(file):
    pipe = make_pipeline(FunctionTransformer(stranger), models()["tree"])
    with pytest.raises(dm.UnsupportedModelError, match="stranger"):
        dm.load(file(skops.io.dumps(pipe)))


def repack(data, change):
    """The archive with its entries changed: change(name, content) → content, or None to drop it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out.getvalue()


def edit_arrays(data, wanted, edit):
    """The archive with edit(array) applied to arrays that have the field `wanted`."""

    def change(name, content):
        if not name.endswith(".npy"):
            return content
        array = np.load(io.BytesIO(content))
        if array.dtype.names is None or wanted not in array.dtype.names:
            return content
        edit(array)
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()

    return repack(data, change)


def set_field(field, value):
    def edit(array):
        array[field][0] = value

    return edit


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("forest", "left_child", 10**9),
        ("forest", "right_child", 0),
        ("forest", "left_child", -7),
        ("forest", "right_child", -1),
        ("forest", "feature", 10**9),
        ("forest", "feature", -2),
        ("bagging", "feature", 4),
        ("bagging", "feature", -1),
        ("forest", "threshold", np.nan),
        ("hist", "left", 2**32 - 1),
        ("hist", "right", 0),
        ("hist", "feature_idx", 10**9),
        ("hist", "feature_idx", -1),
        ("hist", "is_categorical", 1),
        ("hist categories", "bitset_idx", 10**6),
    ],
)
def test_trees_that_point_outside_themselves_are_broken(file, name, field, value):
    def edit(array):
        if field == "bitset_idx":
            array["is_categorical"][0] = 1
        array[field][0] = value

    with pytest.raises(dm.ModelFormatError):
        dm.load(file(edit_arrays(packed(name), field, edit)))


@pytest.mark.parametrize("count", ["-5", "0", "3"])
def test_a_tree_that_claims_fewer_nodes_than_it_has_is_broken(file, count):
    def change(name, content):
        if name != "schema.json":
            return content
        schema = json.loads(content)
        state = schema["content"]["content"]["tree_"]["content"]["content"]
        # An entry seen before under the same id would be taken in its place.
        state["node_count"] |= {"content": count, "__id__": 1}
        return json.dumps(schema)

    with pytest.raises(dm.ModelFormatError):
        dm.load(file(repack(packed("tree"), change)))


def test_a_tree_that_claims_more_nodes_than_it_has_is_broken():
    model = tree.DecisionTreeClassifier(max_depth=3).fit(X, Y)
    model.tree_.node_count = 10**8
    with pytest.raises(dm.ModelFormatError, match="claims 100000000 nodes"):
        dm.convert(model)


def test_an_array_that_claims_more_than_the_file_has_is_broken(file):
    def change(name, content):
        if not name.endswith(".npy"):
            return content
        out = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            out, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
        )
        return out.getvalue() + b"\0" * 8

    with pytest.raises(dm.ModelFormatError, match=r"\.npy"):
        dm.load(file(repack(packed("tree"), change)))


def test_an_archive_that_unpacks_without_end_is_broken(file):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 10**8)
    with pytest.raises(dm.ModelFormatError, match="times its size"):
        dm.load(file(out.getvalue()))


@pytest.mark.parametrize(
    "entries",
    [
        {"data.pkl": b"\x80\x04."},
        {"schema.json": b"{}"},
        {"schema.json": b"[1, 2]"},
        {"schema.json": b"not json"},
        {"schema.json": b"[" * 100_000},
        {"schema.json": b"{}", "weights.bin": b"\0"},
        {"schema.json": b"{}", "a.npy": b"\x93NUMPY"},
    ],
    ids=str,
)
def test_zip_archives_that_are_no_skops_files_are_broken(file, entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(dm.ModelFormatError):
        dm.load(file(out.getvalue()))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_changed_skops_file_is_refused_or_means_the_same(data):
    name = data.draw(st.sampled_from(["forest", "hist categories", "isolation"]))
    content = bytearray(packed(name))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(1, len(content)) | st.just(len(content)))]
    try:
        machine = dm.convert(bytes(content))
    except dm.DecisionMachinesError:
        return
    assert machine.equals(dm.convert(models()[name]))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_skops_file_with_changed_arrays_is_refused_or_gives_a_whole_machine(data):
    """The archive is sound and its arrays are not: nothing may crash on them."""
    name = data.draw(st.sampled_from(MODELS))
    with zipfile.ZipFile(io.BytesIO(packed(name))) as archive:
        arrays = sorted(n for n in archive.namelist() if n.endswith(".npy"))
    chosen = data.draw(st.sampled_from(arrays))

    def change(entry, content):
        if entry != chosen:
            return content
        content = bytearray(content)
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        return bytes(content)

    try:
        machine = dm.convert(repack(packed(name), change))
    except dm.DecisionMachinesError:
        return
    machine.margin(np.ones((3, machine.n_features)))


@pytest.mark.parametrize("size", ["1000000000000", "-1"])
def test_a_size_that_no_memory_holds_is_refused_and_not_allocated(size):
    """Of a tree, of the model whose sum starts at a constant, and of a random generator."""

    def enlarged(content, choose):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            schema = json.loads(archive.read("schema.json"))
        for node in choose(schema):
            node |= {"content": size, "__id__": 1}
        return repack(
            content, lambda entry, old: json.dumps(schema) if entry == "schema.json" else old
        )

    def sizes_of_trees(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key == "__reduce__" and node["__class__"] == "Tree":
                yield from value["args"]["content"][::2]
            elif isinstance(value, (dict, list)):
                yield from sizes_of_trees(value)

    def features_of_the_model(schema):
        yield schema["content"]["content"]["n_features_in_"]

    def pool_of_the_generator(schema):
        generator = schema["content"]["content"]["_feature_subsample_rng"]
        yield generator["content"]["seed_seq"]["content"]["pool_size"]

    for name, choose, said in (
        ("boosting", sizes_of_trees, f"made with the size {size}"),
        ("boosting", features_of_the_model, f"n_features_in_ = {size}"),
        ("hist", pool_of_the_generator, f"made with the size {size}"),
    ):
        with pytest.raises(dm.ModelFormatError, match=said):
            dm.convert(enlarged(packed(name), choose))


SCALARS = ["-1", "0", "1", "7", "1000000000000", "null", '"text"', "1e400", "true", "NaN"]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_skops_file_with_a_changed_schema_is_refused_or_gives_a_whole_machine(data):
    name = data.draw(st.sampled_from(MODELS))
    with zipfile.ZipFile(io.BytesIO(packed(name))) as archive:
        schema = json.loads(archive.read("schema.json"))
    places = []

    def walk(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, (dict, list)):
                walk(value)
            if key in ("content", "file", "__class__", "__loader__"):
                places.append((node, key))

    walk(schema)
    node, key = data.draw(st.sampled_from(places))
    if key == "content" and isinstance(node[key], str):
        node |= {"content": data.draw(st.sampled_from(SCALARS)), "__id__": 1}
    elif data.draw(st.booleans()):
        del node[key]
    else:
        node[key] = data.draw(st.sampled_from(["Tree", "TreeNode", "dict", "NdArrayNode", {}, []]))
    changed = repack(
        packed(name), lambda entry, old: json.dumps(schema) if entry == "schema.json" else old
    )
    try:
        machine = dm.convert(changed)
    except dm.DecisionMachinesError:
        return
    machine.margin(np.ones((3, machine.n_features)))


def test_zlib_streams_that_are_no_pickle_are_told_apart(file):
    with pytest.raises(dm.ModelFormatError):
        dm.load(file(zlib.compress(b"plain text, nothing else")))
