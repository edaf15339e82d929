"""What `dm serve` must hold: huge, malformed and ambiguous requests, and stops under load."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import signal
import socket
import threading
import time
from collections import Counter

import numpy as np
import pytest
from serve.conftest import Client, tensor
from serve.test_server import get, infer, wait_for
from stream.conftest import NAMES, rows

import decision_machines as dm
from decision_machines.serve import App, Models

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("httptools", reason="httptools is not installed")

PATH = "/v2/models/forest/infer"
HEAD = f"POST {PATH} HTTP/1.1\r\nhost: x\r\n"


@pytest.fixture(scope="module")
def path(machine, tmp_path_factory):
    found = tmp_path_factory.mktemp("models") / "forest.dm"
    machine.save(found)
    return found


def all_of(connection):
    """What a server sends until it closes the connection."""
    found = b""
    while part := connection.recv(1 << 16):
        found += part
    return found


def whole(body, close=True):
    """A request as bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    ends = "connection: close\r\n" if close else ""
    return f"{HEAD}{ends}content-length: {len(content)}\r\n\r\n".encode() + content


def told(text, name, **labels):
    """A number of the metrics."""
    listed = ",".join(f'{key}="{value}"' for key, value in labels.items())
    found = re.search(
        rf"^{re.escape(name + (f'{{{listed}}}' if labels else ''))} (\S+)$", text, re.M
    )
    return float(found[1]) if found else 0.0


ROW = {"name": "X", "shape": [1, 4], "datatype": "FP64", "data": [1.0, 2.0, 0.5, 1.0]}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"inputs": [], "inputs": []}', "'inputs' twice"),
        (b'{"inputs": [{"name": "X", "name": "Y"}]}', "'name' twice"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "not JSON"),
        (b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
        (b'{"inputs": [', "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"{} {}", "not JSON"),
        (b"", "not JSON"),
        (json.dumps({"inputs": [ROW], "id": float("nan")}).encode(), "id is nan"),
        (json.dumps({"inputs": [ROW], "id": {"a": 1}}).encode(), "id is"),
        (json.dumps({"inputs": [{**ROW, "data": [[1.0], [2.0, 3.0]]}]}).encode(), "does not hold"),
        (json.dumps({"inputs": [{**ROW, "shape": [2**40, 2**40]}]}).encode(), "does not hold"),
        (json.dumps({"inputs": [{**ROW, "datatype": ["FP64"]}]}).encode(), "datatype"),
        (json.dumps({"inputs": [{**ROW, "datatype": "INT8", "data": [300] * 4}]}).encode(), "hold"),
        (json.dumps({"inputs": [{**ROW, "datatype": "BYTES", "data": [{}] * 4}]}).encode(), "hold"),
        (
            b'{"inputs": [{"name": "X", "shape": [1], "datatype": "BYTES", "data": ["\\ud800"]}]}',
            "hold",
        ),
        (json.dumps({"inputs": [{**ROW, "data": [10**400] * 4}]}).encode(), "What to do"),
    ],
)
def test_ambiguous_and_malformed_bodies_are_refused_in_words(client, body, says):
    found = client.post(PATH, body)
    assert found.status_code == 400
    assert says in found.json()["error"]


def test_nan_and_infinities_of_a_body_are_numbers_and_of_an_answer_null(client, machine):
    X = np.array([[np.nan, np.inf, -np.inf, 1e300]])
    body = json.dumps({"inputs": [{**ROW, "data": X[0].tolist()}], "outputs": [{"name": "margin"}]})
    assert "NaN" in body
    found = client.post(PATH, body).json()["outputs"][0]["data"]
    assert found == machine.margin(X)[0].tolist()
    infinite = dm.figure_one()
    infinite = Client(App(Models.of({"forest": _with_leaf(infinite, np.inf)})))
    found = infinite.post(PATH, json.dumps({"inputs": [ROW], "outputs": [{"name": "margin"}]}))
    assert "Infinity" not in found.text
    assert found.json()["outputs"][0]["data"] == [None]


def _with_leaf(machine, value):
    from dataclasses import replace

    return replace(machine, V=np.full_like(machine.V, value))


