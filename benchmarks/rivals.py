"""Other engines on a saved model: in this process, or in another interpreter on the same rows.

Run as a program it answers requests on its standard input, one JSON object a line, and takes times
inside itself; `benchmarks/turns.py` asks. So a rival that needs another Python, or other releases,
takes part in the same rounds. Nothing of decision_machines is imported here.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402


def rows_of(path: str) -> Any:
    """Rows saved by `turns.save_rows`: an array, or compressed sparse rows."""
    if path.endswith(".npz"):
        import scipy.sparse as sp

        return sp.load_npz(path)
    return np.load(path)


def parts_of(X: Any, batch: int | None) -> list[Any]:
    """The rows in calls of so many each."""
    n = X.shape[0]
    return [X] if batch is None else [X[i : i + batch] for i in range(0, n, batch)]


# -- each takes the folder of a model's files, threads and what is asked for ----------------------


def lightgbm(model: Path, threads: int, leaves: bool) -> Callable:
    booster = importlib.import_module("lightgbm").Booster(model_file=model / "model.txt")
    if leaves:
        return lambda X: booster.predict(X, pred_leaf=True, num_threads=threads)
    return lambda X: booster.predict(X, raw_score=True, num_threads=threads)


def lleaves(model: Path, threads: int, leaves: bool) -> Callable:
    compiled = importlib.import_module("lleaves").Model(model_file=str(model / "model.txt"))
    compiled.compile(cache=str(model / "lleaves.o"), raw_score=True)
    return lambda X: compiled.predict(X, n_jobs=threads)


def xgboost(model: Path, threads: int, leaves: bool) -> Callable:
    xgb = importlib.import_module("xgboost")
    booster = xgb.Booster(model_file=model / "model.ubj")
    booster.set_param({"nthread": threads})
    if leaves:
        return lambda X: booster.predict(xgb.DMatrix(X, nthread=threads), pred_leaf=True)
    return lambda X: booster.inplace_predict(X, predict_type="margin")


def catboost(model: Path, threads: int, leaves: bool) -> Callable:
    cat = importlib.import_module("catboost")
    loaded = cat.CatBoost().load_model(str(model / "model.cbm"))
    if leaves:
        return lambda X: loaded.calc_leaf_indexes(X, thread_count=threads)
    return lambda X: loaded.predict(X, prediction_type="RawFormulaVal", thread_count=threads)


def scikit_learn(model: Path, threads: int, leaves: bool) -> Callable:
    loaded = pickle.loads((model / "model.pkl").read_bytes())
    if hasattr(loaded, "n_jobs"):
        loaded.n_jobs = threads
    if leaves:
        return loaded.apply
    if "HistGradient" not in type(loaded).__name__ or threads == 1:
        return loaded.predict_proba if hasattr(loaded, "classes_") else loaded.predict
    limits = importlib.import_module("threadpoolctl").threadpool_limits

    def predict(X: Any) -> Any:
        with limits(threads):
            return loaded.predict(X)

    return predict


def onnx_runtime(model: Path, threads: int, leaves: bool) -> Callable:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = runtime.InferenceSession(str(model / "model.onnx"), options)
    given = session.get_inputs()[0].name
    return lambda X: session.run(None, {given: X})[-1]


def onedal(model: Path, threads: int, leaves: bool) -> Callable:
    daal = importlib.import_module("daal4py")
    daal.daalinit(nthreads=threads)
    if (model / "model.txt").exists():
        booster = importlib.import_module("lightgbm").Booster(model_file=model / "model.txt")
    else:
        booster = importlib.import_module("xgboost").Booster(model_file=model / "model.ubj")
    return daal.mb.convert_model(booster).predict


def treelite(model: Path, threads: int, leaves: bool) -> Callable:
    gtil = importlib.import_module("treelite.gtil")
    loaded = _treelite(model)
    if leaves:
        return lambda X: gtil.predict_leaf(loaded, X, nthread=threads)
    return lambda X: gtil.predict(loaded, X, nthread=threads, pred_margin=True)


def _treelite(model: Path) -> Any:
    frontend = importlib.import_module("treelite").frontend
    if (model / "model.txt").exists():
        return frontend.load_lightgbm_model(model / "model.txt")
    if (model / "model.ubj").exists():
        return frontend.load_xgboost_model(model / "model.ubj", format_choice="ubjson")
    importer = importlib.import_module("treelite").sklearn
    return importer.import_model(pickle.loads((model / "model.pkl").read_bytes()))


def tl2cgen(model: Path, threads: int, leaves: bool) -> Callable:
    """Reading the rows is counted: a user would have to."""
    compiler = importlib.import_module("tl2cgen")
    library = model / "tl2cgen.so"
    if not library.exists():
        compiler.export_lib(
            _treelite(model), toolchain="gcc", libpath=library, params={"parallel_comp": 8}
        )
    predictor = compiler.Predictor(library, nthread=threads)
    return lambda X: predictor.predict(compiler.DMatrix(X), pred_margin=True)


def ydf(model: Path, threads: int, leaves: bool) -> Callable:
    """A model of its own of the same size, on the rows that the other was trained with."""
    library = importlib.import_module("ydf")
    library.verbose(0)

    def table(X: Any) -> dict[str, Any]:
        return {f"f{i}": X[:, i] for i in range(X.shape[1])}

    kept = model / "ydf"
    if kept.exists():
        loaded = library.load_model(str(kept))
    else:
        trained = np.load(model / "trained.npz")
        size = json.loads((model / "size.json").read_text())
        loaded = library.GradientBoostedTreesLearner(
            label="y", task=library.Task.REGRESSION, num_trees=size["trees"],
            max_depth=size["depth"] + 1, shrinkage=0.05, early_stopping="NONE",
            validation_ratio=0.0, num_threads=2,
        ).train(table(trained["X"]) | {"y": trained["y"]})  # fmt: skip
        loaded.save(str(kept))
    # Handed over as it wants them, a column each: to copy them is part of asking it.
    return lambda X: loaded.predict(table(X), num_threads=threads)


def sklearnex(model: Path, threads: int, leaves: bool) -> Callable:
    """Intel's forest, trained by it on the same rows with the same settings."""
    ensemble = importlib.import_module("sklearnex.ensemble")
    kept = model / "sklearnex.pkl"
    if kept.exists():
        loaded = pickle.loads(kept.read_bytes())
    else:
        trained = np.load(model / "trained.npz")
        size = json.loads((model / "size.json").read_text())
        loaded = ensemble.RandomForestRegressor(
            size["trees"], max_depth=size["depth"] or None, max_features=0.3, n_jobs=2,
            random_state=0,
        ).fit(trained["X"], trained["y"])  # fmt: skip
        kept.write_bytes(pickle.dumps(loaded))
    loaded.n_jobs = threads
    return loaded.predict


