"""`dm serve` as a process: load, slow and hostile clients, files replaced, clean stops."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time

import numpy as np
import pytest
from serve.conftest import tensor
from stream.conftest import NAMES, rows

import decision_machines as dm
from decision_machines.cli.serve import serve

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("httptools", reason="httptools is not installed")


@pytest.fixture
def path(machine, tmp_path):
    found = tmp_path / "forest.dm"
    machine.save(found)
    return found


def infer(port, X, connection=None, name="forest", outputs=("predict", "margin")):
    body = {"inputs": [tensor("X", X)], "outputs": [{"name": output} for output in outputs]}
    made = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    made.request("POST", f"/v2/models/{name}/infer", json.dumps(body))
    reply = made.getresponse()
    content = json.loads(reply.read())
    if connection is None:
        made.close()
    return reply.status, content


def get(port, path):
    made = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    made.request("GET", path)
    content = made.getresponse().read().decode()
    made.close()
    return content


def wait_for(happened, seconds=20.0):
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


def test_many_connections_get_their_own_answers_beside_slow_ones(start, path, machine):
    server = start(path, "--patience", "1")
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for i, one in enumerate(slow):
        one.sendall(
            b"POST /v2/mod"
            if i % 2
            else b"POST /v2/models/forest/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{"
        )
    X = rows(160)[NAMES].to_numpy()
    wanted, wrong = machine.margin(X), []

    def ask(k):
        made = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        for i in range(k, len(X), 8):
            status, found = infer(server.port, X[i : i + 1], made)
            if status != 200 or found["outputs"][1]["data"] != wanted[i].tolist():
                wrong.append((i, found))

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert b"408" in slow[0].recv(1000)  # a body that did not come
    assert 'status="408"' in get(server.port, "/metrics")
    for one in slow:
        one.close()
    assert server.stop() == 0


def test_heads_that_never_end_and_rubbish_are_given_up(start, path):
    server = start(path, "--max-body", "0.01")
    for rubbish in (
        b"\x00\xff\x16\x03",
        b"GET\r\n\r\n",
        b"POST /v2 HTTP/9\r\n\r\n",
        b"A" * 100_000,
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=15) as one:
            one.sendall(rubbish)
            try:
                while one.recv(1000):
                    pass
            except ConnectionResetError:
                pass
    status, found = infer(server.port, np.zeros((2000, 4)))
    assert status == 413
    assert "at most" in found["error"]
    assert infer(server.port, np.zeros((1, 4)))[0] == 200
    assert server.stop(signal.SIGINT) == 0


def test_a_broken_file_changes_nothing_and_a_whole_one_takes_over(start, path, machine):
    server = start(path, "--watch", "0.05")
    X = rows(3)[NAMES].to_numpy()
    whole, other = path.read_bytes(), dm.figure_one()
    broken = path.with_name("broken")
    broken.write_bytes(whole[: len(whole) // 2])
    os.replace(broken, path)
    wait_for(
        lambda: (
            "dm_model_stale" in (text := get(server.port, "/metrics"))
            and ('dm_model_stale{model="forest"} 1' in text)
        )
    )
    told = json.loads(get(server.port, "/v2/models/forest"))["parameters"]["reload_error"]
    assert "What to do" in told
    wait_for(lambda: any("the old model goes on" in line for line in server.lines))
    status, found = infer(server.port, X)
    assert (status, found["model_version"]) == (200, "1")
    assert found["outputs"][0]["data"] == machine.predict(X).tolist()
    path.unlink()
    wait_for(lambda: "No such file" in get(server.port, "/v2/models/forest"))
    assert infer(server.port, X)[0] == 200
    other.save(path)
    wait_for(lambda: infer(server.port, X)[1].get("model_version") == "2")
    found = infer(server.port, X, outputs=("predict",))[1]
    assert found["outputs"][0]["data"] == other.predict(X).tolist()
    assert "reload_error" not in get(server.port, "/v2/models/forest")
    assert server.stop() == 0


def test_files_replaced_under_load_lose_no_request(start, path, machine):
    server = start(path, "--watch", "0.01")
    X = rows(1)[NAMES].to_numpy()
    wanted, other = machine.predict(X).tolist(), dm.figure_one()
    also, statuses, answers, running = other.predict(X).tolist(), [], [], True

    def ask():
        made = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        while running:
            status, found = infer(server.port, X, made, outputs=("predict",))
            statuses.append(status)
            answers.append(found["outputs"][0]["data"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(6):
        (other if i % 2 == 0 else machine).save(path)
        time.sleep(0.1)
    running = False
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}
    assert {json.dumps(one) for one in answers} == {json.dumps(wanted), json.dumps(also)}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_was_accepted_is_answered_before_the_stop(start, path, machine, how):
    server = start(path)
    body = json.dumps({"inputs": [tensor("X", rows(1)[NAMES].to_numpy())]}).encode()
    one = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    one.sendall(
        b"POST /v2/models/forest/infer HTTP/1.1\r\nhost: x\r\n"
        + f"content-length: {len(body)}\r\n\r\n".encode()
        + body[:10]
    )
    wait_for(lambda: "dm_requests_running 1" in get(server.port, "/metrics"))
    server.process.send_signal(how)
    time.sleep(0.5)
    one.sendall(body[10:])
    assert b"200 OK" in one.recv(10_000)
    assert server.process.wait(30) == 0


def test_asked_twice_it_stops_without_a_traceback(start, path):
    server = start(path)
    wait_for(lambda: get(server.port, "/v2/health/ready"))
    server.process.send_signal(signal.SIGINT)
    assert server.stop(signal.SIGINT) == 0
    time.sleep(0.2)
    assert "Traceback" not in "".join(server.lines)


def test_several_models_have_names(start, path, machine, tmp_path):
    dm.figure_one().save(tmp_path / "tree.dm")
    server = start(path, f"small={tmp_path / 'tree.dm'}")
    assert infer(server.port, np.zeros((1, 4)), name="small", outputs=("predict",))[0] == 200
    assert infer(server.port, np.zeros((1, 4)))[0] == 200
    assert infer(server.port, np.zeros((1, 4)), name="tree")[0] == 404


def test_wrong_calls_say_what_to_do(path, tmp_path):
    broken = tmp_path / "broken.dm"
    broken.write_bytes(b"rubbish")
    for models, says in (
        ([broken], "What to do"),
        ([path, path], "two are named"),
        ([tmp_path / "absent.dm"], "absent.dm"),
        ([f"a/b={path}"], "NAME=FILE"),
    ):
        with pytest.raises(dm.DecisionMachinesError, match=says):
            serve([str(model) for model in models])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(dm.InputError, match="--port 0"):
            serve([str(path)], port=taken.getsockname()[1])
