"""The application on uvicorn, and how it stops."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from ..errors import InputError, MissingLibraryError
from .app import App
from .models import DOING

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from .limits import Limits
    from .models import Models

LEAVING_SECONDS = 0.25
"""For requests on their way, when the server stops."""


def serve(
    models: Models,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    watch_seconds: float | None = 2.0,
    stop_seconds: int = 30,
) -> None:
    """Serve until SIGINT or SIGTERM; what was accepted by then is still answered.

    Parameters
    ----------
    port
        0 takes one that is free; the first line on stderr tells it.
    stop_seconds
        For requests that are running when the server is to stop.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingLibraryError(
            DOING, "uvicorn is not installed", "pip install 'decision-machines[cli,serve]'"
        ) from None
    app = App(models, limits, watch_seconds)
    _log()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=_protocol(app.limits),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=stop_seconds,
    )
    server = uvicorn.Server(config)
    with _bound(config) as bound:
        bound.listen(config.backlog)  # from here on, whoever connects is answered
        address, number = bound.getsockname()[:2]
        logging.getLogger("decision_machines.serve").warning(
            "serving %s at http://%s:%d", ", ".join(models.by_name), address, number
        )
        with _stopped_quietly(server):
            server.run(sockets=[bound])


@contextlib.contextmanager
def _stopped_quietly(server: Any) -> Iterator[None]:
    """Stop on a signal that comes before uvicorn listens to them.

    uvicorn raises the signal that stopped it once more when all is answered: by then there is
    nothing left to stop.
    """

    def stop(number: int, frame: Any) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(one, stop) for one in signals]
    try:
        yield
    finally:
        for one, handler in zip(signals, before, strict=True):
            signal.signal(one, handler)


def _bound(config: Any) -> socket.socket:
    try:
        found: socket.socket = config.bind_socket()
    except SystemExit:
        raise InputError(
            DOING,
            f"{config.host}:{config.port} cannot be used, as the line above says",
            "choose another --port, or --port 0 for one that is free",
        ) from None
    return found


def _log() -> None:
    """Warnings, and what the server tells of itself, on stderr."""
    logger = logging.getLogger("decision_machines.serve")
    if not logging.getLogger().handlers and not logger.handlers:
        told = logging.StreamHandler(sys.stderr)
        told.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        for name in ("decision_machines.serve", "uvicorn.error"):
            logging.getLogger(name).addHandler(told)


def _protocol(limits: Limits) -> Any:
    """uvicorn's HTTP protocol, with bounds on heads, and connections closed without a loss."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "auto"

    class Patient(HttpToolsProtocol):
        """Closes a connection whose request has not begun, or has no whole head, in time.

        When the server stops, a connection without a request is kept for a moment: what a client
        has sent, and the server not read yet, is answered.
        """

        waiting: Any = None
        head_size = 0
        is_leaving = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            awaited = self.waiting
            super().data_received(data)
            is_same = awaited is not None and self.waiting is awaited
            self.head_size = self.head_size + len(data) if is_same else 0
            if self.head_size > limits.head_bytes and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

        def on_message_begin(self) -> None:
            if self.waiting is None:
                self._wait()
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._calm()
            super().on_headers_complete()
            if self.is_leaving:
                self.cycle.keep_alive = False

        def connection_lost(self, exc: Exception | None) -> None:
            self._calm()
            super().connection_lost(exc)

        def shutdown(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.is_leaving = True
                self.loop.call_later(LEAVING_SECONDS, super().shutdown)
            else:
                super().shutdown()

        def _wait(self) -> None:
            self.waiting = self.loop.call_later(limits.head_seconds, self.transport.close)

        def _calm(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None

    return Patient