RIVALS: dict[str, Callable[[Path, int, bool], Callable]] = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "scikit-learn": scikit_learn,
    "lleaves": lleaves,
    "ONNX Runtime": onnx_runtime,
    "oneDAL": onedal,
    "Treelite": treelite,
    "tl2cgen": tl2cgen,
    "YDF": ydf,
    "sklearnex": sklearnex,
}
RELEASES = {
    "scikit-learn": "scikit-learn",
    "ONNX Runtime": "onnxruntime",
    "oneDAL": "daal",
    "sklearnex": "scikit-learn-intelex",
    "XGBoost": "xgboost",
}
"""The distribution whose release is told, where it is not the rival's name in small letters."""


def release(rival: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    name = RELEASES.get(rival, rival.lower())
    for candidate in (name, f"{name}-cpu", f"{name}4py"):
        try:
            return version(candidate)
        except PackageNotFoundError:
            continue
    return "?"


def seconds(run: Callable, X: Any, batch: int | None, threads: int) -> float:
    """Processor time of one thread; time by the clock of several."""
    clock = time.process_time if threads == 1 else time.perf_counter
    parts = parts_of(X, batch)
    start = clock()
    for part in parts:
        run(part)
    return clock() - start


def serve() -> None:
    run: Callable | None = None
    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["do"] == "load":
                load = RIVALS[asked["rival"]]
                run = load(Path(asked["model"]), asked["threads"], asked["leaves"])
                told = {"release": release(asked["rival"])}
            else:
                assert run is not None
                X = rows_of(asked["rows"])
                if asked.get("save"):
                    np.save(asked["save"], np.asarray(run(X)))
                told = {"seconds": seconds(run, X, asked["batch"], asked["threads"])}
        except Exception as error:  # told to the asker, who leaves the rival out
            told = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}
        answers.write(json.dumps(told) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
