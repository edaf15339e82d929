"""Machines to serve, an application that is asked without a socket, and a server with one."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from stream.conftest import LABELS, NAMES, rows

import decision_machines as dm
from decision_machines.serve import App, Limits, Models


@pytest.fixture(scope="session")
def machine():
    from sklearn.ensemble import RandomForestClassifier

    frame = rows(500, seed=1)
    y = LABELS[(frame["p"] + frame["q"] > 0).astype(int) + (frame["r"] > 1)]
    return dm.convert(RandomForestClassifier(8, random_state=0).fit(frame[NAMES], y))


@dataclass
class Reply:
    status_code: int
    headers: dict
    content: bytes

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Asks an ASGI application as a server would; a body may come in parts."""

    def __init__(self, app):
        self.app = app

    def get(self, path):
        return asyncio.run(self.ask("GET", path))

    def post(self, path, content=b"", headers=()):
        return asyncio.run(self.ask("POST", path, content, headers))

    async def ask(self, method, path, content=b"", headers=()):
        parts = content if isinstance(content, list) else [content]
        parts = [part.encode() if isinstance(part, str) else part for part in parts]
        sent = []

        async def receive():
            if not parts:
                await asyncio.sleep(60)
            body = parts.pop(0)
            return {
                "type": "http.request",
                "body": body,
                "more_body": bool(parts) or body == b"...",
            }

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
        await self.app(scope, receive, send)
        start, *rest = sent
        body = b"".join(part["body"] for part in rest)
        return Reply(start["status"], dict(start["headers"]), body)


@pytest.fixture(scope="session")
def client(machine):
    limits = Limits(body_bytes=1 << 20, rows=5000, body_seconds=0.2)
    return Client(App(Models.of({"forest": machine, "tree": dm.figure_one()}), limits))


def tensor(name, values, datatype="FP64"):
    values = np.asarray(values)
    data = [None if v != v else v for v in values.reshape(-1).tolist()]
    return {"name": name, "shape": list(values.shape), "datatype": datatype, "data": data}


class Server:
    """`dm serve` in a process of its own, on a port that was free."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "decision_machines.cli", "serve", "--port", "0", *arguments],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines, self.port = [], None
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"http://[^:]+:(\d+)", line):
                self.port = int(found[1])
                break
        assert self.port, "".join(self.lines)
        threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(30)


@pytest.fixture
def start():
    servers = []

    def begin(*arguments):
        servers.append(Server(*map(str, arguments)))
        return servers[-1]

    yield begin
    for server in servers:
        server.process.kill()
        server.process.wait()
        server.process.stderr.close()
