"""Our own file: what is saved comes back equal in every bit, whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from library_models import LIBRARIES, models, onnx_models
from strategies import machines, make_machine, probe_rows

import decision_machines as dm
from decision_machines.libraries.own.read import read_dm_bytes
from decision_machines.libraries.own.safetensors import read_container
from decision_machines.libraries.own.write import container, dm_bytes
from decision_machines.machine import links, schema
from decision_machines.machine.decisions import DECISIONS
from decision_machines.machine.steps import STEPS, Step

FILES = Path(__file__).parent / "files"
VERSIONS = range(1, schema.VERSION + 1)
KINDS = ("", "-steps", "-averaged-steps")
"""What follows the version in the names of the files that `make_files.py` writes."""


def comes_back(machine, path):
    machine.save(path)
    found = dm.load(path)
    assert found.equals(machine)
    assert machine.equals(found)
    assert found.source == machine.source
    return found


@given(machine=machines())
def test_any_machine_comes_back_equal(machine):
    assert read_dm_bytes(dm_bytes(machine)).equals(machine)


@given(machine=machines(oblique=True, min_trees=1))
def test_oblique_machines_come_back_equal(machine):
    assert read_dm_bytes(dm_bytes(machine)).equals(machine)


@pytest.mark.parametrize("library", LIBRARIES)
def test_models_of_every_library_come_back_equal_and_answer_alike(library, tmp_path):
    for name, model in models(library).items():
        machine = dm.convert(model)
        found = comes_back(machine, tmp_path / f"{name}.dm")
        X = np.nan_to_num(probe_rows(machine, 20))
        if not machine.columns.encodes_arrays:
            assert np.array_equal(found.margin(X), machine.margin(X), equal_nan=True)


def test_onnx_models_come_back_equal(tmp_path):
    for name, model in onnx_models().items():
        comes_back(dm.convert(model), tmp_path / f"{name}.dm")


LABELS = {
    "text": np.array(["a", "ß", "", "\U0001f333", "\udc80"]),
    "wide text": np.array(["a", "b"], "<U40"),
    "text of another byte order": np.array(["a", "b"], ">U3"),
    "int64": np.array([-(2**62), 7]),
    "int8": np.array([-3, 7], np.int8),
    "uint64": np.array([2**64 - 1, 0], np.uint64),
    "big endian": np.array([1, 2], ">i4"),
    "bool": np.array([False, True]),
    "float32": np.array([0.1, np.nan, -0.0], np.float32),
    "float64": np.array([1e300, np.inf, 0.1]),
    "objects": np.array(["a", 1, 2.5, True, None, float("-inf")], object),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_class_labels_of_any_kind_come_back_in_their_dtype(labels, tmp_path):
    k = len(labels)
    machine = make_machine([3, 4], np.random.default_rng(0), n_outputs=k)
    output = replace(machine.output, classes=(labels,), decision="argmax")
    found = comes_back(replace(machine, output=output), tmp_path / "m.dm")
    assert found.output.classes[0].dtype == labels.dtype
    assert list(map(type, found.output.classes[0].tolist())) == list(map(type, labels.tolist()))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1 + 2j, 0]),
        np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
        np.array([("a",), ("b",)], object),
        np.array([b"a", b"b"]),
        np.array([2**70, 1], object),
    ],
    ids=["complex", "dates", "tuples", "bytes", "huge"],
)
def test_other_labels_are_refused_in_words(labels, tmp_path):
    machine = make_machine([3], np.random.default_rng(0), n_outputs=2)
    machine = replace(
        machine, output=replace(machine.output, classes=(labels.reshape(len(labels), -1)[:, 0],))
    )
    if labels.ndim > 1:
        machine = replace(machine, output=replace(machine.output, classes=(labels,)))
    with pytest.raises(dm.UnsupportedModelError, match=r"output\.classes\[0\]"):
        machine.save(tmp_path / "m.dm")
    assert list(tmp_path.iterdir()) == []


ELSEWHERE = ("n_features", "dtype", "feature", "rule", "sets", "categories", "look_ups")
"""Fields whose coming back other tests show; look-ups come back in tests of CatBoost's files."""


