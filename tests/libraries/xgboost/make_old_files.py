"""Files of old XGBoost releases, for the tests: `python make_old_files.py write|ask FOLDER`.

Run `write` with the release that is to write files (0.90, 1.0, 1.3 and 1.7 did), each in an
environment of its own, then `ask` with 1.7, the last line that reads them all: it adds what they
predict. Works on Python 3.8.
"""

import sys
from pathlib import Path

import numpy as np
import xgboost

KINDS = {
    "squarederror": {"objective": "reg:squarederror"},
    "logistic": {"objective": "binary:logistic", "base_score": 0.3},
    "softprob": {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2},
    "poisson-dart": {"objective": "count:poisson", "booster": "dart", "rate_drop": 0.5},
}


def rows():
    random = np.random.RandomState(0)
    X = random.normal(size=(60, 4)).astype(np.float32)
    X[random.uniform(size=X.shape) < 0.1] = np.nan
    return X


def write(folder):
    X = rows()
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2
    targets = {
        "squarederror": score,
        "logistic": score > 0.5,
        "softprob": np.digitize(score, [0.3, 1.0]),
        "poisson-dart": np.abs(score),
    }
    for kind, parameters in KINDS.items():
        data = xgboost.DMatrix(X, targets[kind].astype(float))
        booster = xgboost.train({"max_depth": 2, "nthread": 1, **parameters}, data, 3)
        booster.save_model(str(folder / f"{kind}-{xgboost.__version__}.model"))


def ask(folder):
    X = rows()
    found = {"X": X}
    for path in sorted(folder.glob("*.model")):
        booster = xgboost.Booster()
        booster.load_model(str(path))
        found[f"{path.stem} margin"] = booster.predict(xgboost.DMatrix(X), output_margin=True)
        found[f"{path.stem} response"] = booster.predict(xgboost.DMatrix(X))
    np.savez_compressed(str(folder / "answers.npz"), **found)


if __name__ == "__main__":
    {"write": write, "ask": ask}[sys.argv[1]](Path(sys.argv[2]))
