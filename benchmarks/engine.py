"""The native engine against every rival, on the rival's own models, in one run.

For each workload the answers are compared first, then rivals and we take turns on fresh rows, and
the best time of each is kept: only ratios mean anything on a shared machine. One thread is counted
in processor time, several in wall time. Rivals that are not installed are named and left out.

    python benchmarks/engine.py [--rows 100000] [--quick] [--only lightgbm,forest] [--growth]

Two threads are measured where the process may use two cores. Writes a table, a JSON and plots into
benchmarks/results/; with --only the other workloads stay as they were measured before.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import tempfile
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

import decision_machines as dm  # noqa: E402
from decision_machines.run.engines import native  # noqa: E402
from decision_machines.run.engines.processor import cpu_count  # noqa: E402

RESULTS = Path(__file__).parent / "results"
FEATURES = 50
AT_LEAST = {
    ("lightgbm 500 x 64", "LightGBM"): 22,
    ("lightgbm 500 x 64", "lleaves"): 4,
    ("lightgbm 500 x 64", "YDF (own model)"): 3,
    ("xgboost 500 x depth 6", "XGBoost inplace"): 10,
    ("xgboost 500 x depth 6", "daal4py"): 5,
    ("catboost 500 x depth 6", "CatBoost"): 2,
    ("hist gradient boosting 300 x 31", "scikit-learn"): 10,
    ("forest 100 x 2900", "scikit-learn"): 4,
    ("one row, lightgbm 500 x 64", "LightGBM"): 8,
    ("one row, lightgbm 500 x 64", "lleaves"): 1.5,
    ("one row, lightgbm 500 x 64", "ONNX Runtime"): 4,
}
"""What the engine must reach, as a ratio of times."""


def data(n_rows: int, seed: int):
    """Rows of float32 features, and a target with interactions, bends and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, FEATURES), dtype=np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + np.abs(X[:, 3]) + 0.3 * X[:, 4:20].sum(axis=1)
    y += 0.5 * X[:, 20] * (X[:, 21] > 0) + 0.5 * rng.standard_normal(n_rows)
    return X, y


def optional(name: str):
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever keeps a rival from running, say so and go on
        print(f"  {name} left out: {type(error).__name__}: {str(error).splitlines()[0][:80]}")
        return None


# -- workloads: the model, what it answers, and the rivals that can run it ------------------------


@functools.cache
def lightgbm(quick: bool):
    import lightgbm as lgb

    X, y = data(40_000, 0)
    params = {"num_leaves": 64, "learning_rate": 0.05, "verbose": -1, "num_threads": 2}
    model = lgb.train(params, lgb.Dataset(X, y), 50 if quick else 500)
    text = Path(tempfile.mkdtemp()) / "model.txt"
    model.save_model(text)
    start = time.perf_counter()
    machine = dm.load(text)
    machine.margin(X[:1])
    print(f"  from file to first prediction: {time.perf_counter() - start:.3f} s")
    rivals = {"LightGBM": lambda X: model.predict(X, raw_score=True, num_threads=1)}
    if lleaves := optional("lleaves"):
        compiled = lleaves.Model(model_file=str(text))
        start = time.perf_counter()
        compiled.compile(cache=str(text.with_suffix(".o")))
        print(f"  lleaves compiles for {time.perf_counter() - start:.0f} s")
        rivals["lleaves"] = lambda X: compiled.predict(X, n_jobs=1)
    if session := onnx_of(model, "lightgbm"):
        rivals["ONNX Runtime"] = session
    if onedal := daal4py_of(model):
        rivals["daal4py"] = onedal
    if tensors := hummingbird_of(model):
        rivals["Hummingbird"] = tensors
    if quickscorer := ydf_like(500, quick):
        rivals["YDF (own model)"] = quickscorer
    return machine, lambda X: model.predict(X, raw_score=True, num_threads=2), rivals


