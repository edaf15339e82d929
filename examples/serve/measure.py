"""Requests/s of the serving example on this machine: real HTTP, connections kept alive.

    python examples/serve/measure.py [--seconds 5] [--connections 8]

Server and clients share the processors, so this is what one machine does with both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import decision_machines as dm

HERE = Path(__file__).parent
N_FEATURES = 20


def train(folder: Path) -> Path:
    """A boosted model of 100 trees × 31 leaves."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, N_FEATURES))
    model = HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=31, early_stopping=False)
    path = folder / "model.dm"
    dm.convert(model.fit(X, X[:, :5].sum(axis=1) > 0)).save(path)
    return path


def request(n_rows: int) -> bytes:
    X = np.random.default_rng(1).standard_normal((n_rows, N_FEATURES)).round(3)
    body = {
        "inputs": [
            {
                "name": "X",
                "shape": list(X.shape),
                "datatype": "FP64",
                "data": X.reshape(-1).tolist(),
            }
        ],
        "outputs": [{"name": "predict_proba"}],
    }
    content = json.dumps(body).encode()
    head = (
        "POST /v2/models/model/infer HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def ask(port: int, message: bytes, end: float, times: list[float]) -> None:
    """One connection: a request after the other until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < end:
        start = time.perf_counter()
        writer.write(message)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(head.decode())
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        times.append(time.perf_counter() - start)
    writer.close()


async def measure(port: int, n_rows: int, connections: int, seconds: float) -> list[float]:
    message, times = request(n_rows), []
    end = time.perf_counter() + seconds
    await asyncio.gather(*(ask(port, message, end, times) for _ in range(connections)))
    return times


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port: int, server: subprocess.Popen) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--connections", type=int, default=8)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        model, port = train(Path(name)), free_port()
        server = subprocess.Popen([sys.executable, HERE / "app.py", model, "--port", str(port)])
        try:
            wait_for(port, server)
            for n_rows in (1, 100):
                asyncio.run(measure(port, n_rows, given.connections, 0.5))
                times = asyncio.run(measure(port, n_rows, given.connections, given.seconds))
                half, most = np.percentile(np.array(times) * 1000, [50, 99])
                print(
                    f"{n_rows:3d} row{'' if n_rows == 1 else 's'} a request, {given.connections} "
                    f"connections: {len(times) / given.seconds:,.0f} requests/s, "
                    f"{half:.2f} ms at the median, {most:.2f} ms at 99 %",
                    flush=True,
                )
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
