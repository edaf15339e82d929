"""Shapley values beside the libraries' own: equality first, then times in one run.

    python benchmarks/shapley.py [--rows 4096] [--repeats 5] [--save] [WORKLOAD ...]

Each workload takes turns with its rival, which is given as many rows as take it about a second.
Times are microseconds a row: the lowest, and the median, of the repeats. A ratio is that of the
rival's median to ours, with the lowest ratio among all repeats beside it. With --models FOLDER
models are trained once and kept there; with --save lines replace those of the same name in
results/shapley.json, so that workloads can be run one by one.

Rivals that want another Python are measured in it, on the same model and rows, between two runs of
ours: --elsewhere xgboost=/path/to/python, and likewise shapiq, woodelf and fasttreeshap.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import decision_machines as dm

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Line:
    """One workload: what it took, and how far values lie apart."""

    workload: str
    rival: str
    rows: int
    rival_rows: int
    ours_us: float
    ours_low_us: float
    rival_us: float
    rival_low_us: float
    ratio: float
    ratio_low: float
    error: float
    setup_s: float


def rows_and_answers(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """28 features, a few of them gone, and a score with interactions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 28)).astype(np.float32).astype(np.float64)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] * (X[:, 4] > 0) + X[:, 5:9].sum(axis=1)
    return X, y + rng.normal(size=n)


def compare(
    workload: str,
    rival_name: str,
    ours: Callable[[np.ndarray], np.ndarray],
    rival: Callable[[np.ndarray], np.ndarray],
    X: np.ndarray,
    rival_rows: int,
    repeats: int,
    tolerance: float,
    setup_s: float = 0.0,
) -> Line:
    """Check equality, then take turns."""
    few = X[:rival_rows]
    expected = np.asarray(rival(few), np.float64)
    found = np.asarray(ours(few), np.float64)
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not error <= tolerance:
        raise SystemExit(f"{workload}: values differ by {error:.3g} of the largest")
    own, other = [], []
    ours(X)
    for _ in range(repeats):
        own.append(_seconds(lambda: ours(X)) / len(X) * 1e6)
        other.append(_seconds(lambda: rival(few)) / len(few) * 1e6)
    return shown(workload, rival_name, len(X), len(few), own, other, error, setup_s)


def own_turns(
    workload: str,
    rival_name: str,
    ours: Callable[[], object],
    other: Callable[[], object],
    n_rows: int,
    repeats: int,
    setup_s: float = 0.0,
) -> Line:
    """Two ways of ours taking turns on the same rows."""
    ours(), other()
    times = [
        (_seconds(ours) / n_rows * 1e6, _seconds(other) / n_rows * 1e6) for _ in range(repeats)
    ]
    return shown(
        workload, rival_name, n_rows, n_rows, *map(list, zip(*times, strict=True)), 0.0, setup_s
    )


def shown(
    workload: str,
    rival_name: str,
    rows: int,
    rival_rows: int,
    own: list[float],
    other: list[float],
    error: float,
    setup_s: float,
) -> Line:
    """The line of these times, printed; the lowest ratio is of pairs, where they took turns."""
    pairs = list(zip(own, other, strict=True)) if len(own) == len(other) else []
    line = Line(
        workload,
        rival_name,
        rows,
        rival_rows,
        statistics.median(own),
        min(own),
        statistics.median(other),
        min(other),
        statistics.median(other) / statistics.median(own),
        min(b / a for a, b in pairs) if pairs else min(other) / max(own),
        error,
        setup_s,
    )
    print(
        f"{workload:44} {line.ours_us:9.2f} µs (low {line.ours_low_us:.2f})   "
        f"{rival_name} {line.rival_us:11.1f} µs   {line.ratio:8.1f} × (low {line.ratio_low:.1f})  "
        f"error {error:.1e}",
        flush=True,
    )
    return line


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