def xgboost(quick: bool):
    import xgboost as xgb

    X, y = data(40_000, 0)
    params = {"max_depth": 6, "eta": 0.05, "nthread": 2, "verbosity": 0}
    model = xgb.train(params, xgb.DMatrix(X, y), 50 if quick else 500)
    model.set_param({"nthread": 1})
    rivals = {"XGBoost inplace": lambda X: model.inplace_predict(X, predict_type="margin")}
    if onedal := daal4py_of(model):
        rivals["daal4py"] = onedal
    if treelite := optional("treelite"):
        gtil = importlib.import_module("treelite.gtil")
        loaded = treelite.frontend.from_xgboost(model)
        rivals["Treelite GTIL"] = lambda X: gtil.predict(loaded, X, nthread=1, pred_margin=True)
        if compiled := tl2cgen_of(loaded):
            rivals["tl2cgen"] = compiled
    if tensors := hummingbird_of(model):
        rivals["Hummingbird"] = tensors
    own = rivals["XGBoost inplace"]
    return dm.convert(model), own, rivals


def catboost(quick: bool):
    import catboost as cat

    X, y = data(40_000, 0)
    model = cat.CatBoostRegressor(
        iterations=50 if quick else 500,
        depth=6,
        thread_count=2,
        verbose=False,
        allow_writing_files=False,
    ).fit(X, y)

    def own(X):
        return model.predict(X, prediction_type="RawFormulaVal", thread_count=1)

    return dm.convert(model), own, {"CatBoost": own}


def hist(quick: bool):
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = data(40_000, 0)
    model = HistGradientBoostingRegressor(
        max_iter=30 if quick else 300, max_leaf_nodes=31, early_stopping=False
    ).fit(X, y)
    return dm.convert(model), model.predict, {"scikit-learn": model.predict}


def forest(quick: bool):
    from sklearn.ensemble import RandomForestRegressor

    X, y = data(4600, 0)
    model = RandomForestRegressor(
        10 if quick else 100, max_features=0.3, n_jobs=2, random_state=0
    ).fit(X, y)
    model.n_jobs = 1
    rivals = {"scikit-learn": model.predict}
    if not quick and (session := onnx_of(model, "sklearn")):
        rivals["ONNX Runtime"] = session
    return dm.convert(model), model.predict, rivals


def onnx_of(model, source: str):
    """A prediction by ONNX Runtime on one thread, in float32: close, not equal."""
    runtime, tools = optional("onnxruntime"), optional("onnxmltools")
    if not (runtime and tools):
        return None
    from onnxmltools.convert.common.data_types import FloatTensorType

    kind = [("X", FloatTensorType([None, FEATURES]))]
    try:
        if source == "lightgbm":
            graph = tools.convert_lightgbm(model, initial_types=kind, zipmap=False)
        else:
            graph = importlib.import_module("skl2onnx").to_onnx(model, data(1, 0)[0])
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = runtime.InferenceSession(graph.SerializeToString(), options)
    except Exception as error:
        print(f"  ONNX Runtime left out: {type(error).__name__}: {str(error)[:80]}")
        return None
    return lambda X: session.run(None, {"X": X})[0]


def daal4py_of(model):
    """oneDAL on one thread, in float32: close, not equal."""
    daal = optional("daal4py")
    if daal is None:
        return None
    daal.daalinit(nthreads=1)
    try:
        converted = daal.mb.convert_model(model)
    except Exception as error:
        print(f"  daal4py left out: {type(error).__name__}: {str(error)[:80]}")
        return None
    return lambda X: converted.predict(X)


def hummingbird_of(model):
    """Hummingbird's tensors in PyTorch, on one thread, in float32: close, not equal."""
    hummingbird, torch = optional("hummingbird.ml"), optional("torch")
    if not (hummingbird and torch):
        return None
    torch.set_num_threads(1)
    try:
        converted = hummingbird.convert(model, "pytorch", data(10, 0)[0])
    except Exception as error:
        print(f"  Hummingbird left out: {type(error).__name__}: {str(error)[:80]}")
        return None
    # A thousand rows at a time: its dense tensors of a whole batch would not fit in memory.
    return lambda X: np.concatenate(
        [converted.predict(X[i : i + 1000]) for i in range(0, len(X), 1000)]
    )