def test_a_number_that_is_too_large_spoils_no_other_row_of_its_batch(client, machine):
    bodies = [json.dumps({"inputs": [{**ROW, "data": [v] * 4}]}) for v in (1.0, 10**400, 2.0)]

    async def together():
        asked = (client.ask("POST", PATH, body) for body in bodies)
        return await asyncio.wait_for(asyncio.gather(*asked), 20)

    found = asyncio.run(together())
    assert [one.status_code for one in found] == [200, 400, 200]
    assert found[2].json()["outputs"][0]["data"] == machine.predict([[2.0] * 4]).tolist()


def test_columns_that_mix_kinds_are_refused_and_gaps_are_not(machine):
    client = Client(App(Models.of({"forest": machine})))
    frame = rows(2)
    columns = {name: frame[name].tolist() for name in NAMES}

    def asked(**changed):
        inputs = [
            {"name": name, "shape": [2], "datatype": "BYTES", "data": values}
            for name, values in {**columns, **changed}.items()
        ]
        return client.post(PATH, json.dumps({"inputs": inputs}))

    found = asked(p=["red", 1.0])
    assert found.status_code == 400
    assert "'p' is not a column of one kind" in found.json()["error"]
    assert asked(p=[None, None]).status_code == 200


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "sklearn", "catboost"])
def test_tables_of_labels_are_answered_one_row_as_many(library):
    from library_models import models, table

    (model,) = (
        model for name, model in models(library).items() if "table" in name or "labels" in name
    )
    machine, frame = dm.convert(model), table()[0].head(20)
    if library == "catboost":
        frame = frame.assign(color=frame["color"].astype(str), size=frame["size"].astype(str))
    client = Client(App(Models.of({"forest": machine})))
    wanted = machine.margin(frame)[:, 0].tolist()

    def margins(some):
        inputs = [
            {
                "name": name,
                "shape": [len(some)],
                "datatype": "BYTES" if isinstance(some[name].iloc[0], str) else "FP64",
                "data": some[name].tolist(),
            }
            for name in frame.columns
        ]
        body = {"inputs": inputs, "outputs": [{"name": "margin"}]}
        found = client.post(PATH, json.dumps(body))
        assert found.status_code == 200, found.text
        return found.json()["outputs"][0]["data"]

    assert margins(frame) == wanted
    assert [margins(frame[i : i + 1])[0] for i in range(len(frame))] == wanted


def test_every_kind_of_machine_is_served():
    from library_models import LIBRARIES, models

    for library in LIBRARIES:
        for name, model in models(library).items():
            machine = dm.convert(model)
            coded = dm.convert(model) if machine.columns.names is None else None
            client = Client(App(Models.of({"forest": machine})))
            told = client.get("/v2/models/forest").json()
            assert "margin" in [output["name"] for output in told["outputs"]], (library, name)
            if coded is None:
                continue
            X = np.zeros((2, machine.n_features))
            body = {"inputs": [tensor("X", X)], "outputs": [{"name": "margin"}]}
            found = client.post(PATH, json.dumps(body)).json()["outputs"][0]["data"]
            assert found == machine.margin(X).reshape(-1).tolist(), (library, name)
            body["parameters"] = {"shap": True}
            found = client.post(PATH, json.dumps(body))
            if found.status_code == 400:
                assert "no output 'shap_values' (" in found.json()["error"], (library, name)


