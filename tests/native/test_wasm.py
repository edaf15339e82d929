"""The engine as WebAssembly, in node: the machine's bits; built by `make wasm`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from coded_cases import REFUSED, coded_answers, coded_cases
from library_models import LIBRARIES, models

import decision_machines as dm

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "wasm" / "decision_machines.wasm"
SOURCES = [*(ROOT / "native" / "engine").rglob("*.?pp"), *(ROOT / "native/library").glob("*.?pp")]
LOADER = (ROOT / "native" / "library" / "decision_machines.mjs").as_uri()
PROGRAM = """
import {readFileSync, writeFileSync} from "fs";
const [wasm, loader, ...names] = process.argv.slice(2);
const engine = await (await import(loader)).open(readFileSync(wasm));
const numbers = (path) => new Float64Array(new Uint8Array(readFileSync(path)).buffer);
const told = {};
for (const name of names) {
  try {
    const model = engine.load(readFileSync(`${name}.dm`));
    const rows = numbers(`${name}.rows`);
    writeFileSync(`${name}.margins`, model.margin(rows));
    writeFileSync(`${name}.leaves`, model.apply(rows));
    const one = model.margin(rows.subarray(0, model.nFeatures));
    told[name] = {about: model.about, one: [...one].map(String)};
    model.free();
  } catch (error) {
    told[name] = {error: error.message};
  }
}
console.log(JSON.stringify(told));
"""

if not shutil.which("node"):
    pytest.skip("node is not installed", allow_module_level=True)
if not BUILT.exists() or any(one.stat().st_mtime > BUILT.stat().st_mtime for one in SOURCES):
    pytest.skip("the engine is not built as WebAssembly: make wasm", allow_module_level=True)


def run(folder, names):
    (folder / "program.mjs").write_text(PROGRAM)
    command = ["node", "program.mjs", BUILT, LOADER, *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_of_model_is_equal_or_refused_by_name(library, tmp_path):
    cases = {}
    for i, (label, machine, X) in enumerate(coded_cases(library)):
        if X.shape[1] == machine.n_features:
            cases[str(i)] = label, machine, X
            machine.save(tmp_path / f"{i}.dm")
            X.tofile(tmp_path / f"{i}.rows")
    for name, told in run(tmp_path, cases).items():
        label, machine, X = cases[name]
        if "error" in told:
            assert REFUSED[label] in told["error"], told["error"]
            continue
        margins, leaves = coded_answers(machine, X)
        found = np.fromfile(tmp_path / f"{name}.margins")
        assert np.array_equal(found, margins.ravel()), label
        assert np.array_equal(np.fromfile(tmp_path / f"{name}.leaves", np.int32), leaves.ravel())
        assert told["about"]["output"]


def test_rubbish_is_refused_in_words_and_the_engine_goes_on(tmp_path):
    machine = dm.convert(models("lightgbm")["LGBMClassifier"])
    X = np.zeros((3, machine.n_features))
    machine.save(tmp_path / "good.dm")
    content = (tmp_path / "good.dm").read_bytes()
    broken = {"empty": b"", "text": b"rubbish", "cut": content[:-1], "bytes": b"\xff" * 64}
    for name, one in broken.items():
        (tmp_path / f"{name}.dm").write_bytes(one)
    for name in (*broken, "good"):
        X.tofile(tmp_path / f"{name}.rows")
    shutil.copy(tmp_path / "good.dm", tmp_path / "short.dm")
    X[:, 1:].tofile(tmp_path / "short.rows")
    told = run(tmp_path, [*broken, "short", "good"])
    assert all(told[name]["error"].startswith("While loading a model: ") for name in broken)
    assert "not rows of" in told["short"]["error"]
    assert [float(number) for number in told["good"]["one"]] == machine.margin(X[:1])[0].tolist()