def test_every_field_of_the_columns_comes_back(tmp_path):
    machine = make_machine([3, 1], np.random.default_rng(3), n_features=3)
    columns = replace(
        machine.columns,
        names=("a", "b", "ç"),
        categories={1: ("x", 3, 0.5, None, True), 2: ()},
        absent=float("nan"),
        missing_value=-999.0,
        integers_as=np.float32,
        table_categories=(("u", "v"), (1, 2.0, float("nan"))),
        encodes_arrays=True,
        label_hash="catboost",
        refuses_new_labels=True,
        edges={0: (-np.inf, 0.5, np.inf)},
        accepted=dm.machine.Accepted(
            low=np.array([-np.inf, 0.0, 0.0]),
            high=np.array([1e308, 1.0, np.inf]),
            missing=np.array([True, False, True]),
            needed=np.array([True, True, False]),
            refused={1: (-1, 2)},
            ignores_further=True,
            blocks=(((0, 2), "float32"),),
            plain=(2,),
        ),
    )
    found = comes_back(replace(machine, columns=columns), tmp_path / "m.dm").columns
    for field in fields(dm.Columns):
        default = field.default
        if field.name not in ELSEWHERE:
            assert getattr(found, field.name) != default, field.name
    assert [type(label) for label in found.categories[1]] == [str, int, float, type(None), bool]


def test_every_field_of_a_machine_is_in_the_schema():
    """A field added to a part and forgotten here would be lost in saving."""
    machine = make_machine([3], np.random.default_rng(0), rules=True)
    metadata, arrays = read_container(dm_bytes(machine), "testing")
    texts = json.loads(metadata["machine"])
    for part, of in (
        (dm.Columns, "columns"),
        (dm.Output, "output"),
        (dm.Trees, "trees"),
        (dm.LinearLeaves, "linear"),
        (dm.CategorySets, "columns.sets"),
    ):
        known = {
            name.removeprefix(f"{of}.").split(".")[0]
            for name in schema.ARRAYS
            if name.startswith(of)
        }
        if of in texts:
            known |= set(texts[of])
        if of == "columns.sets":
            known |= {"negative_fractions", "whole"}
        assert {field.name for field in fields(part)} <= known, of
    assert set(arrays) <= set(schema.ARRAYS)


@pytest.mark.parametrize("name", links.LINKS)
def test_machines_of_every_link_come_back_equal(name):
    link = links.LINKS[name]
    machine = make_machine([3, 4], np.random.default_rng(0), n_outputs=2)
    for n in range(link.least_params, link.most_params + 1):
        params = [*(1.5 + i for i in range(n)), *([Step("add", (np.inf,))] * link.takes_steps)]
        output = replace(machine.output, link=name, link_params=params)
        changed = replace(machine, output=output)
        found = read_dm_bytes(dm_bytes(changed))
        assert found.equals(changed)
        assert found.output.link_params == tuple(params)


@pytest.mark.parametrize("name", DECISIONS)
def test_machines_of_every_decision_come_back_equal(name):
    machine = make_machine([3, 4], np.random.default_rng(0), n_outputs=2)
    output = replace(machine.output, decision=name, classes=(np.array(["a", "b"]),))
    for n in range(DECISIONS[name].most_params + 1):
        changed = replace(machine, output=replace(output, decision_params=(0.5,) * n))
        assert read_dm_bytes(dm_bytes(changed)).equals(changed)


def test_steps_stand_in_the_file_by_name():
    metadata, _ = read_container((FILES / "version-2-steps.dm").read_bytes(), "testing")
    params = json.loads(metadata["machine"])["output"]["link_params"]
    named = {entry["step"] for entry in params}
    assert set(schema.STEPS_OF_VERSION_1) <= named <= set(STEPS)