class Workloads:
    """The workloads by name; each yields lines."""

    def __init__(
        self, n_rows: int, repeats: int, models: Path | None, elsewhere: dict[str, str]
    ) -> None:
        self.n_rows, self.repeats = n_rows, repeats
        self.models, self.others = models, elsewhere
        self.X, self.y = rows_and_answers(20_000)
        self.rows = rows_and_answers(max(n_rows, 1), seed=1)[0][:n_rows]
        self._models: dict[str, object] = {}

    def _kept(self, name: str, make: Callable[[], object]) -> object:
        kept = None if self.models is None else self.models / f"shapley-{name}.pkl"
        if name not in self._models and kept is not None and kept.exists():
            self._models[name] = pickle.loads(kept.read_bytes())
        if name not in self._models:
            self._models[name] = make()
            if kept is not None:
                kept.write_bytes(pickle.dumps(self._models[name]))
        return self._models[name]

    def _lightgbm(self):
        import lightgbm

        return self._kept(
            "lightgbm",
            lambda: (
                lightgbm.LGBMRegressor(n_estimators=500, num_leaves=64, verbose=-1, n_jobs=1)
                .fit(self.X, self.y)
                .booster_
            ),
        )

    def _xgboost(self):
        import xgboost

        return self._kept(
            "xgboost",
            lambda: (
                xgboost.XGBRegressor(n_estimators=500, max_depth=6, n_jobs=1)
                .fit(self.X, self.y)
                .get_booster()
            ),
        )

    def lightgbm(self):
        model = self._lightgbm()
        machine = dm.convert(model)

        def rival(X):
            return model.predict(X, pred_contrib=True, num_threads=1)[:, :-1]

        for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
            yield compare(
                f"LightGBM 500 × 64, {dtype}",
                "pred_contrib",
                lambda X, dtype=dtype: machine.shap_values(X, n_threads=1, dtype=dtype),
                rival,
                self.rows,
                64,
                self.repeats,
                tolerance,
            )

    def one_row(self):
        model = self._lightgbm()
        machine = dm.convert(model)
        yield compare(
            "LightGBM 500 × 64, one row",
            "pred_contrib",
            lambda X: machine.shap_values(X, n_threads=1),
            lambda X: model.predict(X, pred_contrib=True, num_threads=1)[:, :-1],
            self.rows[:1],
            1,
            4 * self.repeats,
            1e-12,
        )

    def xgboost(self):
        import xgboost

        model = self._xgboost()
        machine = dm.convert(model)
        for dtype in ("float64", "float32"):
            yield compare(
                f"XGBoost 500 × depth 6, {dtype}",
                f"pred_contribs of {xgboost.__version__}",
                lambda X, dtype=dtype: machine.shap_values(X, n_threads=1, dtype=dtype),
                lambda X: model.predict(xgboost.DMatrix(X), pred_contribs=True)[:, :-1],
                self.rows,
                128,
                self.repeats,
                1e-4,
            )

    def interactions(self):
        import xgboost

        model = self._xgboost()
        machine = dm.convert(model)
        yield compare(
            "XGBoost 500 × depth 6, interactions",
            f"pred_interactions of {xgboost.__version__}",
            lambda X: machine.shap_interaction_values(X, n_threads=1),
            lambda X: model.predict(xgboost.DMatrix(X), pred_interactions=True)[:, :-1, :-1],
            self.rows,
            2,
            min(self.repeats, 3),
            1e-3,
        )

    def catboost(self):
        import catboost

        model = self._kept(
            "catboost",
            lambda: catboost.CatBoostRegressor(
                iterations=500, depth=6, verbose=0, allow_writing_files=False, thread_count=1
            ).fit(self.X, self.y),
        )
        machine = dm.convert(model)
        rows = rows_and_answers(32_000, seed=1)[0]

        def rival(X):
            return model.get_feature_importance(
                catboost.Pool(X), type="ShapValues", thread_count=1
            )[:, :-1]

        for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
            yield compare(
                f"CatBoost 500 × depth 6, {dtype}",
                "ShapValues",
                lambda X, dtype=dtype: machine.shap_values(X, n_threads=1, dtype=dtype),
                rival,
                rows,
                len(rows),
                min(self.repeats, 3),
                tolerance,
            )

    def forest(self):
        import shap
        from sklearn.ensemble import RandomForestRegressor

        model = self._kept(
            "forest",
            lambda: RandomForestRegressor(100, min_samples_leaf=4, random_state=0, n_jobs=2).fit(
                self.X[:16_000], self.y[:16_000]
            ),
        )
        machine = dm.convert(model)
        theirs = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
        for dtype, tolerance in (("float64", 1e-11), ("float32", 1e-4)):
            yield compare(
                f"forest 100 × {machine.n_leaves // 100}, {dtype}",
                f"shap {shap.__version__}",
                lambda X, dtype=dtype: machine.shap_values(X, n_threads=1, dtype=dtype),
                lambda X: theirs.shap_values(X, check_additivity=False),
                self.rows[:1024],
                4,
                self.repeats,
                tolerance,
            )

    def background(self):
        import shap

        for name, model, sizes in (
            ("XGBoost 500 × depth 6", self._xgboost(), (100,)),
            ("LightGBM 500 × 64", self._lightgbm(), (100, 5000)),
        ):
            machine = dm.convert(model)
            for size in sizes:
                rows = self.X[:size]
                start = time.perf_counter()
                machine.shap_values(self.rows[:1], rows, n_threads=1)
                setup = time.perf_counter() - start
                # shap's own limit on background rows does not matter to it beyond time.
                theirs = shap.TreeExplainer(model, self.X[:100])
                if size == 100:
                    yield compare(
                        f"{name}, background of {size}",
                        f"shap {shap.__version__}",
                        lambda X, rows=rows, machine=machine: machine.shap_values(
                            X, rows, n_threads=1
                        ),
                        lambda X, theirs=theirs: theirs.shap_values(X, check_additivity=False),
                        self.rows,
                        16,
                        self.repeats,
                        1e-4,
                        setup,
                    )
                else:
                    yield self._against_few(name, model, machine, rows, setup)

    def _against_few(self, name, model, machine, rows, setup):
        """Many background rows beside a hundred of them."""
        few = dm.convert(model)
        return own_turns(
            f"{name}, background of {len(rows)}",
            "ours, of 100",
            lambda: machine.shap_values(self.rows, rows, n_threads=1),
            lambda: few.shap_values(self.rows, self.X[:100], n_threads=1),
            len(self.rows),
            self.repeats,
            setup,
        )

    def threads(self):
        machine = dm.convert(self._lightgbm())
        yield own_turns(
            "LightGBM 500 × 64, two threads",
            "ours, one thread",
            lambda: machine.shap_values(self.rows, n_threads=2),
            lambda: machine.shap_values(self.rows, n_threads=1),
            len(self.rows),
            self.repeats,
        )

    def elsewhere(self):
        """Rivals in interpreters of their own."""
        for rival, python in self.others.items():
            for name, model, ending in (
                ("LightGBM 500 × 64", self._lightgbm, ".txt"),
                ("XGBoost 500 × depth 6", self._xgboost, ".json"),
            ):
                if rival != "xgboost" or ending == ".json":
                    yield from self._by_another(rival, python, name, model(), ending)

    def _by_another(self, rival, python, name, model, ending):
        machine, few = dm.convert(model), self.rows[:64]
        with tempfile.TemporaryDirectory() as folder:
            at = Path(folder)
            model.save_model(str(at / f"model{ending}"))
            np.save(at / "rows.npy", few)
            machine.shap_values(self.rows, n_threads=1)
            own = [_seconds(lambda: machine.shap_values(self.rows, n_threads=1))]
            script = str(Path(__file__).parent / "shapley_rival.py")
            done = subprocess.run(
                [python, script, rival, str(at / f"model{ending}"), str(at / "rows.npy"),
                 str(at / "values.npy"), str(self.repeats)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            own.append(_seconds(lambda: machine.shap_values(self.rows, n_threads=1)))
            if done.returncode:
                print(f"{name}, {rival}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                return
            told = json.loads(done.stdout.splitlines()[-1])
            expected = np.load(at / "values.npy")
        error = np.abs(machine.shap_values(few) - expected).max() / np.abs(expected).max()
        own = [s / len(self.rows) * 1e6 for s in own]
        other = [s / len(few) * 1e6 for s in told["seconds"]]
        yield shown(
            f"{name}, float64", f"{rival} {told['version']}", len(self.rows), len(few), own, other,
            float(error), told["setup"],
        )  # fmt: skip


NAMES = (
    "lightgbm", "xgboost", "catboost", "forest", "interactions", "background", "one_row", "threads",
    "elsewhere",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=NAMES)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="write results/shapley.json")
    parser.add_argument("--models", type=Path, help="a folder that keeps trained models")
    parser.add_argument("--elsewhere", action="append", default=[], metavar="RIVAL=PYTHON")
    given = parser.parse_args()
    unknown = set(given.workloads) - set(NAMES)
    if unknown:
        parser.error(f"unknown workload {min(unknown)}; there are {', '.join(NAMES)}")
    elsewhere = dict(pair.split("=", 1) for pair in given.elsewhere)
    workloads = Workloads(given.rows, given.repeats, given.models, elsewhere)
    for name in given.workloads:
        for line in getattr(workloads, name)():
            if given.save:
                save(line)


def save(line: Line) -> None:
    """Write the line in place of the one of the same name."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "shapley.json"
    found = json.loads(path.read_text()) if path.exists() else []
    kept = {(old["workload"], old["rival"]): old for old in found}
    kept[line.workload, line.rival] = asdict(line)
    path.write_text(json.dumps(list(kept.values()), indent=1) + "\n")


if __name__ == "__main__":
    main()
