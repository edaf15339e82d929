"""Fine-tuning: boosted models of three libraries before and after `dm.tune`, soft and hard.

Twelve sets, named before any was tuned: the six largest regression sets of the folder that are not
parts of one another, and six classification sets of 4 600 to 49 000 rows. Models are each library's
default with 100 trees: 31 leaves (LightGBM) or depth 5 (XGBoost, CatBoost).
(`satellite_image` is `satimage` with the number of the class as a target.)

Protocol: 60 % train, 20 % validation, 20 % test, split anew for every seed (classes in proportion).
The source is trained on the training part. `dm.tune` runs with its defaults, the same for every
set; it chooses by the validation part. The test part is looked at once, by this table:

- source: trained on the training part;
- soft, hard: tuned on the training part, chosen by validation;
- source +val: the source trained on training and validation part together;
- soft +val, hard +val: that one, trained on both with the chosen settings (`refit=` that one);
- early: the library's own early stopping on the validation part, up to 1 000 trees.

Squared error for regression, log-loss (and accuracy) for classification.

    python benchmarks/training_tuning.py --data DATA --seeds 3 --resume tuning.jsonl \
        --json benchmarks/results/training_tuning.json
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import training_data as sets
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import decision_machines as dm

REGRESSION = ("houses", "house_8L", "ailerons", "cpu_act", "satellite_image", "abalone")
CLASSIFICATION = ("magic", "phoneme", "satimage", "spambase", "waveform_21", "adult")
LIBRARIES = ("lightgbm", "xgboost", "catboost")
FIRST_SEED = 100
"""The seeds below were used while the rule was made."""
FILES = {
    "houses": "537_houses",
    "house_8L": "218_house_8L",
    "cpu_act": "197_cpu_act",
    "satellite_image": "294_satellite_image",
}
COLUMNS = ("source", "soft", "hard", "source +val", "soft +val", "hard +val", "early")


# -- sets and models ------------------------------------------------------------------------------


def load(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "ailerons":
        parts = sets.ailerons(data)
        return np.concatenate(parts[::2]), np.concatenate(parts[1::2])
    if name == "abalone":
        with gzip.open(data / "arff" / "abalone.arff.gz", "rt") as file:
            lines = [line.strip() for line in file if line.strip() and line[0] not in "@%"]
        rows = np.array([line.split(",") for line in lines])
        sex = sets.codes(rows[:, 0])
        return np.column_stack([sex, rows[:, 1:-1].astype(float)]), rows[:, -1].astype(float)
    return sets.pmlb(data, FILES.get(name, name), classes=name in CLASSIFICATION)


def split(X: np.ndarray, y: np.ndarray, seed: int, classes: bool):
    """Train, validation and test, each (X, y)."""
    rest = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y if classes else None)
    A, C, a, c = rest
    A, B, a, b = train_test_split(
        A, a, test_size=0.25, random_state=seed, stratify=a if classes else None
    )
    return (A, a), (B, b), (C, c)


def fit(library: str, classes: bool, train, valid=None):
    """The library's model of 100 trees; with `valid` early-stopped, up to 1 000."""
    n = 100 if valid is None else 1000
    stop = 50
    if library == "lightgbm":
        import lightgbm

        make = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        model = make(n_estimators=n, num_leaves=31, n_jobs=1, verbose=-1)
        if valid is None:
            return model.fit(*train)
        quiet = [lightgbm.early_stopping(stop, verbose=False)]
        return model.fit(*train, eval_set=[valid], callbacks=quiet)
    if library == "xgboost":
        import xgboost

        make = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
        if valid is None:
            return make(n_estimators=n, max_depth=5, n_jobs=1).fit(*train)
        model = make(n_estimators=n, max_depth=5, n_jobs=1, early_stopping_rounds=stop)
        return model.fit(*train, eval_set=[valid], verbose=False)
    import catboost

    make = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
    model = make(iterations=n, depth=5, thread_count=1, verbose=False, allow_writing_files=False)
    if valid is None:
        return model.fit(*train)
    return model.fit(*train, eval_set=valid, early_stopping_rounds=stop)


# -- one cell -------------------------------------------------------------------------------------


def score(answer: np.ndarray, y: np.ndarray, classes: bool) -> tuple[float, float | None]:
    """The loss, and the accuracy of a classifier; `answer` holds probabilities or values."""
    if not classes:
        return float(np.mean((np.asarray(answer).ravel() - y) ** 2)), None
    p = np.asarray(answer, np.float64)
    p = np.column_stack([1 - p.ravel(), p.ravel()]) if p.ndim == 1 or p.shape[1] == 1 else p
    p = p / p.sum(1, keepdims=True)
    labels = np.arange(p.shape[1])
    return float(log_loss(y, p, labels=labels)), float(np.mean(p.argmax(1) == y))


def answer_of(model, X: np.ndarray, classes: bool) -> np.ndarray:
    if isinstance(model, torch.nn.Module):
        with torch.no_grad():
            rows = torch.from_numpy(np.array(model.machine.features(X)))
            return model(rows).double().numpy()
    return model.predict_proba(X) if classes else model.predict(X)


