"""What a request may take of the server, and how one is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on each request."""

    body_bytes: int = 16 << 20
    rows: int = 100_000
    body_seconds: float = 30.0
    """For a body to arrive as a whole."""
    head_seconds: float = 10.0
    """For the head of a request to arrive, from its first byte or from the connection on."""
    head_bytes: int = 64 << 10


class Refused(Exception):
    """A request that is not answered, with the status and the words that say why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Unread(Refused):
    """A request whose body is not read to its end: its connection cannot serve another one."""
