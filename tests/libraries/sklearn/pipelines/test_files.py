"""Whole pipelines and assemblies in files, and what `inspect` says of them."""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import decision_machines as dm
from decision_machines.machine.summary import summary

sys.path.insert(0, str(Path(__file__).parent))
from people import people

X, Y = people(120)
X = X[["income", "balance"]]
PIPE = make_pipeline(StandardScaler(), RandomForestClassifier(3, max_depth=3, random_state=0))
CALIBRATED = CalibratedClassifierCV(PIPE, cv=2).fit(X, Y)


def test_pipelines_and_calibrations_are_read_from_skops_and_trusted_pickles(tmp_path):
    pipe = PIPE.fit(X, Y)
    for model in (pipe, CALIBRATED):
        (tmp_path / "m.skops").write_bytes(skops.io.dumps(model))
        found = dm.load(tmp_path / "m.skops")
        assert np.array_equal(found.predict_proba(X), model.predict_proba(X))
        (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
        with pytest.raises(dm.InputError, match="trust"):
            dm.load(tmp_path / "m.pkl")
        found = dm.load(tmp_path / "m.pkl", trust=True)
        assert np.array_equal(found.predict_proba(X), model.predict_proba(X))


def test_an_assembly_says_what_it_is_and_sends_machine_questions_to_its_members():
    assembly = dm.convert(CALIBRATED)
    said = summary(assembly)
    assert said["rule"] == "calibrated"
    assert said["machines"] == 2
    json.dumps(said)
    with pytest.raises(dm.UnsupportedModelError, match="not one machine"):
        assembly.margin(X)
    with pytest.raises(dm.UnsupportedModelError, match="not one machine"):
        _ = assembly.columns
    again = pickle.loads(pickle.dumps(assembly))
    assert np.array_equal(again.predict(X), CALIBRATED.predict(X))


def test_an_assembly_is_certified_member_by_member():
    assembly = dm.convert(CALIBRATED)
    assert dm.certify(assembly, CALIBRATED, X)
