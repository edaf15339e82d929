"""Machines outside Python beside other exporters: C, JavaScript, WebAssembly, SQL, the C library.

    python benchmarks/exports.py FOLDER [--write]

Models, and what rivals make of them, are kept in FOLDER, where a second run finds them: TL2cgen's
code takes minutes to compile. Equality comes first; then calls by turns, in one process, and the
lowest ratio of all rounds is what counts. `--write` puts the figures into
benchmarks/results/exports.json and into the table of docs/where-can-it-run.md. Needs gcc and node,
for WebAssembly `make wasm` and `npm install onnxruntime-web` in FOLDER, and the rivals: tl2cgen,
treelite, m2cgen, orbital; what is not there is left out.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import decision_machines as dm

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "exports.json"
PAGE = ROOT / "docs" / "where-can-it-run.md"
BEGIN, END = "<!-- benchmarks/exports.py begins -->", "<!-- benchmarks/exports.py ends -->"
ROUNDS = 5
CALLS = """
#include "model.h"
size_t call_batch(const double *x, size_t n, double *out) { return dm_margin_batch(x, n, out); }
void call_rows(const double *x, size_t n, double *out) {
    for (size_t i = 0; i < n; ++i) dm_margin(x + i * DM_N_FEATURES, out + i * DM_N_OUTPUTS);
}
"""
NODE = """
import {readFileSync} from "fs";
import {margin} from "./model.mjs";
import {score} from "./m2cgen.mjs";
const {X, m} = JSON.parse(readFileSync("rows.json"));
const seconds = (f) => {
  const t = performance.now();
  for (const x of X) f(x);
  return (performance.now() - t) / 1e3;
};
const equal = X.filter((x, i) => margin(x)[0] === m[i]).length;
const rounds = [];
for (let r = 0; r < 6; ++r) rounds.push([seconds(margin), seconds(score)]);
console.log(JSON.stringify({equal, n: X.length, rounds: rounds.slice(1)}));
"""

WEB = """
import {readFileSync} from "fs";
import {open} from "./decision_machines.mjs";
import * as ort from "onnxruntime-web";
ort.env.wasm.numThreads = 1;
const numbers = (path) => new Float64Array(new Uint8Array(readFileSync(path)).buffer);
const X = numbers("rows.bin"), wanted = numbers("margins.bin");
const model = (await open(readFileSync("decision_machines.wasm"))).load(readFileSync("model.dm"));
const session = await ort.InferenceSession.create(new Uint8Array(readFileSync("model.onnx")), {
  executionProviders: ["wasm"],
});
const f = model.nFeatures, n = X.length / f, name = session.inputNames[0];
const ours = async (x) => model.margin(x);
const theirs = async (x) =>
  session.run({[name]: new ort.Tensor("float64", x, [x.length / f, f])});
