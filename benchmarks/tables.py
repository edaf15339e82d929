"""Tables as people have them against the libraries themselves: categories, text, one row.

Models of 200 trees are trained on the adult census data (48 842 people, 14 features, 8 of them
labels). Answers are compared to the bit first. Then the library and we take turns, and the ratio
of every turn is kept: its median is printed, and the range. One thread.

    python benchmarks/tables.py DATA [--repeats 9] [--only lightgbm,xgboost,catboost]

DATA holds adult-train.csv.gz and adult-test.csv.gz. Writes benchmarks/results/tables.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import decision_machines as dm  # noqa: E402

RESULTS = Path(__file__).parent / "results"
NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
LABELS = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
)
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
)
TREES = 200
AT_LEAST = {
    "lightgbm, pandas categories": 8,
    "xgboost, pandas categories": 5,
    "catboost, text": 2,
    "lightgbm, one-row table": 2,
    "xgboost, one-row table": 2,
    "catboost, one-row table": 2,
    "lightgbm, row_function": 50,
    "xgboost, row_function": 50,
    "catboost, row_function": 50,
    "lightgbm, coded array": 10,
    "xgboost, coded array": 10,
}
"""What must be reached, as a ratio of times."""


def census(folder: Path, part: str) -> tuple[pd.DataFrame, np.ndarray]:
    """People, with text where the data has labels, and who earns more than 50 000."""
    table = pd.read_csv(
        folder / f"adult-{part}.csv.gz",
        header=None,
        names=[*COLUMNS, "income"],
        skipinitialspace=True,
        na_values="?",
    )
    income = table.pop("income").str.rstrip(".") == ">50K"
    return table, income.to_numpy().astype(int)


def as_categories(table: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """The table with labels as the categories of the training data."""
    made = table.copy()
    for name in LABELS:
        kinds = pd.CategoricalDtype(sorted(like[name].dropna().astype(str).unique()))
        made[name] = made[name].astype(kinds)
    return made


def as_codes(table: pd.DataFrame) -> np.ndarray:
    """The table as one array of floats: codes of labels, NaN for none."""
    codes = table.copy()
    for name in LABELS:
        codes[name] = codes[name].cat.codes.replace(-1, np.nan).astype(float)
    return codes.to_numpy(np.float64)


def ratios(theirs, ours, repeats: int, calls: int = 1) -> dict[str, float]:
    """Their time over ours, turn by turn, and both times in microseconds a call."""
    took: list[tuple[float, float]] = []
    for _ in range(repeats):
        turn = []
        for call in (theirs, ours):
            start = time.perf_counter()
            for _ in range(calls):
                call()
            turn.append((time.perf_counter() - start) / calls * 1e6)
        took.append((turn[0], turn[1]))
    times = np.array(took)
    found = times[:, 0] / times[:, 1]
    return {
        "theirs": float(np.median(times[:, 0])),
        "ours": float(np.median(times[:, 1])),
        "ratio": float(np.median(found)),
        "lowest": float(found.min()),
        "highest": float(found.max()),
    }


def same(name: str, ours, theirs) -> None:
    if not np.array_equal(np.asarray(ours), np.asarray(theirs), equal_nan=True):
        raise SystemExit(f"{name}: the answers differ")


def mappings(table: pd.DataFrame) -> list[dict]:
    return [
        {
            k: None if isinstance(v, float) and np.isnan(v) and k in LABELS else v
            for k, v in row.items()
        }
        for row in table.astype(object).to_dict("records")
    ]


def measure(name, machine, table, theirs, repeats: int, told: dict) -> None:
    """A table, one-row tables, and rows as mappings, of one library."""
    same(name, machine.predict_proba(table), theirs(table))
    say(
        told,
        f"{name}, {'text' if name == 'catboost' else 'pandas categories'}",
        ratios(
            lambda: theirs(table), lambda: machine.predict_proba(table, n_threads=1), repeats, 2
        ),
    )
    ones = [table.iloc[[i]] for i in range(64)]
    for one in ones:
        same(f"{name}, one row", machine.predict_proba(one), theirs(one))
    at = {"ours": 0, "theirs": 0}

    def next_of(who: str, rows: list):
        at[who] += 1
        return rows[at[who] % len(rows)]

    say(
        told,
        f"{name}, one-row table",
        ratios(
            lambda: theirs(next_of("theirs", ones)),
            lambda: machine.predict_proba(next_of("ours", ones)),
            repeats,
            60,
        ),
    )
    if not hasattr(machine, "row_function"):
        return
    answer = machine.row_function("predict_proba")
    given = mappings(table.iloc[:64])
    for one, row in zip(ones, given, strict=True):
        same(f"{name}, row_function", answer(row), theirs(one)[0])
    say(
        told,
        f"{name}, row_function",
        ratios(
            lambda: theirs(next_of("theirs", ones)),
            lambda: answer(next_of("ours", given)),
            repeats,
            60,
        ),
    )


def say(told: dict, name: str, found: dict) -> None:
    told[name] = found
    print(
        f"{name:32} {found['theirs']:10.1f} µs {found['ours']:10.1f} µs   "
        f"{found['ratio']:6.1f} x ({found['lowest']:.1f} to {found['highest']:.1f}), "
        f"at least {AT_LEAST[name]}",
        flush=True,
    )


def lightgbm(train, y, test, repeats: int, told: dict) -> None:
    import lightgbm as lgb

    fit, rows = as_categories(train, train), as_categories(test, train)
    model = lgb.LGBMClassifier(n_estimators=TREES, num_leaves=31, verbose=-1, n_jobs=1).fit(fit, y)
    machine = dm.convert(model)
    measure(
        "lightgbm",
        machine,
        rows,
        lambda X: model.predict_proba(X, num_threads=1),
        repeats,
        told,
    )
    codes = as_codes(rows)
    booster = model.booster_
    theirs = lambda: booster.predict(codes, raw_score=True, num_threads=1)  # noqa: E731
    same("lightgbm, codes", machine.margin(codes)[:, 0], theirs())
    say(
        told,
        "lightgbm, coded array",
        ratios(theirs, lambda: machine.margin(codes, n_threads=1), repeats, 2),
    )


def xgboost(train, y, test, repeats: int, told: dict) -> None:
    import xgboost as xgb

    fit, rows = as_categories(train, train), as_categories(test, train)
    model = xgb.XGBClassifier(
        n_estimators=TREES,
        max_depth=6,
        enable_categorical=True,
        max_cat_to_onehot=1,
        tree_method="hist",
        n_jobs=1,
    ).fit(fit, y)
    machine = dm.convert(model)
    measure("xgboost", machine, rows, model.predict_proba, repeats, told)
    codes = as_codes(rows).astype(np.float32)
    booster = model.get_booster()
    booster.feature_types = None
    theirs = lambda: booster.inplace_predict(  # noqa: E731
        codes, predict_type="margin", validate_features=False
    )
    same("xgboost, codes", machine.margin(codes)[:, 0], theirs())
    say(
        told,
        "xgboost, coded array",
        ratios(theirs, lambda: machine.margin(codes, n_threads=1), repeats, 2),
    )


def catboost(train, y, test, repeats: int, told: dict) -> None:
    import catboost as cat

    def text(table):
        made = table.copy()
        for name in LABELS:
            made[name] = made[name].astype(object).where(made[name].notna(), "none")
        return made

    fit, rows = text(train), text(test)
    model = cat.CatBoostClassifier(
        iterations=TREES,
        depth=6,
        one_hot_max_size=255,
        cat_features=list(LABELS),
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ).fit(fit, y)
    measure(
        "catboost",
        dm.convert(model),
        rows,
        lambda X: model.predict_proba(X, thread_count=1),
        repeats,
        told,
    )


LIBRARIES = {"lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of adult-train.csv.gz, adult-test.csv.gz")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", default=",".join(LIBRARIES))
    args = parser.parse_args()
    train, y = census(args.data, "train")
    test, _ = census(args.data, "test")
    told: dict[str, dict[str, float]] = {}
    for name in args.only.split(","):
        LIBRARIES[name](train, y, test, args.repeats, told)
    path = RESULTS / "tables.json"
    before = json.loads(path.read_text())["workloads"] if path.exists() else {}
    about = {"engine": dm.engine_info()["target"], "trees": TREES, "rows": len(test)}
    path.write_text(json.dumps({**about, "workloads": before | told}, indent=1) + "\n")
    missed = [name for name, found in told.items() if found["ratio"] < AT_LEAST[name]]
    if missed:
        raise SystemExit(f"below what must be reached: {', '.join(missed)}")


if __name__ == "__main__":
    main()
