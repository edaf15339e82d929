"""Whole pipelines against scikit-learn, and against skl2onnx with ONNX Runtime where it is there.

Pipelines are trained on the adult census data: 14 columns, 8 of them labels, with gaps. Answers are
compared to the bit first. Then the pipeline and we take turns, and the ratio of every turn is kept:
its median is printed, and the range. One thread.

    python benchmarks/pipelines.py DATA [--repeats 7] [--onnx] [--fitted FOLDER]

DATA holds adult-train.csv.gz. Writes benchmarks/results/pipelines.json.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler  # noqa: E402

import decision_machines as dm  # noqa: E402

RESULTS = Path(__file__).parent / "results"
ROWS = 16_000
FOR_ONNX = "one-hot, impute, scale, forest of 100; gaps are labels"


def adult(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    table = pd.read_csv(
        folder / "adult-train.csv.gz", header=None, skipinitialspace=True, na_values="?"
    )
    table.columns = [f"c{i}" for i in range(table.shape[1])]
    return table.drop(columns="c14"), table["c14"]


def pipelines(X: pd.DataFrame) -> dict[str, object]:
    labels = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    numbers = [c for c in X if c not in labels]
    filled = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    one_hot = ColumnTransformer([("n", scaled, numbers), ("l", filled, labels)])
    codes = ColumnTransformer([("l", ordinal, labels)], remainder="passthrough")
    return {
        "one-hot, impute, scale, forest of 100": make_pipeline(
            one_hot, RandomForestClassifier(100, random_state=0, n_jobs=1)
        ),
        "the same, 10 rows in a leaf at least": make_pipeline(
            one_hot, RandomForestClassifier(100, min_samples_leaf=10, random_state=0, n_jobs=1)
        ),
        "ordinal, HistGradientBoosting": make_pipeline(
            codes, HistGradientBoostingClassifier(random_state=0)
        ),
        FOR_ONNX: make_pipeline(
            ColumnTransformer(
                [
                    ("n", scaled, numbers),
                    ("l", OneHotEncoder(handle_unknown="ignore"), labels),
                ]
            ),
            RandomForestClassifier(100, random_state=0),
        ),
    }


def turns(theirs, ours, repeats: int) -> dict[str, float]:
    """Times of both in turns: medians in milliseconds, and the ratio's range and median.

    The first call of each prepares what later ones use, and is not counted.
    """
    theirs()
    ours()
    pairs = []
    for _ in range(repeats):
        pair = []
        for run in (theirs, ours):
            begin = time.perf_counter()
            run()
            pair.append(time.perf_counter() - begin)
        pairs.append(pair)
    times = np.array(pairs)
    ratio = np.sort(times[:, 0] / times[:, 1])
    return {
        "their ms": round(float(np.median(times[:, 0])) * 1e3, 3),
        "our ms": round(float(np.median(times[:, 1])) * 1e3, 3),
        "ratio, lowest": round(float(ratio[0]), 1),
        "ratio, median": round(float(np.median(ratio)), 1),
        "ratio, highest": round(float(ratio[-1]), 1),
    }


def kept(folder: Path | None, name: str, make):
    """What `make` gives, from the folder where an earlier run left it."""
    if folder is None:
        return make()
    path = folder / f"{''.join(c if c.isalnum() else '_' for c in name)}.pickle"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(make()))
    return pickle.loads(path.read_bytes())


def onnx_bytes(pipeline, X: pd.DataFrame) -> bytes:
    """What skl2onnx makes of a pipeline."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    kinds = [
        (
            c,
            (FloatTensorType if pd.api.types.is_numeric_dtype(X[c]) else StringTensorType)(
                [None, 1]
            ),
        )
        for c in X
    ]
    return to_onnx(pipeline, initial_types=kinds, options={"zipmap": False}).SerializeToString()


def onnx_session(model: bytes):
    """A function of rows → probabilities by ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options)

    def run(rows: pd.DataFrame) -> np.ndarray:
        given = {
            c: rows[[c]].to_numpy(np.float32)
            if pd.api.types.is_numeric_dtype(rows[c])
            else rows[[c]].to_numpy(object)
            for c in rows
        }
        return session.run(None, given)[1]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--fitted", type=Path, help="A folder to keep fitted models in")
    parser.add_argument("--onnx", action="store_true", help="ONNX Runtime too")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = adult(given.data)
    rows, one = X.iloc[:ROWS], X.iloc[[3]]
    found = {}
    for name, pipeline in pipelines(X).items():
        if name == FOR_ONNX:
            # skl2onnx fills no gaps among labels: here they are labels of their own.
            words = X.select_dtypes(exclude="number").columns
            X = X.assign(**{c: X[c].astype(object).fillna("?") for c in words})
            rows, one = X.iloc[:ROWS], X.iloc[[3]]
        pipeline = kept(given.fitted, name, lambda p=pipeline, X=X: p.fit(X, y))
        begin = time.process_time()
        machine = dm.convert(pipeline)
        folding = time.process_time() - begin
        expected = pipeline.predict_proba(rows)
        assert np.array_equal(machine.predict_proba(rows), expected), name
        assert np.array_equal(machine.predict(rows), pipeline.predict(rows)), name
        entry = {"folding, s of the processor": round(folding, 2)}
        for what, some in ((f"{ROWS} rows", rows), ("one row", one)):
            entry[what] = turns(
                lambda some=some, p=pipeline: p.predict_proba(some),
                lambda some=some, m=machine: m.predict_proba(some, n_threads=1),
                given.repeats,
            )
        if given.onnx:
            try:
                model = kept(given.fitted, f"{name} onnx", lambda p=pipeline, X=X: onnx_bytes(p, X))
                run = onnx_session(model)
                theirs = run(rows)
                apart = np.abs(theirs - expected).max(axis=1)
                entry["ONNX Runtime, rows that differ as float32"] = int(
                    np.any(theirs != expected.astype(np.float32), axis=1).sum()
                )
                entry["ONNX Runtime, rows off by over 1e-3"] = int(np.sum(apart > 1e-3))
                entry["ONNX Runtime, largest difference"] = float(apart.max())
                entry["ONNX Runtime"] = turns(
                    lambda run=run, some=rows: run(some),
                    lambda m=machine, some=rows: m.predict_proba(some, n_threads=1),
                    given.repeats,
                )
            except Exception as error:  # what skl2onnx cannot convert is said, not hidden
                entry["ONNX Runtime"] = f"{type(error).__name__}: {str(error)[:200]}"
        found[name] = entry
        print(name, json.dumps(entry, indent=2))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "pipelines.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
