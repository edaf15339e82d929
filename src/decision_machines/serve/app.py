"""The ASGI application: paths of the Open Inference Protocol, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..errors import DecisionMachinesError
from .batching import Batches
from .limits import Limits, Refused, Unread
from .metrics import CONTENT_TYPE, Metrics
from .tensors import numbers_of_one_row, rows_of, table_of, tensors_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .models import Model, Models

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

JSON = b"application/json"
LARGE_BODY = 1 << 16
"""Bytes from which on a request is read and answered in a thread: others do not wait for it."""
UNREAD_SECONDS = 2.0
UNREAD_BODIES = 8
"""Of the largest size that is taken: what is thrown away of a body that is larger."""
logger = logging.getLogger("decision_machines.serve")


class _Gone(Exception):
    """The client has closed its connection."""


class App:
    """Serves models by their names.

    Parameters
    ----------
    watch_seconds
        Between two looks at the models' files; None reads them once.
    """

    def __init__(
        self, models: Models, limits: Limits | None = None, watch_seconds: float | None = 2.0
    ) -> None:
        self.models, self.limits = models, limits or Limits()
        self.watch_seconds = watch_seconds
        self.metrics = Metrics()
        self.batches = Batches(self.metrics)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            parts = scope["path"].strip("/").split("/")
            if parts[-1] == "infer" and scope["method"] == "POST":
                await self._infer(parts, scope, receive, send)
            else:
                await self._tell(parts, scope["method"], send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    # -- what is told ------------------------------------------------------------------------------

    async def _tell(self, parts: list[str], method: str, send: Send) -> None:
        try:
            found, kind = self._told(parts, method)
        except Refused as refused:
            await _reply(send, refused.status, _error(refused))
            return
        await _reply(send, 200, found, kind)

    def _told(self, parts: list[str], method: str) -> tuple[bytes, bytes]:
        is_index = parts == ["v2", "repository", "index"]
        if method != "GET" and not (is_index and method == "POST"):
            raise Refused(405, f"{method} of /{'/'.join(parts)}; infer takes POST, the others GET")
        if parts == ["metrics"]:
            return self.metrics.text(self.models).encode(), CONTENT_TYPE
        return json.dumps(self._paths(parts)).encode(), JSON

    def _paths(self, parts: list[str]) -> Any:
        match parts:
            case ["v2"]:
                from .. import __version__

                return {"name": "decision-machines", "version": __version__, "extensions": []}
            case ["v2", "health", "live"]:
                return {"live": True}
            case ["v2", "health", "ready"]:
                return {"ready": True}
            case ["v2", "repository", "index"]:
                return [
                    {
                        "name": model.name,
                        "version": str(model.version),
                        "state": "READY",
                        "reason": model.error or "",
                    }
                    for model in self.models.by_name.values()
                ]
            case ["v2", "models", name] | ["v2", "models", name, "versions", _]:
                return self._found(parts, name).metadata()
            case ["v2", "models", name, "ready"] | ["v2", "models", name, "versions", _, "ready"]:
                return {"name": self._found(parts, name).name, "ready": True}
        raise Refused(404, f"no path /{'/'.join(parts):.100}; try /v2, /v2/models/NAME, /metrics")

    def _found(self, parts: list[str], name: str) -> Model:
        return self.models.find(name, parts[4] if len(parts) > 4 else None)

    # -- inference ---------------------------------------------------------------------------------

    async def _infer(
        self, parts: list[str], scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        start, metrics = time.perf_counter(), self.metrics
        name, rows, is_unread = "", 0, False
        metrics.running += 1
        try:
            if len(parts) not in (4, 6) or parts[:2] != ["v2", "models"]:
                raise Refused(404, "infer is at /v2/models/NAME/infer")
            model = self._found(parts, parts[2])
            name = model.name
            content, rows = await self._answered(model, await self._body(scope, receive))
            status = 200
        except (Refused, DecisionMachinesError) as error:
            status = error.status if isinstance(error, Refused) else 400
            content, is_unread = _error(error), isinstance(error, Unread)
        except _Gone:
            return
        except Exception:
            logger.exception("a request for %s was not answered", name)
            status, content = 500, _error("a defect of the server; its log has the details")
        finally:
            metrics.running -= 1
        metrics.request(name, status, rows, time.perf_counter() - start)
        if is_unread:
            await self._reply_and_close(status, content, receive, send)
        else:
            await _reply(send, status, content)

    async def _reply_and_close(
        self, status: int, content: bytes, receive: Receive, send: Send
    ) -> None:
        """The answer to a body that is not read to its end.

        What a client still sends is thrown away for a while: a connection that is closed under it
        is an error, and it would never read the answer.
        """
        closing = [(b"connection", b"close")]
        await _reply(send, status, content, JSON, closing, is_whole=False)
        size = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNREAD_SECONDS):
                while size <= UNREAD_BODIES * self.limits.body_bytes:
                    message = await receive()
                    size += len(message.get("body", b""))
                    if not message.get("more_body"):
                        break
        await send({"type": "http.response.body", "body": b""})

    async def _body(self, scope: dict[str, Any], receive: Receive) -> bytes:
        """The body, as a whole and in time, or a refusal."""
        most = self.limits.body_bytes
        for key, value in scope["headers"]:
            if key == b"content-length" and int(value) > most:
                raise Unread(413, f"a body of {int(value)} bytes; at most {most} are taken")
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            try:
                body = await asyncio.wait_for(self._rest(body, receive), self.limits.body_seconds)
            except TimeoutError:
                raise Unread(
                    408, f"the body did not arrive within {self.limits.body_seconds:g} s"
                ) from None
        if len(body) > most:
            raise Unread(413, f"a body of more than {most} bytes, which is the most taken")
        return body

    async def _rest(self, first: bytes, receive: Receive) -> bytes:
        parts, size, more = [first], len(first), True
        while more and size <= self.limits.body_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
        return b"".join(parts)

    async def _answered(self, model: Model, body: bytes) -> tuple[bytes, int]:
        if len(body) > LARGE_BODY:
            return await asyncio.to_thread(lambda: self._answer_here(model, _asked(body)))
        asked = _asked(body)
        row = numbers_of_one_row(asked.get("inputs"), model.machine.n_features)
        if row is None:
            return self._answer_here(model, asked)
        wanted = model.wanted(asked)
        if any(name not in model.row for name in wanted):
            return self._answer_here(model, asked)
        return _content(model, asked, await self.batches.answer(model, row, wanted)), 1

    def _answer_here(self, model: Model, asked: dict[str, Any]) -> tuple[bytes, int]:
        X = rows_of(asked.get("inputs"), model.machine.n_features, self.limits.rows)
        wanted = model.wanted(asked)
        if isinstance(X, dict):
            is_row = all(len(values) == 1 for values in X.values())
            if is_row and all(name in model.row for name in wanted):
                row = {name: values[0] for name, values in X.items()}
                found = tensors_of({name: model.row[name](row) for name in wanted}, is_row=True)
                return _content(model, asked, found), 1
            X = table_of(X, model.hard.columns)
        found = tensors_of({name: model.answer(name, X) for name in wanted})
        return _content(model, asked, found), len(X)

    # -- start and stop ----------------------------------------------------------------------------

    async def _live(self, receive: Receive, send: Send) -> None:
        """Watch the models' files from the start to the stop of the server."""
        watching: asyncio.Task[None] | None = None
        while True:
            try:
                message = await receive()
            except asyncio.CancelledError:  # asked twice to stop: at once, and without a word
                return
            if message["type"] == "lifespan.startup":
                if self.watch_seconds is not None:
                    watching = asyncio.create_task(self.models.watch(self.watch_seconds))
                await send({"type": "lifespan.startup.complete"})
            else:
                if watching is not None:
                    watching.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await watching
                await send({"type": "lifespan.shutdown.complete"})
                return


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose names differ: of two values, which one is meant?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has {twice!r:.60} twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _asked(body: bytes) -> dict[str, Any]:
    try:
        asked = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error!s:.200}") from None
    if not isinstance(asked, dict):
        raise Refused(400, "the body is not an object with a list of inputs")
    if not isinstance(asked.get("id", ""), (str, int)):
        raise Refused(400, f"id is {asked['id']!r:.60}; send a text")
    return asked


def _content(model: Model, asked: dict[str, Any], outputs: list[dict[str, Any]] | str) -> bytes:
    """The JSON of a response; `outputs` may be JSON already."""
    tensors = outputs if isinstance(outputs, str) else ", ".join(map(json.dumps, outputs))
    about = f', "id": {json.dumps(asked["id"])}' if "id" in asked else ""
    return f'{{{model.head}{about}, "outputs": [{tensors}]}}'.encode()


def _error(error: Exception | str) -> bytes:
    return json.dumps({"error": str(error)}).encode()


async def _reply(
    send: Send,
    status: int,
    content: bytes,
    kind: bytes = JSON,
    headers: list[tuple[bytes, bytes]] | None = None,
    *,
    is_whole: bool = True,
) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", kind),
                (b"content-length", b"%d" % len(content)),
                *(headers or ()),
            ],
        }
    )
    await send({"type": "http.response.body", "body": content, "more_body": not is_whole})