def tl2cgen_of(model):
    """A Treelite model compiled to C; reading the rows is not counted, which flatters it."""
    tl2cgen = optional("tl2cgen")
    if tl2cgen is None:
        return None
    path = Path(tempfile.mkdtemp()) / "model.so"
    start = time.perf_counter()
    try:
        tl2cgen.export_lib(model, toolchain="gcc", libpath=path, params={"parallel_comp": 8})
    except Exception as error:
        print(f"  tl2cgen left out: {type(error).__name__}: {str(error)[:80]}")
        return None
    print(f"  tl2cgen compiles for {time.perf_counter() - start:.0f} s")
    predictor = tl2cgen.Predictor(path, nthread=1)
    prepared = {}

    def predict(X):
        return predictor.predict(prepared[id(X)], pred_margin=True)

    def prepare(X):
        prepared[id(X)] = tl2cgen.DMatrix(X)

    predict.prepare = prepare
    return predict


def ydf_like(n_trees: int, quick: bool):
    """YDF's fastest engine on a model of its own of the same size: its answers are not ours."""
    ydf = optional("ydf")
    if ydf is None:
        return None

    def table(X):
        return {f"f{i}": X[:, i] for i in range(X.shape[1])}

    X, y = data(40_000, 0)
    ydf.verbose(0)
    learner = ydf.GradientBoostedTreesLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=50 if quick else n_trees, max_depth=7,
        shrinkage=0.05, early_stopping="NONE", validation_ratio=0.0, num_threads=2,
    )  # fmt: skip
    model = learner.train(table(X) | {"y": y})
    prepared = {}

    def predict(X):
        # Reading the rows is not counted, which flatters it.
        return model.predict(prepared[id(X)], num_threads=1)

    def prepare(X):
        prepared[id(X)] = ydf.create_vertical_dataset(
            table(X) | {"y": np.zeros(len(X))}, data_spec=model.data_spec()
        )

    predict.prepare = prepare
    return predict


WORKLOADS = {
    "lightgbm 500 x 64": lightgbm,
    "xgboost 500 x depth 6": xgboost,
    "catboost 500 x depth 6": catboost,
    "hist gradient boosting 300 x 31": hist,
    "forest 100 x 2900": forest,
}


# -- measuring ------------------------------------------------------------------------------------


def best_of(runs: dict, inputs: list, clock=time.process_time) -> dict[str, float]:
    """The least seconds of each run, taking turns over fresh inputs."""
    best = dict.fromkeys(runs, float("inf"))
    for given in inputs:
        for name, run in runs.items():
            if hasattr(run, "prepare"):
                run.prepare(given)
            start = clock()
            run(given)
            best[name] = min(best[name], clock() - start)
    return best


def batch(name: str, workload, n_rows: int, quick: bool) -> list[dict]:
    print(f"{name}:")
    machine, own, rivals = workload(quick)
    probe = data(2000, 1)[0]
    found = np.ravel(machine.margin(probe))
    is_equal = bool(np.array_equal(found, np.ravel(own(probe)).astype(found.dtype)))
    print(f"  equal to the source to the bit: {is_equal}; {machine}")
    plan = machine._prepared.compiled(machine).plan.describe()
    nodes = machine.n_tests + machine.n_leaves
    print(f"  plan: {plan.n_bytes / nodes:.1f} bytes per node, target {plan.target}")
    runs = {"ours": lambda X: machine.margin(X, n_threads=1)} | rivals
    for target in dm.engine_info()["available"][:-1]:
        other = native.compile_plan(machine, target=target)
        out = np.empty((n_rows, machine.n_outputs), machine.output.dtype)
        runs[f"ours, {target}"] = lambda X, plan=other, out=out: plan.array(X, out, False, 1)
    best = best_of(runs, [data(n_rows, seed)[0] for seed in range(2, 5)])
    rows = [_row(name, rival, best, n_rows, is_equal) for rival in best]
    if cpu_count() > 1:
        both = {
            "one": lambda X: machine.margin(X, n_threads=1),
            "two": lambda X: machine.margin(X, n_threads=2),
        }
        wall = best_of(both, [data(n_rows, seed)[0] for seed in range(5, 10)], time.perf_counter)
        print(f"  two threads: {wall['one'] / wall['two']:.2f} x one")
        rows.append({"workload": name, "rival": "ours, two threads", "equal": is_equal,
                     "us_per_row": wall["two"] / n_rows * 1e6,
                     "ratio": wall["two"] / wall["one"]})  # fmt: skip
    return rows


