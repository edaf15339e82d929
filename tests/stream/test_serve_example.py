"""The serving example speaks the Open Inference Protocol, with the machine's own answers."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from stream.conftest import LABELS, NAMES, rows

import decision_machines as dm

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def app_module():
    spec = importlib.util.spec_from_file_location("serve_app", ROOT / "examples/serve/app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def client(app_module, machine):
    from fastapi.testclient import TestClient

    with TestClient(app_module.create_app({"forest": machine, "tree": dm.figure_one()})) as client:
        yield client


def tensor(name, values, datatype="FP64"):
    values = np.asarray(values)
    data = [None if v != v else v for v in values.reshape(-1).tolist()]
    return {"name": name, "shape": list(values.shape), "datatype": datatype, "data": data}


def infer(client, inputs, outputs=None, path="/v2/models/forest/infer"):
    body = {"id": "7", "inputs": inputs}
    if outputs:
        body["outputs"] = [{"name": name} for name in outputs]
    found = client.post(path, content=json.dumps(body))
    assert found.status_code == 200, found.text
    return found.json()


def test_health_and_metadata_paths_answer(client):
    assert client.get("/v2").json()["name"] == "decision-machines"
    for path in ("health/live", "health/ready", "models/forest/ready"):
        assert client.get(f"/v2/{path}").status_code == 200
    found = client.get("/v2/models/forest").json()
    assert found["name"] == "forest"
    assert found["inputs"] == [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}]
    assert [output["name"] for output in found["outputs"]] == [
        *("predict", "predict_proba", "margin", "leaves")
    ]
    assert found["outputs"][0]["datatype"] == "BYTES"
    assert found["parameters"] == {"features": NAMES, "classes": LABELS.tolist()}
    assert client.get("/v2/models/forest/versions/1").json() == found
    outputs = client.get("/v2/models/tree").json()["outputs"]
    assert "predict_proba" not in [output["name"] for output in outputs]


def test_answers_are_the_machines_to_the_bit(client, machine):
    X = rows(30)[NAMES].to_numpy(copy=True)
    X[3, 2] = np.nan
    found = infer(client, [tensor("X", X)], ["predict", "predict_proba", "margin", "leaves"])
    assert (found["model_name"], found["id"]) == ("forest", "7")
    answers = {
        output["name"]: np.array(output["data"]).reshape(output["shape"])
        for output in found["outputs"]
    }
    assert np.array_equal(answers["predict"], machine.predict(X))
    assert np.array_equal(answers["predict_proba"], machine.predict_proba(X))
    assert np.array_equal(answers["margin"], machine.margin(X))
    assert np.array_equal(answers["leaves"], machine.apply(X))


def test_a_tensor_for_each_feature_is_matched_by_name(client, machine):
    frame = rows(10)
    inputs = [tensor(name, frame[name]) for name in reversed(NAMES)]
    found = infer(client, inputs, path="/v2/models/forest/versions/1/infer")
    assert found["outputs"][0]["data"] == machine.predict(frame[NAMES]).tolist()


@pytest.mark.parametrize("datatype", ["INT64", "INT8", "UINT16", "FP32", "FP64"])
def test_null_is_missing_in_tensors_of_any_numbers(client, machine, datatype):
    data = [[1, None, 0, 2], [None, None, 1, 0]]
    X = np.array(data, float)
    whole = {"name": "X", "shape": [2, 4], "datatype": datatype, "data": [*data[0], *data[1]]}
    for given in (whole, {**whole, "data": data}):
        found = infer(client, [given], ["margin"])
        assert found["outputs"][0]["data"] == machine.margin(X).reshape(-1).tolist()
    columns = [
        {"name": name, "shape": [2], "datatype": datatype, "data": [row[i] for row in data]}
        for i, name in enumerate(NAMES)
    ]
    found = infer(client, columns, ["margin"])
    assert found["outputs"][0]["data"] == machine.margin(X).reshape(-1).tolist()


def test_one_row_by_names_is_answered_as_a_table_of_it(client, machine):
    frame = rows(1)
    inputs = [tensor(name, frame[name]) for name in reversed(NAMES)]
    outputs = ["predict", "predict_proba", "margin", "leaves"]
    found = infer(client, inputs, outputs)["outputs"]
    table = frame[NAMES]
    wanted = [
        machine.predict(table),
        machine.predict_proba(table),
        machine.margin(table),
        machine.apply(table),
    ]
    for one, expected in zip(found, wanted, strict=True):
        assert one["shape"] == list(expected.shape)
        assert one["data"] == expected.reshape(-1).tolist()


def test_many_rows_are_answered_too(client, machine):
    X = rows(2000)[NAMES].to_numpy()
    found = infer(client, [tensor("X", X)])
    assert found["outputs"][0]["data"] == machine.predict(X).tolist()


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ("no JSON", 400, "no JSON"),
        ("[]", 400, "no list of inputs"),
        ({"inputs": []}, 400, "no list of inputs"),
        ({"inputs": [{"name": "X"}]}, 400, "lacks 'shape'"),
        ({"inputs": [tensor("X", [[1.0, 2.0]])]}, 400, "the machine reads 4"),
        ({"inputs": [tensor("X", [[1.0] * 4], "FP8")]}, 400, "datatype"),
        (
            {"inputs": [{"name": "X", "shape": [2, 4], "datatype": "FP64", "data": [1.0]}]},
            400,
            "does not hold",
        ),
        (
            {"inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP64", "data": list("abcd")}]},
            400,
            "does not hold",
        ),
        ({"inputs": [tensor("X", [[1.5] * 4], "INT32")]}, 400, "does not hold"),
        ({"inputs": [tensor("X", [[2] * 4], "BOOL")]}, 400, "does not hold"),
        ({"inputs": [tensor("X", [[1.0] * 4])], "outputs": [{"name": "x"}]}, 400, "no output"),
        ({"inputs": [tensor("p", [1.0])]}, 400, "missing 'q'"),
        ({"inputs": [tensor("p", [1.0]), tensor("q", [1.0, 2.0])]}, 400, "different numbers"),
    ],
)
def test_wrong_requests_are_refused_in_words(client, body, status, says):
    content = body if isinstance(body, str) else json.dumps(body)
    found = client.post("/v2/models/forest/infer", content=content)
    assert found.status_code == status
    assert says in found.json()["error"]


def test_unknown_models_and_versions_are_not_found(client):
    for path in ("nothing", "nothing/ready", "forest/versions/2"):
        assert client.get(f"/v2/models/{path}").status_code == 404
    assert client.post("/v2/models/nothing/infer", content="{}").status_code == 404
