"""Single rows that arrive together are answered in one call.

A row waits for nothing but the requests that the event loop has read already: the batch is closed
in the loop's next turn. Under load that is as many rows as came in during the last call.
"""

from __future__ import annotations

import asyncio
from json import dumps
from typing import TYPE_CHECKING, Any

import numpy as np

from .tensors import plain, tensor_head, tensors_of

if TYPE_CHECKING:
    from .metrics import Metrics
    from .models import Model

    _Asked = tuple[list[Any], asyncio.Future[str]]


class Batches:
    """Rows that wait, by model and by what is asked of them."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.waiting: dict[tuple[Model, tuple[str, ...]], list[_Asked]] = {}

    async def answer(self, model: Model, row: list[Any], wanted: tuple[str, ...]) -> str:
        """The output tensors of one row, as JSON."""
        loop = asyncio.get_running_loop()
        if not self.waiting:
            loop.call_soon(self._close)
        future: asyncio.Future[str] = loop.create_future()
        key = model, wanted
        if key in self.waiting:
            self.waiting[key].append((row, future))
        else:
            self.waiting[key] = [(row, future)]
        return await future

    def _close(self) -> None:
        batches, self.waiting = self.waiting, {}
        for (model, wanted), asked in batches.items():
            self.metrics.batch(model.name, len(asked))
            try:
                texts = _together(model, wanted, asked) if len(asked) > 1 else None
            except Exception:
                texts = None  # One of the rows is at fault; which one is found out below.
            for i, (row, future) in enumerate(asked):
                if future.done():
                    continue  # Its client has gone.
                try:
                    future.set_result(texts[i] if texts else _alone(model, wanted, row))
                except Exception as error:
                    future.set_exception(error)


def _together(model: Model, wanted: tuple[str, ...], asked: list[_Asked]) -> list[str] | None:
    """The tensors of all rows; None where one output is a list of targets."""
    X = np.array([row for row, _ in asked], np.float64)  # None becomes NaN
    texts: list[list[str]] = [[] for _ in asked]
    for name in wanted:
        values = model.answer(name, X)
        if isinstance(values, list):
            return None
        head = tensor_head(name, (1, *values.shape[1:]), values.dtype)
        for text, row in zip(texts, plain(values), strict=True):
            text.append(f"{head}{dumps(row if type(row) is list else [row])}}}")
    return [", ".join(text) for text in texts]


def _alone(model: Model, wanted: tuple[str, ...], row: list[Any]) -> str:
    answers = {name: model.row[name](row) for name in wanted}
    return ", ".join(map(dumps, tensors_of(answers, is_row=True)))