ONE_ROW = "one row, lightgbm 500 x 64"


def one_row(quick: bool) -> list[dict]:
    name = ONE_ROW
    print(f"{name}:")
    machine, _, rivals = lightgbm(quick)
    calls = 500
    X = data(calls, 11)[0]
    X = [X[i : i + 1] for i in range(calls)]

    def each(run):
        return lambda rows: [run(row) for row in rows]

    runs = {"ours": each(lambda X: machine.margin(X))}
    runs |= {k: each(v) for k, v in rivals.items() if not hasattr(v, "prepare")}
    best = best_of(runs, [X] * 5)
    return [_row(name, rival, best, calls, True) for rival in best]


def _row(name, rival, best, n_rows, is_equal) -> dict:
    ratio = best[rival] / best["ours"]
    wanted = AT_LEAST.get((name, rival))
    note = "" if wanted is None else f"   (at least {wanted})"
    print(f"  {rival:<18} {best[rival] / n_rows * 1e6:9.3f} us/row   x {ratio:6.2f}{note}")
    return {"workload": name, "rival": rival, "us_per_row": best[rival] / n_rows * 1e6,
            "ratio": ratio, "at_least": wanted, "equal": is_equal}  # fmt: skip


def growth(n_rows: int) -> list[dict]:
    """Cost against trees, leaves, features, batch and threads, one at a time."""
    import lightgbm as lgb

    found = []

    def measure(what: str, value: int, machine, X, n_threads: int = 1) -> None:
        machine.margin(X[:64])
        clock = time.process_time if n_threads == 1 else time.perf_counter
        best = best_of({"ours": lambda X: machine.margin(X, n_threads=n_threads)}, [X] * 5, clock)
        cost = best["ours"] / len(X) * 1e6
        found.append({"against": what, "value": value, "us_per_row": cost})
        print(f"  {what} {value}: {cost:.3f} us/row")

    def train(n_trees: int, n_leaves: int, X, y):
        params = {"num_leaves": n_leaves, "min_data_in_leaf": 1, "verbose": -1, "num_threads": 2}
        return lgb.train(params, lgb.Dataset(X, y), n_trees)

    X, y = data(20_000, 0)
    fresh = data(n_rows, 1)[0]
    model = train(500, 64, X, y)
    for n_trees in (50, 100, 200, 500):
        machine = dm.convert(model.model_to_string(num_iteration=n_trees))
        measure("trees", n_trees, machine, fresh)
    for size in (1, 10, 100, 1000, 10_000, n_rows):
        measure("batch", size, machine, fresh[:size])
    for n_threads in (1, 2):
        measure("threads", n_threads, machine, fresh, n_threads)
    for n_leaves in (8, 32, 64, 128, 256, 512, 1024, 4096):
        measure("leaves", n_leaves, dm.convert(train(50, n_leaves, X, y)), fresh)
    rng = np.random.default_rng(2)
    for n_features in (10, 50, 200, 1000):
        wide = rng.standard_normal((5000, n_features), dtype=np.float32)
        machine = dm.convert(train(100, 64, wide, wide[:, :10].sum(axis=1)))
        measure("features", n_features, machine, np.resize(wide, (min(n_rows, 20_000), n_features)))
    return found


