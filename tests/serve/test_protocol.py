"""The server speaks the Open Inference Protocol, with the machine's own answers."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from serve.conftest import Client, tensor
from stream.conftest import LABELS, NAMES, rows

import decision_machines as dm
from decision_machines.machine.soft import soft_trees
from decision_machines.serve import App, Models


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
        *("predict", "predict_proba", "margin", "leaves", "shap_values", "shap_base")
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
        ("no JSON", 400, "not JSON"),
        ("[" * 100000, 400, "not JSON"),
        ("[]", 400, "not an object"),
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
        ({"inputs": [tensor("X", [[1.0] * 4])], "outputs": ["x"]}, 400, "outputs"),
        ({"inputs": [tensor("p", [1.0])]}, 400, "missing 'q'"),
        ({"inputs": [tensor("p", [1.0]), tensor("p", [1.0])]}, 400, "two inputs"),
        (
            {"inputs": [{"name": "X", "shape": [-1, 4], "datatype": "FP64", "data": [1.0]}]},
            400,
            "sizes from 0",
        ),
        (
            {"inputs": [{"name": "X", "shape": [1, 4], "datatype": "FP64", "data": ["1"] * 4}]},
            400,
            "not a number",
        ),
        ({"inputs": [tensor("X", np.zeros((5001, 4)))]}, 413, "at most 5000"),
        ("x" * (1 << 20) + "y", 413, "bytes"),
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
    assert client.get("/v2/nothing").status_code == 404
    assert client.post("/v2/models/forest").status_code == 405


def test_shapley_values_come_by_parameter_or_by_name(client, machine):
    X = rows(3)[NAMES].to_numpy()
    body = {"inputs": [tensor("X", X)], "parameters": {"shap": True}}
    for given in (X, X[:1]):
        body["inputs"] = [tensor("X", given)]
        found = client.post("/v2/models/forest/infer", json.dumps(body)).json()["outputs"]
        by_name = {one["name"]: np.array(one["data"]).reshape(one["shape"]) for one in found}
        assert list(by_name) == ["predict", "shap_values", "shap_base"]
        assert np.array_equal(by_name["shap_values"], machine.shap_values(given))
        assert np.array_equal(by_name["shap_base"], machine.shap_base())
    refused = client.post("/v2/models/tree/infer", json.dumps(body))
    assert refused.status_code == 400
    assert "covers" in refused.json()["error"]


def test_rows_that_arrive_together_are_answered_as_alone(client, machine):
    X = rows(40)[NAMES].to_numpy(copy=True)
    X[5, 1] = np.nan
    wanted = [{"name": "predict"}, {"name": "margin"}]
    bodies = [
        json.dumps({"inputs": [tensor("X", X[i : i + 1])], "outputs": wanted}) for i in range(40)
    ]
    bodies[7] = bodies[7].replace("forest", "")[:-20]  # not JSON any more

    async def together():
        asked = (client.ask("POST", "/v2/models/forest/infer", body) for body in bodies)
        return await asyncio.gather(*asked)

    for i, found in enumerate(asyncio.run(together())):
        if i == 7:
            assert found.status_code == 400
            continue
        label, margin = found.json()["outputs"]
        assert label["data"] == machine.predict(X[i : i + 1]).tolist()
        assert margin["data"] == machine.margin(X[i : i + 1])[0].tolist()
        assert margin["shape"] == [1, 3]
    text = client.get("/metrics").text
    assert 'dm_batch_rows_bucket{model="forest",le="32"}' in text
    assert 'dm_batch_rows_bucket{model="forest",le="+Inf"} ' in text


def test_one_refused_row_of_a_batch_spoils_no_other(machine):
    strict = dm.convert(_forest_that_takes_no_gaps())
    client = Client(App(Models.of({"strict": strict})))
    X = [[1.0, 2.0], [None, 1.0], [0.0, 0.0]]
    bodies = [
        json.dumps({"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP64", "data": row}]})
        for row in X
    ]

    async def together():
        asked = (client.ask("POST", "/v2/models/strict/infer", body) for body in bodies)
        return await asyncio.gather(*asked)

    alone = [client.post("/v2/models/strict/infer", body) for body in bodies]
    found = asyncio.run(together())
    assert [one.status_code for one in found] == [one.status_code for one in alone]
    assert [one.json() for one in found] == [one.json() for one in alone]


def _forest_that_takes_no_gaps():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    X = np.random.default_rng(0).standard_normal((50, 2))
    return make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)).fit(X, X[:, 0])


def test_bodies_in_parts_are_read_and_late_ones_are_given_up(client, machine):
    body = json.dumps({"inputs": [tensor("X", rows(1)[NAMES].to_numpy())]}).encode()
    parts = [body[i : i + 7] for i in range(0, len(body), 7)]
    assert client.post("/v2/models/forest/infer", parts).status_code == 200
    late = client.post("/v2/models/forest/infer", ["..."])
    assert late.status_code == 408
    assert late.headers[b"connection"] == b"close"
    declared = client.post("/v2/models/forest/infer", b"", [(b"content-length", b"99999999999")])
    assert declared.status_code == 413
    assert client.post("/v2/models/forest/infer", ["x" * 700_000] * 9).status_code == 413


def test_metrics_count_what_was_asked(machine):
    client = Client(App(Models.of({'a"b': machine})))
    body = json.dumps({"inputs": [tensor("X", rows(3)[NAMES].to_numpy())]})
    client.post('/v2/models/a"b/infer', body)
    client.post('/v2/models/a"b/infer', "{")
    text = client.get("/metrics").text
    assert 'dm_requests_total{model="a\\"b",status="200"} 1' in text
    assert 'dm_requests_total{model="a\\"b",status="400"} 1' in text
    assert 'dm_rows_total{model="a\\"b"} 3' in text
    assert "dm_requests_running 0" in text
    assert 'dm_request_seconds_count{model="a\\"b"} 2' in text


def test_soft_trees_are_served():
    soft = soft_trees(dm.figure_one(), np.full(5, 2.0))
    client = Client(App(Models.of({"soft": soft})))
    X = [[2.0, 1, 2, 2], [0.5, 3, 1, 4]]
    for given in (X, X[:1]):
        found = infer(client, [tensor("X", given)], ["predict", "margin"], "/v2/models/soft/infer")
        answers = {output["name"]: output["data"] for output in found["outputs"]}
        assert answers["predict"] == soft.predict(given).tolist()
        assert answers["margin"] == soft.margin(given).ravel().tolist()
    outputs = client.get("/v2/models/soft").json()["outputs"]
    assert [output["name"] for output in outputs] == ["predict", "margin"]