def cell(data: Path, name: str, library: str, seed: int, **options) -> dict:
    """One source, tuned: the losses on the test part."""
    classes = name in CLASSIFICATION
    train, valid, test = split(*load(data, name), seed, classes)
    source = fit(library, classes, train)
    both = tuple(np.concatenate(pair) for pair in zip(train, valid, strict=True))
    whole = fit(library, classes, both)
    begin = time.perf_counter()
    tuned = dm.tune(
        dm.convert(source),
        *train,
        validation=valid,
        refit=whole,
        n_threads=1,
        verbose=False,
        **options,
    )
    seconds = time.perf_counter() - begin
    before = tuned.before_refit
    models = {
        "source": source,
        "soft": before.soft,
        "hard": before.machine,
        "source +val": whole,
        "soft +val": tuned.soft,
        "hard +val": tuned.machine,
        "early": fit(library, classes, train, valid),
    }
    row = {"set": name, "library": library, "seed": seed, "seconds": round(seconds, 2)}
    row |= {"task": "classification" if classes else "regression", "rows": len(train[1])}
    for column, model in models.items():
        loss, accuracy = score(answer_of(model, test[0], classes), test[1], classes)
        row[column] = loss
        if classes:
            row[f"{column} accuracy"] = accuracy
        else:
            row[f"{column} R2"] = 1 - loss / float(np.var(test[1]))
    report = tuned.report
    row |= {"chosen soft": report.chosen_soft, "chosen hard": report.chosen_hard}
    row |= {"validation": [report.source, report.soft, report.hard], "leads": report.leads}
    return row


# -- all cells, and what they say -----------------------------------------------------------------


def run(
    data: Path,
    tables: Path | None = None,
    *,
    seeds: int = 3,
    quick: bool = False,
    only: list[str] | None = None,
    log: Callable[[str], None] = print,
    resume: Path | None = None,
    finished_only: bool = False,
) -> list[dict]:
    """A row for each set, library and seed; those that `resume` holds are not run again."""
    rows = sets.finished(resume)
    done = {(row["set"], row["library"], row["seed"]) for row in rows}
    names = [n for n in REGRESSION + CLASSIFICATION if only is None or n in only]
    options = {"epochs": 3} if quick else {}
    for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else seeds)):
        for name in names:
            for library in LIBRARIES:
                if (name, library, seed) in done or finished_only:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = cell(data, name, library, seed, **options)
                sets.append(resume, row)
                rows.append(row)
                change = ", ".join(
                    f"{column} {row[column] / row[base] - 1:+.1%}"
                    for column, base in (
                        ("soft", "source"),
                        ("hard", "source"),
                        ("soft +val", "source +val"),
                        ("hard +val", "source +val"),
                    )
                )
                log(f"{name} / {library} / {seed}: {change} ({row['seconds']:.0f} s)")
    return rows


def summary(rows: list[dict]) -> list[dict]:
    """For each set and library: means over seeds, and changes against the source, in per cent."""
    found = []
    for name, library in itertools.product(REGRESSION + CLASSIFICATION, LIBRARIES):
        cells = [r for r in rows if r["set"] == name and r["library"] == library]
        if not cells:
            continue
        task = cells[0]["task"]
        line = {"task": task, "set": name, "library": library, "seeds": len(cells)}
        line |= {column: float(np.mean([r[column] for r in cells])) for column in COLUMNS}
        for column in COLUMNS[1:]:
            base = "source +val" if column.endswith("+val") else "source"
            change = np.array([r[column] / r[base] - 1 for r in cells]) * 100
            line[f"{column} %"] = float(change.mean())
            line[f"{column} % deviation"] = float(change.std(ddof=1)) if len(cells) > 1 else 0.0
        line["seconds"] = float(np.mean([r["seconds"] for r in cells]))
        found.append(line)
    return found


def table(lines: list[dict]) -> str:
    head = "| set | library | source | soft | hard | soft +val | hard +val | early | s |"
    out = [head, "|---" * 9 + "|"]
    for line in lines:
        cells = [f"{line[f'{c} %']:+.1f} ± {line[f'{c} % deviation']:.1f}" for c in COLUMNS[1:]]
        del cells[2]  # the source itself on more rows
        out.append(
            f"| {line['set']} | {line['library']} | {line['source']:.4g} | "
            + " | ".join(cells)
            + f" | {line['seconds']:.0f} |"
        )
    return "\n".join(out)


def claims(lines: list[dict]) -> list[str]:
    """What was to be reached, and whether it was."""
    numbers = [line for line in lines if line["task"] == "regression"]
    classes = [line for line in lines if line["task"] == "classification"]
    found = []
    for kind in ("", " +val"):
        soft, hard = f"soft{kind} %", f"hard{kind} %"
        if numbers:
            worst = max(numbers, key=lambda line: line[soft])
            found.append(
                f"{soft[:-2]}: squared error at least 5 % lower in "
                f"{sum(line[soft] <= -5 for line in numbers)} of {len(numbers)} (the least: "
                f"{worst[soft]:+.1f} %, {worst['set']} / {worst['library']})"
            )
        if classes:
            worst = max(classes, key=lambda line: line[soft])
            found.append(
                f"{soft[:-2]}: log-loss {np.mean([line[soft] for line in classes]):+.1f} % on "
                f"average, at most {worst[soft]:+.1f} % ({worst['set']} / {worst['library']})"
            )
        worst = max(lines, key=lambda line: line[hard])
        found.append(
            f"{hard[:-2]}: {np.mean([line[hard] for line in lines]):+.1f} % on average, at most "
            f"{worst[hard]:+.1f} ± {worst[hard + ' deviation']:.1f} % "
            f"({worst['set']} / {worst['library']})"
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed, three epochs")
    parser.add_argument("--only", nargs="*", help="sets")
    parser.add_argument("--resume", type=Path, help="a file of finished cells to go on with")
    parser.add_argument("--json", type=Path, help="where the means are written")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = run(
        given.data, seeds=given.seeds, quick=given.quick, only=given.only, resume=given.resume
    )
    lines = summary(rows)
    print(table(lines))
    print("\n".join(claims(lines)))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"lines": lines, "claims": claims(lines)}, indent=1))


if __name__ == "__main__":
    main()