def plot(rows: list[dict], curves: list[dict]) -> None:
    plt = optional("matplotlib.pyplot")
    if plt is None:
        return
    plt.switch_backend("Agg")
    names = list(dict.fromkeys(row["workload"] for row in rows))
    figure, axes = plt.subplots(-(-len(names) // 2), 2, figsize=(11, 2.6 * -(-len(names) // 2)))
    for ax in np.ravel(axes)[len(names) :]:
        ax.remove()
    for ax, name in zip(np.ravel(axes), names, strict=False):
        own = [row for row in rows if row["workload"] == name][::-1]
        costs = [row["us_per_row"] for row in own]
        colours = ["C1" if row["rival"].startswith("ours") else "C0" for row in own]
        bars = ax.barh([row["rival"] for row in own], costs, color=colours)
        said = [f"{cost:.3g}" if cost < 100 else f"{cost:.0f}" for cost in costs]
        ax.bar_label(bars, said, padding=2, fontsize=8)
        ax.set(title=name, xscale="log", xlim=(min(costs) / 2, 4 * max(costs)))
        ax.set_xlabel("microseconds per row")
        ax.tick_params(axis="x", which="minor", labelbottom=False)
        ax.tick_params(axis="y", labelsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "engine.png", dpi=120)
    if curves:
        kinds = list(dict.fromkeys(point["against"] for point in curves))
        figure, axes = plt.subplots(1, len(kinds), figsize=(3 * len(kinds), 3), sharey=True)
        for ax, kind in zip(np.atleast_1d(axes), kinds, strict=True):
            own = [point for point in curves if point["against"] == kind]
            ax.loglog([p["value"] for p in own], [p["us_per_row"] for p in own], "o-")
            values = [p["value"] for p in own]
            ax.set_xticks(values, [f"{v:g}" if v < 10_000 else f"{v / 1000:g}k" for v in values])
            ax.minorticks_off()
            ax.tick_params(axis="x", rotation=45)
            ax.set_xlabel(kind)
            ax.grid(axis="y", alpha=0.4)
        np.atleast_1d(axes)[0].set_ylabel("microseconds per row")
        figure.tight_layout()
        figure.savefig(RESULTS / "engine-growth.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="tenth of the trees, for a trial")
    parser.add_argument("--only", default="", help="words of the workloads to run")
    parser.add_argument("--growth", action="store_true", help="also cost against size")
    asked = parser.parse_args()
    wanted = [word for word in asked.only.split(",") if word]

    def is_wanted(name: str) -> bool:
        return not wanted or any(word in name for word in wanted)

    print(dm.engine_info())
    rows = []
    for name, workload in WORKLOADS.items():
        if is_wanted(name):
            rows += batch(name, workload, asked.rows, asked.quick)
    if is_wanted("one row"):
        rows += one_row(asked.quick)
    curves = growth(asked.rows) if asked.growth else []
    RESULTS.mkdir(exist_ok=True)
    where = RESULTS / "engine.json"
    if where.exists() and (wanted or not asked.growth):
        # What was not run now is kept from before.
        before = json.loads(where.read_text())
        run = {row["workload"] for row in rows}
        rows = [row for row in before["rows"] if row["workload"] not in run] + rows
        order = [*WORKLOADS, ONE_ROW]
        rows.sort(key=lambda row: order.index(row["workload"]))
        curves = curves or before["growth"]
    where.write_text(
        json.dumps({"engine": dm.engine_info(), "rows": rows, "growth": curves}, indent=1) + "\n"
    )
    lines = ["| workload | engine | us per row | ratio | at least |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['workload']} | {r['rival']} | {r['us_per_row']:.3f} | {r['ratio']:.2f} "
        f"| {r.get('at_least') or ''} |"
        for r in rows
    ]
    (RESULTS / "engine.md").write_text("\n".join(lines) + "\n")
    plot(rows, curves)


if __name__ == "__main__":
    main()
