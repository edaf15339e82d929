"""Model files of every library that is installed here, with the library's own answers beside them.

    python tests/compatibility/make_files.py FOLDER

Run it in one environment and `check_files.py FOLDER` in the others: a file must be read alike with
every Python and every release.
"""

from __future__ import annotations

import importlib.metadata
import json
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import library_models

import decision_machines as dm

VERSIONS = (
    *("numpy", "scipy", "pandas", "scikit-learn", "skops", "xgboost", "xgboost-cpu"),
    *("lightgbm", "catboost", "onnx", "onnxruntime", "skl2onnx"),
)
N_ROWS = 40


def make(folder: Path, libraries: tuple[str, ...] = ("sklearn", "xgboost", "lightgbm", "catboost")):
    """Write files, rows and answers; gives how many files there are."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for library in libraries:
        fitted = library_models.models(library)
        for name, _, (X, _) in library_models.LIBRARIES[library]():
            stem = f"{library}-{name}".replace(", ", "-").replace(" ", "_").lower()
            rows = X[:N_ROWS]
            model = fitted[name]
            for path, oracle in save(library, model, folder / stem):
                machine = dm.load(path, trust=path.suffix == ".pkl")
                answers = answers_of(oracle, rows)
                # Until 3.1 XGBoost does not keep the labels of categories: the machine takes codes.
                given = codes_of(rows) if library == "xgboost" and not labels(machine) else rows
                answers |= {"margin": machine.margin(given), "apply": machine.apply(given)}
                np.savez(folder / f"{path.name}.npz", **answers)
                entries.append({"file": path.name, "rows": rows_as_json(given)})
    about = {
        "python": sys.version.split()[0],
        "versions": {n: v for n in VERSIONS if (v := version_of(n))},
        "exponentials": exponentials(),
        "files": entries,
    }
    (folder / "files.json").write_text(json.dumps(about, default=int))
    return len(entries)


def save(library, model, stem):
    """The files of a model, each with whoever answers for it."""
    if library == "sklearn":
        import skops.io

        skops.io.dump(model, path := stem.with_name(stem.name + ".skops"))
        yield path, model
        (path := stem.with_name(stem.name + ".pkl")).write_bytes(pickle.dumps(model, protocol=4))
        yield path, model
        dm.convert(model).save(path := stem.with_name(stem.name + ".dm"))
        yield path, model
    elif library == "xgboost":
        for kind in (".json", ".ubj"):
            model.save_model(path := stem.with_name(stem.name + kind))
            yield path, model
    elif library == "lightgbm":
        model.booster_.save_model(path := stem.with_name(stem.name + ".txt"))
        yield path, model.booster_
    else:
        for kind in ("cbm", "json"):
            path = stem.with_name(f"{stem.name}.{kind}")
            model.save_model(str(path), format=kind)
            yield path, model


def answers_of(model, rows):
    found = {"predict": np.asarray(model.predict(rows))}
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(rows)
        if not isinstance(proba, list):
            found["predict_proba"] = np.asarray(proba)
    for name, array in found.items():
        if array.dtype == object:
            found[name] = array.astype(str)
    return found


def exponentials():
    """What this NumPy makes of some exponents, to tell whether another makes the same of them."""
    return np.exp(np.linspace(-20, 20, 4001)).tolist()


def labels(machine):
    return machine.columns.categories


def codes_of(rows):
    """The rows of a table as numbers, categories by their codes."""
    if not hasattr(rows, "columns"):
        return rows
    columns = [rows[name].cat.codes if hasattr(rows[name], "cat") else rows[name] for name in rows]
    return np.column_stack([np.asarray(column, np.float64) for column in columns])


def rows_as_json(rows):
    """Rows of a table by column, rows of an array as lists; JSON keeps floats to the bit."""
    if hasattr(rows, "columns"):
        return {
            name: {
                "values": rows[name].astype(object).tolist(),
                "categories": list(rows[name].cat.categories)
                if hasattr(rows[name], "cat")
                else None,
            }
            for name in rows.columns
        }
    return np.where(np.isnan(rows), None, rows.astype(object)).tolist()


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"{make(Path(sys.argv[1]))} files in {sys.argv[1]}")