def test_every_step_of_a_file_of_version_1_is_known_by_name():
    """Also that no step was lost from the table: old files name them by number."""
    assert set(schema.STEPS_OF_VERSION_1) <= set(STEPS)
    found = dm.load(FILES / "version-1-steps.dm").output.link_params
    assert {step.name for step in found} == set(schema.STEPS_OF_VERSION_1)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_both_versions_hold_one_machine(kind):
    old, new = (dm.load(FILES / f"version-{version}{kind}.dm") for version in (1, 2))
    assert old.equals(new)
    assert old.fingerprint() == new.fingerprint() == FINGERPRINTS[kind]


FINGERPRINTS = {
    "": "dm1:51447bc83ea7d1e68fbf374ff7af7aa287d68c866ac7ceb8989d749b1eae7c5c",
    "-steps": "dm1:3407b621351a49c9e14ee2f951a9ff2bc507b7d46912accc305a6a1af29703c8",
    "-averaged-steps": "dm1:88c4ac08bc259b9759271bd342b29f893642c410d476ec25d0ba1fd3ac91d8c8",
}
"""As they were taken before steps had names."""


# ---------------------------------------------------------------------- the container


@given(machine=machines())
def test_the_container_is_what_safetensors_reads(machine):
    data = dm_bytes(machine)
    metadata, ours = read_container(data, "testing")
    theirs = safetensors.numpy.load(data)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype
        assert np.array_equal(ours[name], theirs[name], equal_nan=True)
    assert metadata["version"] == str(schema.VERSION)


@given(machine=machines())
def test_what_safetensors_writes_is_read(machine):
    metadata, arrays = read_container(dm_bytes(machine), "testing")
    theirs = safetensors.numpy.save({k: np.array(v) for k, v in arrays.items()}, metadata)
    assert dm.convert(theirs).equals(machine)


def test_arrays_are_aligned_and_not_copied():
    machine = make_machine([50] * 20, np.random.default_rng(0))
    data = dm_bytes(machine)
    _, arrays = read_container(data, "testing")
    for array in arrays.values():
        assert array.flags.aligned
        assert not array.flags.owndata


def test_arrays_out_of_line_are_read_all_the_same():
    machine = make_machine([5], np.random.default_rng(0))
    metadata, arrays = read_container(dm_bytes(machine), "testing")
    data = b"".join(container(arrays, metadata))
    size = int.from_bytes(data[:8], "little")
    shifted = (size + 1).to_bytes(8, "little") + data[8 : 8 + size] + b" " + data[8 + size :]
    assert read_dm_bytes(shifted).equals(machine)


# ---------------------------------------------------------------------- versions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_each_version_is_read(version, kind):
    found = dm.load(FILES / f"version-{version}{kind}.dm")
    expected = json.loads((FILES / f"version-{version}{kind}.json").read_text())
    X = np.array(expected["X"], np.float64)
    assert found.apply(X).tolist() == expected["leaves"]
    assert found.margin(X).tolist() == expected["margins"]
    if kind == "-steps":
        # Exponentials differ in the last place from processor to processor.
        np.testing.assert_allclose(found.predict(X), expected["answers"], rtol=1e-6)
    else:
        assert found.predict(X).tolist() == expected["answers"]


@pytest.mark.parametrize("kind", KINDS)
def test_todays_writer_writes_the_newest_file_again(kind):
    path = FILES / f"version-{schema.VERSION}{kind}.dm"
    assert dm_bytes(dm.load(path)) == path.read_bytes()


def test_a_newer_version_is_refused_with_what_to_do():
    metadata, arrays = read_container(dm_bytes(dm.figure_one()), "testing")
    data = b"".join(container(arrays, {**metadata, "version": str(schema.VERSION + 1)}))
    with pytest.raises(dm.UnsupportedModelError, match="install a newer"):
        dm.convert(data)


