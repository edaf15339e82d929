"""Shapley values of a library in another Python: what `shapley.py --elsewhere` runs there.

    OTHER_PYTHON benchmarks/shapley_rival.py RIVAL MODEL ROWS.npy VALUES.npy REPEATS

RIVAL is one of xgboost, shapiq, woodelf and fasttreeshap; MODEL is a file of XGBoost's or
LightGBM's own. The values are saved; a line of JSON tells the version, the seconds of setting up
and those of every repeat. Needs NumPy and the rival alone.
"""

import json
import sys
import time

import numpy as np


def load(path):
    """The model by the library that wrote it."""
    if path.endswith(".json"):
        import xgboost

        return xgboost.Booster(model_file=path)
    import lightgbm

    return lightgbm.Booster(model_file=path)


def xgboost_values(model, rows):
    import xgboost

    model.set_param({"nthread": 1})
    yield xgboost.__version__
    while True:
        yield model.predict(xgboost.DMatrix(rows, nthread=1), pred_contribs=True)[:, :-1]


def shapiq_values(model, rows):
    import shapiq

    explainer = shapiq.TreeExplainer(model, max_order=1, index="SV")
    yield shapiq.__version__
    while True:
        found = np.zeros(rows.shape)
        for i, row in enumerate(rows):
            told = explainer.explain_function(row)
            for key, at in told.interaction_lookup.items():
                if len(key) == 1:
                    found[i, key[0]] = told.values[at]
        yield found


def fasttreeshap_values(model, rows):
    import fasttreeshap

    explainer = fasttreeshap.TreeExplainer(model, algorithm="v2", n_jobs=1)
    yield fasttreeshap.__version__
    while True:
        yield explainer.shap_values(rows, check_additivity=False)


def woodelf_values(model, rows):
    import importlib.metadata

    import pandas
    from woodelf import WoodelfExplainer

    explainer = WoodelfExplainer(model)
    yield importlib.metadata.version("woodelf_explainer")
    while True:
        yield np.asarray(explainer.shap_values(pandas.DataFrame(rows)))


RIVALS = {
    "xgboost": xgboost_values,
    "shapiq": shapiq_values,
    "fasttreeshap": fasttreeshap_values,
    "woodelf": woodelf_values,
}


def main():
    rival, model, rows, values, repeats = sys.argv[1:]
    rows = np.load(rows)
    start = time.perf_counter()
    calls = RIVALS[rival](load(model), rows)
    version = next(calls)
    setup, seconds = time.perf_counter() - start, []
    for _ in range(int(repeats) + 1):
        start = time.perf_counter()
        found = next(calls)
        seconds.append(time.perf_counter() - start)
    np.save(values, np.asarray(found, np.float64))
    print(json.dumps({"version": version, "setup": setup, "seconds": seconds[1:]}))


if __name__ == "__main__":
    main()
