"""Counts of what the server does, as Prometheus reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .models import Models

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """How many values lie at or below each bound, for each label."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts: dict[str, list[int]] = {}
        self.sums: Counter[str] = Counter()

    def add(self, label: str, value: float) -> None:
        counts = self.counts.get(label)
        if counts is None:
            counts = self.counts[label] = [0] * (len(self.bounds) + 1)
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[label] += value  # type: ignore[assignment]

    def lines(self, name: str) -> Iterable[str]:
        for label, counts in self.counts.items():
            total = 0
            for bound, count in zip((*self.bounds, "+Inf"), counts, strict=True):
                total += count
                yield f'{name}_bucket{{model="{_escaped(label)}",le="{bound}"}} {total}'
            yield f'{name}_sum{{model="{_escaped(label)}"}} {self.sums[label]}'
            yield f'{name}_count{{model="{_escaped(label)}"}} {total}'


class Metrics:
    """What is counted; a model is known by its name, and what asks for no model has none."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rows: Counter[str] = Counter()
        self.seconds, self.batches = Histogram(SECONDS), Histogram(ROWS)
        self.running = 0

    def request(self, model: str, status: int, rows: int, seconds: float) -> None:
        self.requests[model, status] += 1
        if rows:
            self.rows[model] += rows
        self.seconds.add(model, seconds)

    def batch(self, model: str, rows: int) -> None:
        self.batches.add(model, rows)

    def text(self, models: Models) -> str:
        """In Prometheus's text format."""
        found: list[str] = []

        def put(name: str, kind: str, words: str, lines: Iterable[str]) -> None:
            found.extend([f"# HELP {name} {words}", f"# TYPE {name} {kind}", *lines])

        def each(name: str, values: dict[str, Any]) -> list[str]:
            return [f'{name}{{model="{_escaped(m)}"}} {v}' for m, v in values.items()]

        put(
            "dm_requests_total",
            "counter",
            "Requests for inference, by model and status.",
            (
                f'dm_requests_total{{model="{_escaped(model)}",status="{status}"}} {count}'
                for (model, status), count in self.requests.items()
            ),
        )
        put("dm_rows_total", "counter", "Rows answered.", each("dm_rows_total", self.rows))
        put(
            "dm_request_seconds",
            "histogram",
            "From the head of a request to its answer.",
            self.seconds.lines("dm_request_seconds"),
        )
        put(
            "dm_batch_rows",
            "histogram",
            "Single rows answered in one call.",
            self.batches.lines("dm_batch_rows"),
        )
        put(
            "dm_requests_running",
            "gauge",
            "Requests that are being answered.",
            [f"dm_requests_running {self.running}"],
        )
        by_name = models.by_name
        versions = {name: model.version for name, model in by_name.items()}
        put(
            "dm_model_version", "gauge", "Readings of the file.", each("dm_model_version", versions)
        )
        loaded = {name: model.loaded for name, model in by_name.items()}
        put(
            "dm_model_loaded_seconds",
            "gauge",
            "When the model was read, in Unix time.",
            each("dm_model_loaded_seconds", loaded),
        )
        stale = {name: int(model.error is not None) for name, model in by_name.items()}
        put(
            "dm_model_stale",
            "gauge",
            "1 where the newest file cannot be read, and the model before it is served.",
            each("dm_model_stale", stale),
        )
        for name, words, values in (
            ("dm_model_reloads_total", "Files read again.", models.reloads),
            ("dm_model_reload_failures_total", "Files that could not be read.", models.failures),
        ):
            put(name, "counter", words, each(name, values))
        return "\n".join(found) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