def test_chunked_bodies_are_read_and_too_large_ones_are_answered_before_the_end(
    start, path, machine
):
    server = start(path, "--max-body", "0.05", "--patience", "1")
    X = rows(1)[NAMES].to_numpy()
    content = json.dumps({"inputs": [tensor("X", X)]}).encode()
    chunks = [content[i : i + 5] for i in range(0, len(content), 5)]
    sent = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"
    head = f"{HEAD}connection: close\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as one:
        one.sendall(head + sent)
        answer = json.loads(all_of(one).split(b"\r\n\r\n")[1])
    assert answer["outputs"][0]["data"] == machine.predict(X).tolist()
    endless = b"%x\r\n%s\r\n" % (10_000, b"x" * 10_000)
    for begin, more in (
        (head, [endless] * 20),
        (f"{HEAD}content-length: 300000\r\n\r\n".encode(), [b"x" * 10_000] * 30),
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as one:
            one.sendall(begin)
            for part in more:  # the server must not cut off who is still sending
                one.sendall(part)
            found = all_of(one)
        assert found.startswith(b"HTTP/1.1 413"), found
        assert b"at most" in found or b"the most taken" in found
    for wrong in (b"zz\r\nrubbish", b"-5\r\n", b"ffffffffffffffffff\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as one:
            one.sendall(head + wrong)
            assert all_of(one).startswith((b"HTTP/1.1 400", b"HTTP/1.1 408", b"HTTP/1.1 413"))
    assert infer(server.port, X)[0] == 200
    assert server.stop() == 0


def test_a_head_without_end_is_refused_by_its_size(start, path):
    server = start(path)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as one:
        one.sendall(HEAD.encode())
        found = b""
        try:
            for i in range(100_000):
                one.sendall(b"x-%d: %s\r\n" % (i, b"y" * 1000))
            found = all_of(one)
        except (ConnectionResetError, BrokenPipeError):
            assert i < 90_000, "the whole head was taken"
        else:
            assert b"400" in found
    # A large body and the head of the next request may come in one piece.
    body = {"inputs": [tensor("X", np.zeros((5000, 4)))]}
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as one:
        one.sendall(whole(body, close=False) + whole({"inputs": [ROW]}))
        assert all_of(one).count(b"HTTP/1.1 200") == 2
    assert server.stop() == 0


class Load:
    """Clients that ask until they are told to stop, or cannot any more."""

    def __init__(self, port, n=8):
        self.port, self.statuses, self.broken, self.running = port, Counter(), [], True
        self.answers = set()
        self.threads = [threading.Thread(target=self._ask) for _ in range(n)]
        for thread in self.threads:
            thread.start()

    def _ask(self):
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = json.dumps({"inputs": [ROW]})
        while self.running:
            try:
                made.request("POST", PATH, body)
                reply = made.getresponse()
                content = reply.read()
            except ConnectionRefusedError:
                return
            except http.client.IncompleteRead as error:
                self.broken.append(repr(error))
                return
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                self.broken.append(repr(error))
                return
            self.statuses[reply.status] += 1
            self.answers.add(content.split(b'"outputs"')[1])

    def end(self):
        self.running = False
        for thread in self.threads:
            thread.join()


def test_a_broken_file_under_load_costs_no_answer_and_the_metrics_are_true(
    start, path, machine, tmp_path
):
    mine = tmp_path / "forest.dm"
    mine.write_bytes(path.read_bytes())
    server = start(mine, "--watch", "0.02")
    load = Load(server.port)
    for content in (b"", b"rubbish", mine.read_bytes()[:500], b"{" * 5000):
        mine.write_bytes(content)
        time.sleep(0.1)
    wait_for(lambda: told(get(server.port, "/metrics"), "dm_model_stale", model="forest") == 1)
    refused = 0
    for body in (b"{", json.dumps({"inputs": [{**ROW, "shape": [3]}]}).encode()) * 3:
        made = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        made.request("POST", PATH, body)
        refused += made.getresponse().status == 400
        made.close()
    load.end()
    assert refused == 6
    assert not load.broken
    assert [*load.statuses] == [200]
    assert len(load.answers) == 1  # of the model that was read first
    text, n = get(server.port, "/metrics"), load.statuses[200]
    assert told(text, "dm_requests_total", model="forest", status="200") == n
    assert told(text, "dm_requests_total", model="forest", status="400") == 6
    assert told(text, "dm_rows_total", model="forest") == n
    assert told(text, "dm_request_seconds_count", model="forest") == n + 6
    assert told(text, "dm_batch_rows_sum", model="forest") == n
    assert told(text, "dm_requests_running") == 0
    assert told(text, "dm_model_reloads_total", model="forest") == 0
    assert told(text, "dm_model_reload_failures_total", model="forest") >= 1
    assert server.stop() == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_under_load_breaks_no_request(start, path, how):
    for _ in range(3):
        server = start(path)
        load = Load(server.port)
        wait_for(lambda load=load: load.statuses[200] > 200)
        assert server.stop(how) == 0
        load.end()
        assert not load.broken
        assert [*load.statuses] == [200]
        assert "Traceback" not in "".join(server.lines)
