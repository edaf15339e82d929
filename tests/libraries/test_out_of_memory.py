"""What ends the reading of a sound file passes through: it is never called a broken file."""

import functools
import pickle

import numpy as np
import pytest

import decision_machines as dm
from decision_machines.libraries.originals import open_original

X = np.random.default_rng(0).standard_normal((60, 3))
Y = (X[:, 0] > 0).astype(int)
ENDS = [MemoryError, KeyboardInterrupt]


@functools.cache
def tree():
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)


@functools.cache
def booster():
    import xgboost

    return xgboost.train({"nthread": 1, "max_depth": 2}, xgboost.DMatrix(X, Y, nthread=1), 2)


def _lightgbm():
    import lightgbm

    rows = lightgbm.Dataset(X, Y, params={"verbose": -1})
    model = lightgbm.train({"num_threads": 1, "verbose": -1}, rows, 2)
    return model.model_to_string().encode()


def _catboost(path):
    import catboost

    model = catboost.CatBoostRegressor(
        iterations=2, depth=2, thread_count=1, verbose=0, allow_writing_files=False
    ).fit(X, Y)
    model.save_model(str(path), format="cbm")


def _skops():
    import skops.io

    return skops.io.dumps(tree())


KINDS = ("own", "xgboost", "lightgbm", "catboost", "onnx", "skops", "pickle")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A sound file of every kind."""
    folder = tmp_path_factory.mktemp("models")
    machine = dm.convert(tree())
    machine.save(folder / "own")
    (folder / "xgboost").write_bytes(bytes(booster().save_raw("ubj")))
    (folder / "lightgbm").write_bytes(_lightgbm())
    _catboost(folder / "catboost")
    (folder / "onnx").write_bytes(machine.to_onnx().SerializeToString())
    (folder / "skops").write_bytes(_skops())
    (folder / "pickle").write_bytes(pickle.dumps(tree()))
    return folder


def fails(monkeypatch, place, error):
    """Let a function end with this error, as it does where there is not enough memory."""

    def end(*given, **options):
        raise error("ended here")

    monkeypatch.setattr(place, end)


def passes(error, call):
    with pytest.raises(error, match="ended here") as told:
        call()
    assert type(told.value) is error


@pytest.mark.parametrize("error", ENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_memory_while_loading_is_no_fault_of_the_file(files, monkeypatch, kind, error):
    fails(monkeypatch, "decision_machines.machine.DecisionMachine.__post_init__", error)
    passes(error, lambda: dm.load(files / kind, trust=True))


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("skops", "skops.io.get_untrusted_types"),
        ("skops", "skops.io.loads"),
        ("skops", "zipfile.ZipFile.__init__"),
        ("skops", "numpy.lib.format.read_magic"),
        ("pickle", "joblib.load"),
        ("onnx", "onnx.numpy_helper.to_array"),
    ],
)
@pytest.mark.parametrize("error", ENDS)
def test_nor_where_the_library_unpacks_it(files, monkeypatch, kind, place, error):
    if kind == "onnx":
        tensors = dm.convert(tree()).to_onnx(operator="v5").SerializeToString()
        fails(monkeypatch, place, error)
        passes(error, lambda: dm.convert(tensors))
        return
    fails(monkeypatch, place, error)
    passes(error, lambda: dm.load(files / kind, trust=True))


@pytest.mark.parametrize("error", ENDS)
def test_nor_where_onnx_parses_it(files, monkeypatch, error):
    import onnx

    class Model:
        def ParseFromString(self, data):
            raise error("ended here")

    monkeypatch.setattr(onnx, "ModelProto", Model)
    passes(error, lambda: dm.load(files / "onnx"))


@pytest.mark.parametrize("error", ENDS)
def test_nor_where_a_library_opens_its_own_file(files, monkeypatch, error):
    fails(monkeypatch, "xgboost.Booster.load_model", error)
    passes(error, lambda: open_original(files / "xgboost"))


@pytest.mark.parametrize("error", ENDS)
@pytest.mark.parametrize("method", ["save_raw", "get_booster"])
def test_nor_where_xgboost_writes_its_model_down(monkeypatch, method, error):
    import xgboost

    if method == "save_raw":
        model = booster()
        fails(monkeypatch, "xgboost.Booster.save_raw", error)
    else:
        model = xgboost.XGBRegressor()
        fails(monkeypatch, "xgboost.XGBRegressor.get_booster", error)
    passes(error, lambda: dm.convert(model))


@pytest.mark.parametrize("error", ENDS)
def test_nor_where_torch_reads_a_checkpoint(tmp_path, monkeypatch, error):
    pytest.importorskip("torch", reason="torch is not installed")
    from decision_machines.train.tune.checkpoints import Identity, load

    (tmp_path / "state").write_bytes(b"any")
    fails(monkeypatch, "torch.load", error)
    passes(error, lambda: load(tmp_path / "state", Identity({}, {})))


@pytest.mark.parametrize("error", ENDS)
def test_nor_where_arrow_looks_for_row_groups(tmp_path, monkeypatch, error):
    import pyarrow as pa
    from pyarrow import parquet

    from decision_machines.stream.parts import find_parts, split_parts

    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "rows.parquet")
    parts = find_parts(tmp_path)
    of_arrow = pa.lib.ArrowMemoryError if error is MemoryError else error
    fails(monkeypatch, "pyarrow.parquet.read_metadata", of_arrow)
    with pytest.raises(error, match="ended here"):
        split_parts(parts, 10)
