"""What predicting with one machine needs, made on first use and kept by the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import InputError
from .decide import check_classes, decide, probabilities, respond
from .engines import reference, walk
from .engines.compiled import Compiled, no_row
from .engines.native import refusal
from .inputs.features import read_features

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

    from ..machine import DecisionMachine


class Engine(Protocol):
    """What finds exit leaves and margins of rows that have been read."""

    def apply(self, machine: DecisionMachine, X: np.ndarray, /) -> np.ndarray: ...

    def margin(self, machine: DecisionMachine, X: np.ndarray, /) -> np.ndarray: ...


PLAIN_ENGINES: dict[str, Engine] = {"walk": walk, "reference": reference}
"""What can run every machine, in Python; "auto" is "native" or, where that cannot, "walk"."""
ENGINES = ("auto", "native", *PLAIN_ENGINES)
ROWS_AT_ONCE = 8192


class Prepared:
    """The ways to run one machine; the native engine's plan is compiled when it is first needed.

    Every method takes the machine, because its keeper must not be held by what it keeps: a machine
    that nobody else holds is freed at once, plan and all. The plan is not part of copies and
    pickles. Threads that come first at the same time each compile; one of the equal plans is kept.
    """

    __slots__ = ("_compiled", "_row")

    def __init__(self) -> None:
        self._compiled: Compiled | None = None
        self._row: Callable[[Any], np.ndarray | None] = no_row

    def compiled(self, machine: DecisionMachine) -> Compiled:
        """The machine compiled for the native engine, which must be able to run it."""
        found = self._compiled
        if found is None:
            found = Compiled(machine)
            self._row = found.row
            self._compiled = found
        return found

    def margin(
        self, machine: DecisionMachine, X: Any, *, n_threads: int | None, engine: str
    ) -> Float[np.ndarray, "m k"]:
        """See `DecisionMachine.margin`."""
        if n_threads is not None:
            _check_threads(n_threads)
        if engine == "auto" or engine == "native":
            found = self._row(X)
            if found is not None:
                return found
        return self._run(machine, X, n_threads, engine, leaves=False)

    def apply(
        self, machine: DecisionMachine, X: Any, *, n_threads: int | None, engine: str
    ) -> Int[np.ndarray, "m T"]:
        """See `DecisionMachine.apply`."""
        if n_threads is not None:
            _check_threads(n_threads)
        return self._run(machine, X, n_threads, engine, leaves=True)

    def source_leaves(
        self, machine: DecisionMachine, X: Any, *, n_threads: int | None, engine: str
    ) -> Int[np.ndarray, "m T"]:
        """See `DecisionMachine.source_leaves`."""
        leaf_ids = machine.trees.leaf_ids
        if leaf_ids is None:
            raise InputError(
                "naming leaves as the source does",
                f"the machine ({machine.source or 'of unknown source'}) has no names for leaves",
                "use apply, which counts them from left to right",
            )
        found = self.apply(machine, X, n_threads=n_threads, engine=engine)
        named: np.ndarray = leaf_ids[found + machine.trees.leaf_start[:-1]]
        return named

    def predict(
        self, machine: DecisionMachine, X: Any, *, n_threads: int | None, engine: str
    ) -> np.ndarray:
        """See `DecisionMachine.predict`."""
        return decide(machine, self.margin(machine, X, n_threads=n_threads, engine=engine))

    def response(
        self, machine: DecisionMachine, X: Any, *, n_threads: int | None, engine: str
    ) -> Float[np.ndarray, "m r"]:
        """See `DecisionMachine.response`."""
        return respond(machine, self.margin(machine, X, n_threads=n_threads, engine=engine))

    def predict_proba(
        self, machine: DecisionMachine, X: Any, *, n_threads: int | None, engine: str
    ) -> Float[np.ndarray, "m c"] | list[Float[np.ndarray, "m c"]]:
        """See `DecisionMachine.predict_proba`."""
        check_classes(machine)
        return probabilities(machine, self.margin(machine, X, n_threads=n_threads, engine=engine))

    def _run(
        self, machine: DecisionMachine, X: Any, n_threads: int | None, engine: str, leaves: bool
    ) -> np.ndarray:
        """(m, n_trees) exit leaves, or (m, k) margins, by the engine of this name."""
        if engine not in ENGINES:
            raise InputError("predicting", f"engine={engine!r}", f"use one of {', '.join(ENGINES)}")
        if engine == "auto" or engine == "native":
            cause = refusal(machine) if self._compiled is None else None
            if cause is None:
                return self.compiled(machine).run(X, n_threads, leaves)
            if engine == "native":
                raise InputError(
                    "predicting with engine='native'",
                    f"the native engine cannot run this machine: {cause}",
                    "use engine='auto', which lets the walk run what the native engine cannot",
                )
        plain = PLAIN_ENGINES["walk" if engine == "auto" else engine]
        if leaves:
            return _in_blocks(machine, X, plain.apply, machine.n_trees, np.dtype(np.int32))
        return _in_blocks(machine, X, plain.margin, machine.n_outputs, machine.output.dtype)


def _in_blocks(
    machine: DecisionMachine,
    X: Any,
    run: Callable[[DecisionMachine, np.ndarray], np.ndarray],
    width: int,
    dtype: np.dtype[Any],
) -> np.ndarray:
    """(m, width) results of an engine that takes a block of rows at a time."""
    rows = read_features(X, machine.columns)
    found = np.empty((rows.n_rows, width), dtype)
    for start in range(0, rows.n_rows, ROWS_AT_ONCE):
        block = rows.block(start, min(start + ROWS_AT_ONCE, rows.n_rows))
        found[start : start + len(block)] = run(machine, block)
    return found


def _check_threads(n_threads: int) -> None:
    if not (isinstance(n_threads, (int, np.integer)) and n_threads > 0):
        raise InputError(
            "predicting",
            f"n_threads={n_threads!r}",
            "use a whole number of at least 1, or None for all",
        )