const seconds = async (call, x, times) => {
  const t = performance.now();
  for (let i = 0; i < times; ++i) await call(x);
  return (performance.now() - t) / 1e3 / times;
};
const equal = (await ours(X)).filter((v, i) => v === wanted[i]).length;
const rounds = {many: [], one: []};
for (let r = 0; r < 6; ++r) {
  rounds.many.push([await seconds(ours, X, 5), await seconds(theirs, X, 1)]);
  const row = X.subarray(0, f);
  rounds.one.push([await seconds(ours, row, 500), await seconds(theirs, row, 100)]);
}
console.log(JSON.stringify({equal, n, many: rounds.many.slice(1), one: rounds.one.slice(1)}));
"""


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def by_turns(ours: Callable[[], Any], theirs: Callable[[], Any]) -> dict[str, float]:
    ours(), theirs()
    rounds = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    return summed(rounds)


def summed(rounds: list[Any]) -> dict[str, float]:
    ratios = [theirs / ours for ours, theirs in rounds]
    return {
        "seconds": min(ours for ours, _ in rounds),
        "least": min(ratios),
        "most": max(ratios),
    }


def boosted(folder: Path) -> Path:
    """LightGBM, 500 trees × 64 leaves over 50 features."""
    path = folder / "model.txt"
    if not path.exists():
        import lightgbm

        rng = np.random.default_rng(0)
        X = rng.standard_normal((20000, 50)).astype(np.float32)
        y = (X[:, :10] ** 2).sum(axis=1) + rng.standard_normal(len(X)) * 2 > 10
        settings = {"objective": "binary", "num_leaves": 64, "verbose": -1}
        lightgbm.train(settings, lightgbm.Dataset(X, y), 500).save_model(path)
    return path


def in_c(folder: Path) -> dict[str, Any]:
    """The header, compiled by gcc -O2, beside TL2cgen's code and the C library."""
    machine = dm.load(boosted(folder))
    X = np.random.default_rng(1).standard_normal((10000, 50))
    wanted = machine.margin(X)
    machine.to_c(folder / "model.h")
    machine.save(folder / "model.dm")
    (folder / "calls.c").write_text(CALLS)
    built = ["gcc", "-O2", "-std=c99", "-shared", "-fPIC", "calls.c", "-o", "calls.so", "-lm"]
    compile_seconds = seconds(lambda: subprocess.run(built, cwd=folder, check=True))
    library, out = ctypes.CDLL(str(folder / "calls.so")), np.empty((len(X), 1))

    def call(name: str) -> Callable[[], Any]:
        places = ctypes.c_void_p(X.ctypes.data), ctypes.c_size_t(len(X))
        return lambda: getattr(library, name)(*places, ctypes.c_void_p(out.ctypes.data))

    for name in ("call_batch", "call_rows"):
        out[:] = np.nan
        call(name)()
        assert np.array_equal(out, wanted)
    engine = ctypes.CDLL(str(dm.c_library().library))
    engine.dm_model_load.restype = ctypes.c_void_p
    model = ctypes.c_void_p(engine.dm_model_load(str(folder / "model.dm").encode(), None, 0))
    found = np.empty((len(X), 1))

    def by_library() -> None:
        engine.dm_model_margin(
            model,
            ctypes.c_void_p(X.ctypes.data),
            ctypes.c_int64(len(X)),
            ctypes.c_void_p(found.ctypes.data),
            1,
            None,
            0,
        )

    by_library()
    assert np.array_equal(found, wanted)
    import tl2cgen
    import treelite

    shared = folder / "tl2cgen.so"
    if not shared.exists():
        rival = treelite.frontend.load_lightgbm_model(boosted(folder))
        tl2cgen.export_lib(rival, toolchain="gcc", libpath=shared, params={"parallel_comp": 2})
    predictor, rows = tl2cgen.Predictor(shared, nthread=1), tl2cgen.DMatrix(X)
    theirs = lambda: predictor.predict(rows, pred_margin=True)  # noqa: E731
    return {
        "compile": compile_seconds,
        "header bytes": (folder / "model.h").stat().st_size,
        "library bytes": dm.c_library().library.stat().st_size,
        "batch": by_turns(call("call_batch"), theirs),
        "rows": by_turns(call("call_rows"), theirs),
        "library": by_turns(by_library, theirs),
        "rows a call": len(X),
    }


