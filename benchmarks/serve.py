"""Requests/s of `dm serve` beside FastAPI with LightGBM itself: one row a request, over HTTP.

    python benchmarks/serve.py [--seconds 4] [--connections 32] [--rounds 3]

Both run on uvicorn with uvloop and httptools; a server has one processor, the clients another. The
answers are compared first. Needs lightgbm, fastapi and decision-machines[cli,serve].
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_FEATURES, TREES, LEAVES = 20, 100, 31
RIVAL = """
import sys
import lightgbm, numpy as np, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

booster = lightgbm.Booster(model_file=sys.argv[1])
app = FastAPI()

class Row(BaseModel):
    data: list[float]

@app.post("/predict")
async def predict(row: Row):
    return {"data": booster.predict(np.array([row.data]), num_threads=1).tolist()}

uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False)
"""


def train(folder: Path) -> Path:
    import lightgbm

    X = np.random.default_rng(0).standard_normal((5000, N_FEATURES))
    data = lightgbm.Dataset(X, X[:, :5].sum(axis=1) + X[:, 5] * X[:, 6] > 0)
    settings = {"objective": "binary", "num_leaves": LEAVES, "verbose": -1, "num_threads": 1}
    path = folder / "model.txt"
    lightgbm.train(settings, data, TREES).save_model(path)
    return path


def message(path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


def body_of(reply: bytes) -> bytes | None:
    """The body of a reply that has arrived as a whole."""
    head, end, rest = reply.partition(b"\r\n\r\n")
    if not end:
        return None
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(reply.decode())
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return rest if len(rest) >= length else None


def ask(port: int, content: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(content)
        reply = b""
        while (found := body_of(reply)) is None:
            reply += one.recv(65536)
        return found


def load(port: int, contents: list[bytes], connections: int, seconds: float) -> list[float]:
    """Seconds of each request; every connection asks again as soon as it is answered."""
    poll, made, began, parts = select.epoll(), {}, {}, {}
    for _ in range(connections):
        one = socket.create_connection(("127.0.0.1", port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made[one.fileno()] = one
        poll.register(one.fileno(), select.EPOLLIN)
    times: list[float] = []
    end = time.perf_counter() + seconds
    for i, (fd, one) in enumerate(made.items()):
        began[fd], parts[fd] = time.perf_counter(), b""
        one.sendall(contents[i % len(contents)])
    while time.perf_counter() < end:
        for fd, _ in poll.poll(1.0):
            parts[fd] += made[fd].recv(65536)
            if body_of(parts[fd]) is None:
                continue
            now = time.perf_counter()
            times.append(now - began[fd])
            began[fd], parts[fd] = now, b""
            made[fd].sendall(contents[len(times) % len(contents)])
    for one in made.values():
        one.close()
    return times


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def started(command: list[str], port: int) -> subprocess.Popen:
    server = subprocess.Popen(["taskset", "-c", "0", *command])
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=4.0)
    options.add_argument("--connections", type=int, default=32)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    os.sched_setaffinity(0, {1})
    X = np.random.default_rng(1).standard_normal((64, N_FEATURES)).round(3)
    infer = "/v2/models/model/infer"
    asked = {
        "dm serve": [
            message(
                infer,
                {
                    "inputs": [
                        {"name": "X", "shape": [1, len(x)], "datatype": "FP64", "data": x.tolist()}
                    ]
                },
            )
            for x in X
        ],
        "FastAPI": [message("/predict", {"data": x.tolist()}) for x in X],
    }
    with tempfile.TemporaryDirectory() as name:
        model, ports = train(Path(name)), {label: free_port() for label in asked}
        dm = [sys.executable, "-m", "decision_machines.cli", "serve", str(model)]
        commands = {
            "dm serve": [*dm, "--port", str(ports["dm serve"])],
            "FastAPI": [sys.executable, "-c", RIVAL, str(model), str(ports["FastAPI"])],
        }
        servers = [started(commands[label], ports[label]) for label in asked]
        try:
            for ours, theirs in zip(*asked.values(), strict=True):
                found = json.loads(ask(ports["dm serve"], ours))["outputs"][0]["data"]
                wanted = json.loads(ask(ports["FastAPI"], theirs))["data"]
                if found != wanted:
                    raise RuntimeError(f"the answers differ: {found} and {wanted}")
            print(f"{len(X)} rows: answers equal to the bit", flush=True)
            for _ in range(given.rounds):
                speed = {}
                for label, contents in asked.items():
                    load(ports[label], contents, given.connections, 0.5)
                    times = load(ports[label], contents, given.connections, given.seconds)
                    half, most = np.percentile(np.array(times) * 1000, [50, 99])
                    speed[label] = len(times) / given.seconds
                    print(
                        f"{label:9} {speed[label]:7,.0f} requests/s, median {half:.2f} ms, "
                        f"p99 {most:.2f} ms",
                        flush=True,
                    )
                print(f"ratio {speed['dm serve'] / speed['FastAPI']:.2f}", flush=True)
        finally:
            for server in servers:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