def test_an_older_file_is_brought_up_to_date_step_by_step(monkeypatch):
    """What a later version will do: each step takes the content one version further."""

    def upgrade(texts, arrays):
        return {**texts, "source": texts["source"] + "+"}, arrays

    path = FILES / "version-1.dm"
    today = dm.load(path)
    monkeypatch.setattr(schema, "VERSION", 3)
    monkeypatch.setattr(schema, "UPGRADES", {1: upgrade, 2: upgrade})
    found = dm.load(path)
    assert found.source == today.source + "++"
    assert found.equals(today)


# ---------------------------------------------------------------------- writing


def test_saving_again_gives_the_same_bytes(tmp_path):
    machine = make_machine([3, 4], np.random.default_rng(0))
    machine.save(tmp_path / "a.dm")
    dm.load(tmp_path / "a.dm").save(tmp_path / "b.dm")
    assert (tmp_path / "a.dm").read_bytes() == (tmp_path / "b.dm").read_bytes()


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path):
    dm.figure_one().save(tmp_path / "m.dm")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "m.dm").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_file_written_anew_keeps_its_permissions(tmp_path):
    path = tmp_path / "m.dm"
    dm.figure_one().save(path)
    path.chmod(0o600)
    dm.figure_one().save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_keeps_pointing_to_the_file_that_is_written(tmp_path):
    (tmp_path / "real.dm").write_bytes(b"old")
    (tmp_path / "link.dm").symlink_to("real.dm")
    dm.figure_one().save(tmp_path / "link.dm")
    assert (tmp_path / "link.dm").is_symlink()
    assert dm.load(tmp_path / "real.dm").equals(dm.figure_one())


def test_a_folder_that_is_not_there_is_said_in_words(tmp_path):
    with pytest.raises(dm.InputError, match="cannot be written"):
        dm.figure_one().save(tmp_path / "nowhere" / "m.dm")


@pytest.mark.parametrize("fails", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, fails):
    path = tmp_path / "m.dm"
    dm.figure_one().save(path)
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    if fails == "write":
        import decision_machines.libraries.own.write as room

        monkeypatch.setattr(
            room,
            "_parts",
            lambda machine: (part if i == 0 else full() for i, part in enumerate([b"x", b"y"])),
        )
    else:
        monkeypatch.setattr(os, fails, full)
    with pytest.raises(dm.InputError, match="No space left"):
        make_machine([5], np.random.default_rng(0)).save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["m.dm"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk without space")
def test_a_disk_without_space_is_met_for_real(tmp_path, monkeypatch):
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *a: real("/dev/full", os.O_WRONLY))
    with pytest.raises(dm.InputError, match="No space left"):
        dm.figure_one().save(tmp_path / "m.dm")
    assert os.listdir(tmp_path) == []


def test_a_process_killed_while_saving_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.dm"
    dm.figure_one().save(path)
    code = (
        "import sys, time, decision_machines as dm\n"
        "from decision_machines.files.atomic import write_atomically\n"
        "def parts():\n"
        "    yield b'half'\n"
        "    print('half', flush=True)\n"
        "    time.sleep(60)\n"
        "write_atomically(sys.argv[1], parts())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"half\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert dm.load(path).equals(dm.figure_one())
    assert len(os.listdir(tmp_path)) == 2
    dm.figure_one().save(path)
    assert os.listdir(tmp_path) == ["m.dm"], "the next to write it clears away what was left"


def test_a_large_forest_is_saved_and_loaded_in_seconds(tmp_path):
    machine = make_machine([2000] * 100, np.random.default_rng(0), orders=("preorder",))
    begin = time.perf_counter()
    machine.save(tmp_path / "m.dm")
    found = dm.load(tmp_path / "m.dm")
    assert time.perf_counter() - begin < 10
    assert found.equals(machine)
