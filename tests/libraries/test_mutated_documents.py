"""A document with a field added, lost or retyped is refused, or means what it meant before."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from library_models import models
from unknown_fields import at

import decision_machines as dm
from decision_machines.libraries.own.safetensors import read_container
from decision_machines.libraries.own.write import container, dm_bytes

OPTIONAL = {
    "weight_drop": "without it, a model saved by XGBoost 3.3 and newer is one without DART",
    "scale_and_bias": "without it, CatBoost takes the scale 1 and the bias 0",
    "scikit_learn": "without it, a file is read as a Booster's",
    "best_iteration": "without it, all rounds are used",
}
"""Fields that a library itself does without, in another meaning: they are not taken away."""
UNCOUNTED = ("oblivious_trees",)
"""CatBoost's list of trees, whose length is told nowhere else: one less is another model."""
VALUES = [None, True, 0, 1, -1, 3, 0.5, 1e300, "", "1", "gate", [], [1], [[]], {}, {"gate": 1}]


@functools.cache
def documents():
    """(name, document, its places, how it is written, rows, margins) of real models."""
    found = []
    rng = np.random.default_rng(0)
    for name in ("XGBClassifier, 3", "XGBRegressor, dart", "XGBRegressor, vector leaves"):
        booster = models("xgboost")[name].get_booster()
        found.append((name, json.loads(bytes(booster.save_raw("json"))), _plain))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("CatBoostClassifier, 3", "CatBoostRegressor"):
            path = Path(folder) / "model.json"
            models("catboost")[name].save_model(str(path), format="json")
            document = json.loads(path.read_text())
            document["model_info"] = {
                key: document["model_info"][key]
                for key in ("class_params", "params")
                if key in document["model_info"]
            }
            found.append((name, document, _plain))
    for name in ("RandomForestClassifier", "HistGradientBoosting"):
        metadata, arrays = read_container(dm_bytes(dm.convert(models("sklearn")[name])), "testing")
        write = functools.partial(_own, metadata, arrays)
        found.append((name, json.loads(metadata["machine"]), write))
    made = []
    for name, document, write in found:
        machine = dm.convert(write(document))
        rows = rng.normal(size=(60, machine.n_features)) * 50
        rows[rng.random(rows.shape) < 0.1] = np.nan
        where = list(places(document))
        made.append((name, json.dumps(document), where, write, rows, machine.margin(rows)))
    return made


def _plain(document):
    return json.dumps(document).encode()


def _own(metadata, arrays, document):
    changed = {**metadata, "machine": json.dumps(document)}
    return b"".join(container(arrays, changed))


def places(document, path=()):
    """Every (path, key) of a document; of a list, its first two entries and its last."""
    if isinstance(document, dict):
        for key in document:
            yield path, key
            yield from places(document[key], (*path, key))
    elif isinstance(document, list):
        for i in sorted({0, 1, len(document) - 1} & set(range(len(document)))):
            yield path, i
            yield from places(document[i], (*path, i))


@settings(max_examples=150)
@given(data=st.data())
def test_a_changed_field_is_refused_or_changes_nothing(data):
    which = data.draw(st.integers(0, len(documents()) - 1))
    _, document, where, write, rows, margins = documents()[which]
    path, key = where[data.draw(st.integers(0, len(where) - 1))]
    changed = json.loads(document)
    holder = at(changed, path)
    how = data.draw(st.sampled_from(["add", "lose", "retype"]))
    if how == "add" and isinstance(holder, dict):
        holder["gate"] = data.draw(st.sampled_from(VALUES))
    elif how == "lose" and key not in OPTIONAL and path != UNCOUNTED:
        del holder[key]
    elif how == "retype":
        old = holder[key]
        new = data.draw(st.sampled_from([v for v in VALUES if type(v) is not type(old)]))
        # A number may be written as text, and another number is another model.
        if isinstance(old, (int, float, str)) and isinstance(new, (int, float, str)):
            new = None
        if key == "oblivious_trees" and new is None:
            return  # what CatBoost writes of a model without trees
        holder[key] = new
    try:
        machine = dm.convert(write(changed))
    except (dm.ModelFormatError, dm.UnsupportedModelError):
        return
    assert np.array_equal(machine.margin(rows), margins)
