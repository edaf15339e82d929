"""The engine behind a C interface: the machine's bits, and an error text for every bad file."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from coded_cases import REFUSED, coded_answers, coded_cases
from hypothesis import given
from hypothesis import strategies as st
from library_models import LIBRARIES, models
from strategies import machines, probe_rows

import decision_machines as dm

EXAMPLE = Path(__file__).parents[2] / "examples" / "c" / "score.c"


@pytest.fixture(scope="module")
def library():
    found = ctypes.CDLL(str(dm.c_library().library))
    found.dm_model_load_bytes.restype = ctypes.c_void_p
    found.dm_model_load.restype = ctypes.c_void_p
    found.dm_model_describe.restype = ctypes.c_char_p
    for name in ("n_features", "n_outputs", "n_trees"):
        getattr(found, f"dm_model_{name}").restype = ctypes.c_int64
    return found


class Loaded:
    """A model of the C library."""

    def __init__(self, library, content):
        self.library, error = library, ctypes.create_string_buffer(500)
        made = library.dm_model_load_bytes(content, ctypes.c_size_t(len(content)), error, 500)
        self.error = error.value.decode(errors="replace")
        self.model = None if made is None else ctypes.c_void_p(made)

    def ask(self, function, x, out, threads=1):
        error = ctypes.create_string_buffer(500)
        code = getattr(self.library, f"dm_model_{function}")(
            self.model,
            x.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int64(len(x)),
            out.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int(threads),
            error,
            ctypes.c_size_t(500),
        )
        assert code == 0, error.value
        return out

    def margin(self, x, threads=1):
        k = self.library.dm_model_n_outputs(self.model)
        name = "margin" if x.dtype == np.float64 else "margin_f32"
        return self.ask(name, x, np.full((len(x), k), 7.0), threads)

    def apply(self, x):
        T = self.library.dm_model_n_trees(self.model)
        return self.ask("apply", x, np.full((len(x), T), -7, np.int32))

    def __del__(self):
        self.library.dm_model_free(self.model)


def content_of(machine, folder):
    machine.save(folder / "m.dm")
    return (folder / "m.dm").read_bytes()


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_kind_of_model_is_equal_or_refused_by_name(library, name, tmp_path):
    for label, machine, X in coded_cases(name):
        loaded = Loaded(library, content_of(machine, tmp_path))
        if loaded.model is None:
            assert REFUSED[label] in loaded.error, label
            continue
        if X.shape[1] != machine.n_features:
            continue
        margins, leaves = coded_answers(machine, X)
        for n in (len(X), 1, 40, 0):
            assert np.array_equal(loaded.margin(X[:n]), margins[:n]), label
        assert np.array_equal(loaded.apply(X), leaves), label


@given(machines(), st.integers(0, 2**32 - 1))
def test_any_machine_gives_the_same_bits(library, tmp_path_factory, machine, seed):
    content = content_of(machine, tmp_path_factory.mktemp("m"))
    loaded = Loaded(library, content)
    if loaded.model is None:
        assert "not run here" in loaded.error or "not checked here" in loaded.error
        return
    X = np.ascontiguousarray(probe_rows(machine, 40, seed), np.float64)
    assert np.array_equal(loaded.margin(X), machine.margin(X))
    assert np.array_equal(loaded.apply(X), machine.apply(X))
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    assert np.array_equal(loaded.margin(single), machine.margin(single))


def test_threads_share_a_model(library, tmp_path):
    machine = dm.convert(models("sklearn")["RandomForestClassifier"])
    loaded = Loaded(library, content_of(machine, tmp_path))
    X = np.random.default_rng(0).standard_normal((5000, machine.n_features))
    wanted = machine.margin(X)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda i: loaded.margin(X, threads=1 + i % 3), range(12)):
            assert np.array_equal(found, wanted)


def test_broken_files_are_refused_in_words(library, tmp_path):
    content = content_of(dm.convert(models("lightgbm")["LGBMClassifier"]), tmp_path)
    for broken in (b"", b"rubbish", content[:100], content[:-1], b"\xff" * 64, content[8:]):
        loaded = Loaded(library, broken)
        assert loaded.model is None
        assert loaded.error.startswith("While loading a model: ")
    assert Loaded(library, content).model is not None


@given(st.data())
def test_no_change_of_a_byte_crashes(library, tmp_path_factory, data):
    content = bytearray(content_of(dm.figure_one(), tmp_path_factory.mktemp("m")))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    loaded = Loaded(library, bytes(content))
    if loaded.model is not None and library.dm_model_n_features(loaded.model) == 4:
        loaded.margin(np.zeros((30, 4)))


def test_the_example_compiles_as_c_and_prints_the_margins(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    machine = dm.convert(models("lightgbm")["LGBMClassifier"])
    machine.save(tmp_path / "model.dm")
    library, header = dm.c_library()
    built = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", str(EXAMPLE)]
    built += [f"-I{header.parent}", str(library), f"-Wl,-rpath,{library.parent}"]
    subprocess.run([*built, "-o", str(tmp_path / "score")], check=True)
    X = np.random.default_rng(0).standard_normal((70, machine.n_features))
    X[3, 1] = np.nan
    lines = "\n".join(" ".join(map(repr, row)) for row in X.tolist())
    run = [str(tmp_path / "score"), str(tmp_path / "model.dm")]
    done = subprocess.run(run, input=lines, capture_output=True, text=True, check=True)
    found = np.array([[float(v) for v in line.split()] for line in done.stdout.splitlines()])
    assert np.array_equal(found, machine.margin(X))
    (tmp_path / "model.dm").write_bytes(b"x")
    done = subprocess.run(run, input=lines, capture_output=True, text=True)
    assert done.returncode == 2
    assert "While loading" in done.stderr
    missing = [str(tmp_path / "score"), os.devnull + "x"]
    assert "cannot be opened" in subprocess.run(missing, capture_output=True, text=True).stderr
