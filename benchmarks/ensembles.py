"""Sums of machines (`n_trees="auto"`) against early-stopped libraries, in one run, cell by cell.

Two suites:

- ``tuning``: the twelve sets of `training_tuning.py`, its splits and seeds (60 / 20 / 20 %):
  libraries learn from the first part and stop by the second; ours is given both parts as one.
  Squared error, or log-loss and accuracy, on the third.
- ``grande``: the twelve sets of GRANDE's published table that can be had, its protocol: stratified
  five folds, shuffled with seed 42, a tenth of the training rows to stop by (given to ours with the
  others). Macro F1 with the threshold .5 and with one chosen on rows that were not learned from
  (the rows to stop by; ours: those that judge its sum), AUC and log-loss on the fold.

Every model runs on one thread; seconds are of the processor, fit alone. RealMLP and TabM (pytabkit)
are run at their defaults where they are installed.

    python benchmarks/ensembles.py --data DATA --suite tuning --splits 1 --resume sums.jsonl
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import io
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import training_data as sets
import training_tuning as tuning
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split

import decision_machines as dm

GRANDE = (
    *("climate", "cylinder-bands", "tokyo1", "churn", "phoneme", "adult"),
    *("wdbc", "wilt", "ilpd", "qsar-biodeg", "ozone", "phishing"),
)
LIBRARIES = ("lightgbm", "xgboost", "catboost")
NETWORKS = {"realmlp": "RealMLP_TD_D", "tabm": "TabM_D"}


# -- sets ------------------------------------------------------------------------------------------


def table(data: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A set of GRANDE's: features, text as categories, and codes of two classes."""
    if name == "wdbc":
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
        return pd.DataFrame(X), y
    if name in ("tokyo1", "churn", "phoneme", "adult"):
        X, y = sets.pmlb(data, name, classes=True)
        return pd.DataFrame(X), y
    if name == "climate":
        frame = pd.read_csv(data / "dtsemnet_small" / "climate_crashes.csv")
        return frame.iloc[:, :-1], sets.codes(frame.iloc[:, -1].to_numpy())
    if name == "cylinder-bands":
        with gzip.open(data / "arff" / "cylinder.bands.arff.gz", "rt") as file:
            lines = file.read().splitlines()
        kinds = [line for line in lines if line.lower().startswith("@attribute")]
        rows = [line for line in lines if line.strip() and line[0] not in "@%"]
        frame = pd.read_csv(io.StringIO("\n".join(rows)), header=None, na_values="?", dtype=str)
        for i, kind in enumerate(kinds[:-1]):
            frame[i] = frame[i] if "{" in kind else pd.to_numeric(frame[i], errors="coerce")
        return frame.iloc[:, :-1], sets.codes(frame.iloc[:, -1].to_numpy(str))
    folder = data / "grande"
    options = {
        "wilt": ("wilt.txt.gz", {"sep": " ", "header": None}),
        "ilpd": ("ilpd.csv.gz", {}),
        "qsar-biodeg": ("qsar-biodeg.csv.gz", {"sep": ";", "header": None}),
        "ozone": ("ozone-eighthr.data.gz", {"header": None, "na_values": "?"}),
        "phishing": ("phishing.arff.gz", {"header": None}),
    }
    file, how = options[name]
    frame = pd.read_csv(folder / file, **how)
    if name == "wilt":  # the class is first
        return frame.iloc[:, 1:], sets.codes(frame.iloc[:, 0].to_numpy())
    first = 1 if name == "ozone" else 0  # its date
    y = frame.iloc[:, -1]
    is_there = y.notna().to_numpy()
    return frame[is_there].iloc[:, first:-1], sets.codes(y[is_there].to_numpy())


def coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns by text names, text as categories: what the libraries take."""
    found = frame.copy()
    found.columns = [f"f{i}" for i in range(frame.shape[1])]
    for name in found.columns:
        if not pd.api.types.is_numeric_dtype(found[name]):
            found[name] = found[name].astype("category")
    return found


# -- models ----------------------------------------------------------------------------------------


def library(name: str, train, valid, classes: bool, seed: int):
    """Early-stopped, up to 1 000 trees, as in `training_tuning.fit`, with categories."""
    X = train[0]
    text = [c for c in X.columns if str(X[c].dtype) == "category"]
    if not text:
        arrays = [(part[0].to_numpy(float), part[1]) for part in (train, valid)]
        return tuning.fit(name, classes, *arrays)
    if name == "catboost":
        import catboost

        def filled(part):
            frame = part[0].copy()
            for c in text:
                frame[c] = frame[c].astype(str).fillna("nan")
            return frame, part[1]

        model = catboost.CatBoostClassifier(
            iterations=1000, depth=5, thread_count=1, verbose=False, allow_writing_files=False
        )
        model.fit(
            *filled(train), eval_set=filled(valid), early_stopping_rounds=50, cat_features=text
        )
        return _Filled(model, filled)
    if name == "lightgbm":
        import lightgbm

        model = lightgbm.LGBMClassifier(n_estimators=1000, n_jobs=1, verbose=-1)
        quiet = [lightgbm.early_stopping(50, verbose=False)]
        return model.fit(*train, eval_set=[valid], callbacks=quiet)
    import xgboost

    model = xgboost.XGBClassifier(
        n_estimators=1000, max_depth=5, n_jobs=1, early_stopping_rounds=50, enable_categorical=True
    )
    return model.fit(*train, eval_set=[valid], verbose=False)


class _Filled:
    """A model whose text has no gaps."""

    def __init__(self, model, filled) -> None:
        self.model, self.filled = model, filled

    def predict_proba(self, X):
        return self.model.predict_proba(self.filled((X, None))[0])


def network(name: str, train, valid, classes: bool, seed: int):
    """A network of pytabkit at its defaults."""
    import pytabkit

    kind = "Classifier" if classes else "Regressor"
    make = getattr(pytabkit, f"{NETWORKS[name]}_{kind}")
    model = make(device="cpu", random_state=seed, n_threads=1)
    return model.fit(*train, *valid)


def ours(train, valid, classes: bool, seed: int, time_limit: float | None):
    both = pd.concat([train[0], valid[0]]), np.concatenate([train[1], valid[1]])
    make = dm.DecisionMachineClassifier if classes else dm.DecisionMachineRegressor
    model = make("auto", soft=True, n_threads=1, random_state=seed, time_limit=time_limit)
    return model.fit(*both)


# -- one cell --------------------------------------------------------------------------------------


def answers(model, X, classes: bool) -> np.ndarray:
    plain = X
    if not isinstance(model, (_Filled, dm.DecisionMachineClassifier, dm.DecisionMachineRegressor)):
        plain = X if any(str(d) == "category" for d in X.dtypes) else X.to_numpy(float)
    return np.asarray(model.predict_proba(plain) if classes else model.predict(plain))


def best_threshold(p: np.ndarray, y: np.ndarray) -> float:
    tried = np.unique(np.quantile(p, np.linspace(0.01, 0.99, 99)))
    scores = [f1_score(y, p >= at, average="macro") for at in tried]
    return float(tried[int(np.argmax(scores))])


def scored(p: np.ndarray, y: np.ndarray, suite: str, classes: bool, at: float | None) -> dict:
    if suite == "tuning":
        loss, accuracy = tuning.score(p, y, classes)
        return {"loss": loss, **({"accuracy": accuracy} if classes else {})}
    second = p[:, 1]
    return {
        "loss": float(log_loss(y, p)),
        "auc": float(roc_auc_score(y, second)),
        "f1": float(f1_score(y, second >= 0.5, average="macro")),
        "f1 chosen": float(f1_score(y, second >= at, average="macro")),
    }


def cell(suite: str, name: str, model: str, parts, seed: int, time_limit: float | None) -> dict:
    train, valid, test = parts
    classes = suite == "grande" or name in tuning.CLASSIFICATION
    begin = time.process_time()
    if model == "sum":
        fitted = ours(train, valid, classes, seed, time_limit)
    elif model in NETWORKS:
        fitted = network(model, train, valid, classes, seed)
    else:
        fitted = library(model, train, valid, classes, seed)
    row = {"suite": suite, "set": name, "seed": seed, "model": model}
    row["seconds"] = round(time.process_time() - begin, 2)
    row["rows"] = len(train[1]) + len(valid[1])
    at = None
    if suite == "grande":
        if model == "sum":
            report = fitted.report_
            margins = report["margins"]
            at = best_threshold(fitted.machine_.respond(margins)[:, 0], report["targets"])
        else:
            at = best_threshold(answers(fitted, valid[0], True)[:, 1], valid[1])
    row |= scored(answers(fitted, test[0], classes), test[1], suite, classes, at)
    if model == "sum":
        hard = fitted.machine_
        found = hard.predict_proba(test[0]) if classes else hard.predict(test[0])
        row["hard"] = scored(np.asarray(found), test[1], suite, classes, at)
        report = fitted.report_
        row["reported"] = {"soft": report["soft"], "hard": report["hard"]}
        row["tried"] = [{k: v for k, v in one.items() if k != "tuning"} for one in report["tried"]]
    return row


def splits(suite: str, data: Path, name: str, n: int):
    """(seed or fold, (train, valid, test)) of a set."""
    if suite == "tuning":
        X, y = tuning.load(data, name)
        frame = coded(pd.DataFrame(X))
        for seed in range(tuning.FIRST_SEED, tuning.FIRST_SEED + n):
            index = tuning.split(np.arange(len(y)), y, seed, name in tuning.CLASSIFICATION)
            yield seed, [(frame.iloc[rows], target) for rows, target in index]
        return
    X, y = table(data, name)
    frame = coded(X)
    cut = StratifiedKFold(5, shuffle=True, random_state=42)
    for fold, (rest, test) in enumerate(cut.split(frame, y)):
        if fold == n:
            break
        train, valid = train_test_split(rest, test_size=0.1, random_state=42, stratify=y[rest])
        yield fold, [(frame.iloc[rows], y[rows]) for rows in (train, valid, test)]


# -- all cells -------------------------------------------------------------------------------------


def run(given) -> list[dict]:
    rows = sets.finished(given.resume)
    done = {(r["suite"], r["set"], r["seed"], r["model"]) for r in rows}
    names = tuning.REGRESSION + tuning.CLASSIFICATION if given.suite == "tuning" else GRANDE
    models = [*LIBRARIES, "sum"]
    if importlib.util.find_spec("pytabkit"):
        models += list(NETWORKS)
    for name in [n for n in names if not given.only or n in given.only]:
        for seed, parts in splits(given.suite, given.data, name, given.splits):
            for model in [m for m in models if not given.models or m in given.models]:
                if (given.suite, name, seed, model) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = cell(given.suite, name, model, parts, seed, given.time_limit)
                sets.append(given.resume, row)
                rows.append(row)
                print(f"{name} / {seed} / {model}: {row['loss']:.5g} ({row['seconds']:.0f} s)")
    return rows


def summary(rows: list[dict], suite: str) -> str:
    """Means over the splits that every model has run."""
    frame = pd.DataFrame([r for r in rows if r["suite"] == suite])
    if frame.empty:
        return "nothing was run"
    out = []
    for what in ("loss", "seconds") + (("auc", "f1", "f1 chosen") if suite == "grande" else ()):
        means = frame.pivot_table(index="set", columns="model", values=what).dropna()
        if "sum" in means and what == "loss":
            rivals = means[[m for m in LIBRARIES if m in means]].min(axis=1)
            ratio = means["sum"] / rivals
            out.append(
                f"the sum against the best library of each set: no worse in "
                f"{int((ratio <= 1).sum())} of {len(ratio)}, {ratio.mean() - 1:+.1%} on average"
            )
            means["sum / best library"] = ratio
        out += [what, means.to_string(float_format=lambda v: f"{v:.4g}")]
        if what in ("auc", "f1", "f1 chosen"):
            out.append("mean " + ", ".join(f"{m} {v:.4f}" for m, v in means.mean().items()))
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--suite", choices=("tuning", "grande"), default="tuning")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="sets")
    parser.add_argument("--models", nargs="*", help="of lightgbm, xgboost, catboost, sum, …")
    parser.add_argument("--time-limit", type=float, help="seconds for one fit of ours")
    parser.add_argument("--resume", type=Path, help="a file of finished cells to go on with")
    given = parser.parse_args()
    print(summary(run(given), given.suite))


if __name__ == "__main__":
    main()