def in_javascript(folder: Path) -> dict[str, Any]:
    """The module in node, beside m2cgen's."""
    machine = dm.load(boosted(folder))
    machine.to_javascript(folder / "model.mjs")
    if not (folder / "m2cgen.mjs").exists():
        _write_m2cgen(folder)
    X = np.random.default_rng(1).standard_normal((2000, 50))
    rows = {"X": X.tolist(), "m": machine.margin(X)[:, 0].tolist()}
    (folder / "rows.json").write_text(json.dumps(rows))
    (folder / "bench.mjs").write_text(NODE)
    run = ["node", "--stack-size=60000", "bench.mjs"]
    done = subprocess.run(run, cwd=folder, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["equal"] == found["n"]
    size = (folder / "model.mjs").stat().st_size
    return {**summed(found["rounds"]), "bytes": size, "rows a call": len(X)}


def in_webassembly(folder: Path) -> dict[str, Any]:
    """The engine as WebAssembly in node, beside ONNX Runtime Web; one thread each."""
    built = ROOT / "build" / "wasm"
    if not (built / "decision_machines.wasm").exists():
        raise ImportError("the engine is not built: make wasm")
    if not (folder / "node_modules" / "onnxruntime-web").exists():
        raise ImportError(f"onnxruntime-web is not there: npm install --prefix {folder}")
    machine = dm.load(boosted(folder))
    machine.save(folder / "model.dm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.InexactWarning)
        (folder / "model.onnx").write_bytes(machine.to_onnx().SerializeToString())
    for name in ("decision_machines.wasm", "decision_machines.mjs"):
        shutil.copy(built / name, folder)
    X = np.random.default_rng(1).standard_normal((2000, 50))
    X.tofile(folder / "rows.bin")
    machine.margin(X).tofile(folder / "margins.bin")
    (folder / "web.mjs").write_text(WEB)
    done = subprocess.run(
        ["node", "web.mjs"], cwd=folder, check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert found["equal"] == found["n"]
    return {
        "many": summed(found["many"]),
        "one": summed(found["one"]),
        "bytes": (built / "decision_machines.wasm").stat().st_size,
        "rows a call": len(X),
    }


def _write_m2cgen(folder: Path) -> None:
    import lightgbm
    import m2cgen

    X = np.random.default_rng(0).standard_normal((200, 50))
    model = lightgbm.LGBMClassifier(n_estimators=1, verbose=-1).fit(X, X[:, 0] > 0)
    model._Booster = lightgbm.Booster(model_file=boosted(folder))

    def write() -> None:
        text = m2cgen.export_to_javascript(model)
        (folder / "m2cgen.mjs").write_text(text + "\nexport {score};\n")

    sys.setrecursionlimit(10**6)
    threading.stack_size(512 << 20)
    deep = threading.Thread(target=write)
    deep.start()
    deep.join()


def in_duckdb(folder: Path) -> dict[str, Any]:
    """SQL and the function of DuckDB beside orbital's SQL: 60 trees of depth 5, 20 000 rows."""
    import duckdb
    import orbital
    import orbital.types
    import pandas as pd
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.pipeline import Pipeline

    rng, names = np.random.default_rng(0), [f"c{i}" for i in range(8)]
    frame = pd.DataFrame(rng.standard_normal((20000, 8)), columns=names)
    y = frame.c0 * frame.c1 + frame.c2 + rng.standard_normal(len(frame)) * 0.1
    model = GradientBoostingRegressor(n_estimators=60, max_depth=5, random_state=0)
    model.fit(frame[:4000], y[:4000])
    machine = dm.convert(model)
    kinds = {name: orbital.types.DoubleColumnType() for name in names}
    parsed = orbital.parse_pipeline(Pipeline([("model", model)]), features=kinds)
    theirs = orbital.export_sql("rows", parsed, dialect="duckdb")
    ours = machine.to_sql(columns=names)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("frame", frame)
    connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
    dm.stream.duckdb_function(connection, machine, "score", output="margin")
    function = f"SELECT score({', '.join(names)}) FROM rows"

    def asked(query: str) -> np.ndarray:
        return np.asarray(list(connection.execute(query).fetchnumpy().values())[-1])

    wanted = machine.margin(frame)[:, 0]
    assert np.array_equal(asked(ours), wanted)
    assert np.array_equal(asked(function), wanted)
    return {
        "rows equal in orbital": int((asked(theirs) == wanted).sum()),
        "rows": len(frame),
        "bytes": len(ours),
        "sql": by_turns(lambda: asked(ours), lambda: asked(theirs)),
        "function": by_turns(lambda: asked(function), lambda: asked(theirs)),
    }


PARTS = {
    "c": in_c,
    "javascript": in_javascript,
    "webassembly": in_webassembly,
    "duckdb": in_duckdb,
}


def table(found: dict[str, Any]) -> str:
    """The lines of the page."""
    c, script, duck = found["c"], found["javascript"], found["duckdb"]
    web = found["webassembly"]

    def ratio(figures: dict[str, float]) -> str:
        return f"{figures['least']:.1f}–{figures['most']:.1f} ×"

    def each(figures: dict[str, float], rows: int) -> str:
        return f"{figures['seconds'] / rows * 1e6:.1f} µs"

    def size(n_bytes: int) -> str:
        return f"{n_bytes / 1e6:.1f} MB"

    n, m, k = c["rows a call"], script["rows a call"], duck["rows"]
    wide = web["rows a call"]
    lines = [
        "| target | model | size | a row | speed beside |",
        "|---|---|---|---|---|",
        f"| C header, 10 000 rows a call | LightGBM 500 × 64 | {size(c['header bytes'])}, compiled "
        f"in {c['compile']:.1f} s | {each(c['batch'], n)} | {ratio(c['batch'])} TL2cgen |",
        f"| C header, one row a call | the same | the same | {each(c['rows'], n)} | "
        f"{ratio(c['rows'])} TL2cgen in a batch |",
        f"| C library, one thread | the same | {size(c['library bytes'])} for all models | "
        f"{each(c['library'], n)} | {ratio(c['library'])} TL2cgen |",
        f"| JavaScript in node | the same | {size(script['bytes'])} | {each(script, m)} | "
        f"{ratio(script)} m2cgen |",
        f"| WebAssembly in node, 2 000 rows a call | the same | {size(web['bytes'])} for all "
        f"models | {each(web['many'], wide)} | {ratio(web['many'])} ONNX Runtime Web |",
        f"| WebAssembly in node, one row a call | the same | the same | {each(web['one'], 1)} | "
        f"{ratio(web['one'])} ONNX Runtime Web |",
        f"| SQL in DuckDB | 60 × depth 5 | {size(duck['bytes'])} | {each(duck['sql'], k)} | "
        f"{ratio(duck['sql'])} orbital, of whose rows {duck['rows equal in orbital']} are equal |",
        f"| function of DuckDB | the same | | {each(duck['function'], k)} | "
        f"{ratio(duck['function'])} orbital |",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--write", action="store_true")
    options.add_argument("--only", choices=[*PARTS], action="append")
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, part in PARTS.items():
        if given.only and name not in given.only:
            continue
        try:
            found[name] = part(given.folder)
        except ImportError as error:
            print(f"{name}: left out, {error}")
            continue
        print(name, json.dumps(found[name]), flush=True)
    if given.write:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        page = PAGE.read_text()
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(found)}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
