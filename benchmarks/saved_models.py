"""Models of several shapes, trained once and kept as files that their rivals read."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np


def data(n_rows: int, seed: int, features: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Rows of float32 features, and a target with interactions, bends and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, features), dtype=np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + np.abs(X[:, 3]) + 0.3 * X[:, 4:20].sum(axis=1)
    y += 0.5 * X[:, 20] * (X[:, 21] > 0) + 0.5 * rng.standard_normal(n_rows)
    return X, y


def classes_of(y: np.ndarray, n: int) -> np.ndarray:
    """As many classes, each of as many rows, by the order of the targets."""
    return np.argsort(np.argsort(y)) * n // len(y)


def keep(folder: Path, model: Any, X: Any, y: np.ndarray, **size: int) -> None:
    """Write a model as its library does, and as ONNX where a converter can."""
    folder.mkdir(parents=True)
    kind = type(model).__module__.split(".")[0]
    if kind == "lightgbm":
        model.save_model(folder / "model.txt")
    elif kind == "xgboost":
        model.save_model(folder / "model.ubj")
    elif kind == "catboost":
        model.save_model(str(folder / "model.cbm"))
    else:
        (folder / "model.pkl").write_bytes(pickle.dumps(model))
    if isinstance(X, np.ndarray):
        np.savez(folder / "trained.npz", X=X, y=y)
        _keep_onnx(folder, model, kind, X.shape[1])
    (folder / "size.json").write_text(json.dumps(size))


def _keep_onnx(folder: Path, model: Any, kind: str, width: int) -> None:
    from onnxmltools.convert.common.data_types import FloatTensorType

    given = [("X", FloatTensorType([None, width]))]
    try:
        if kind == "sklearn":
            from skl2onnx import to_onnx

            options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
            graph = to_onnx(model, np.zeros((1, width), np.float32), options=options)
        elif kind == "lightgbm":
            from onnxmltools import convert_lightgbm

            graph = convert_lightgbm(model, initial_types=given, zipmap=False)
        elif kind == "xgboost":
            from onnxmltools import convert_xgboost

            graph = convert_xgboost(model, initial_types=given)
        else:
            return
    except Exception as error:  # then ONNX Runtime takes no part, and says that the file is absent
        print(f"  {folder.name} is not written as ONNX: {type(error).__name__}: {str(error)[:80]}")
        return
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
