"""The run room: predictions of a machine.

`inputs` and `tables` read what users pass, an engine finds exit leaves and sums their values,
`links` and `decisions` turn the sums into probabilities and answers. `reference` is the paper's
equations, `walk` the plain descent, `native` the fast engine in C++.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .engines import native, reference, walk
from .inputs.arrays import read_rows
from .links import LINKS
from .links.decisions import DECISIONS

if TYPE_CHECKING:
    from ..machine import DecisionMachine

ENGINES = {"auto": walk, "native": walk, "walk": walk, "reference": reference}
"""What runs where the native engine is not asked for, or cannot."""
ROWS_AT_ONCE = 8192


def margin(machine: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"):
    """(m, k) margins; see `DecisionMachine.margin`."""
    if n_threads is not None:
        _check_threads(n_threads)
    if engine == "auto" or engine == "native":
        found = native.margin(machine, X, n_threads)
        if found is not None:
            return found
    run = _named(ENGINES, "engine", engine).margin
    return _in_blocks(machine, X, run, machine.n_outputs, machine.output.dtype)


def apply(machine: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"):
    """(m, n_trees) exit leaves; see `DecisionMachine.apply`."""
    if n_threads is not None:
        _check_threads(n_threads)
    if engine == "auto" or engine == "native":
        found = native.apply(machine, X, n_threads)
        if found is not None:
            return found
    run = _named(ENGINES, "engine", engine).apply
    return _in_blocks(machine, X, run, machine.n_trees, np.int32)


def source_leaves(
    machine: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
):
    """(m, n_trees) exit leaves, named as the source names them."""
    leaf_ids = machine.trees.leaf_ids
    if leaf_ids is None:
        raise InputError(
            "naming leaves as the source does",
            f"the machine ({machine.source or 'of unknown source'}) has no names for its leaves",
            "use apply, which counts them from left to right",
        )
    found = apply(machine, X, n_threads=n_threads, engine=engine)
    return leaf_ids[found + machine.trees.leaf_start[:-1]]


def predict(
    machine: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
):
    """Labels or values; see `DecisionMachine.predict`."""
    return decide(machine, margin(machine, X, n_threads=n_threads, engine=engine))


def given_margins(machine: DecisionMachine, margins: Any) -> np.ndarray:
    """(m, k) margins as somebody gave them, in the machine's dtype."""
    margins = np.asarray(margins, machine.output.dtype)
    if margins.ndim != 2 or margins.shape[1] != machine.n_outputs:
        raise InputError(
            "reading margins",
            f"margins of shape {margins.shape}; the machine has {machine.n_outputs} outputs",
            f"give rows of {machine.n_outputs} margins",
        )
    return margins


def decide(machine: DecisionMachine, margins: np.ndarray):
    """What `predict` makes of margins."""
    output = machine.output
    if output.decision == "response" and output.link == "identity":
        return DECISIONS["response"](output, margins, margins)  # the short way, for single rows
    decision = _named(DECISIONS, "decision", output.decision)
    return decision(output, margins, respond(machine, margins), *output.decision_params)


def predict_proba(
    machine: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
):
    """Probabilities of the classes; see `DecisionMachine.predict_proba`."""
    check_classes(machine)
    return probabilities(machine, margin(machine, X, n_threads=n_threads, engine=engine))


def check_classes(machine: DecisionMachine) -> None:
    """Refuse a machine that has no classes to give probabilities of."""
    if machine.output.classes is None:
        raise InputError(
            "predicting probabilities",
            f"the machine ({machine.source or 'of unknown source'}) has no classes",
            "use predict or margin",
        )


def probabilities(machine: DecisionMachine, margins: np.ndarray):
    """What `predict_proba` makes of margins."""
    output = machine.output
    assert output.classes is not None
    answer = respond(machine, margins)
    if len(output.classes) > 1:
        return [answer[:, a:b] for a, b in zip(output.groups, output.groups[1:], strict=False)]
    if answer.shape[1] == 1 and len(output.classes[0]) == 2:
        return np.concatenate([1 - answer, answer], axis=1)
    return answer


def response(
    machine: DecisionMachine, X: Any, *, n_threads: int | None = None, engine: str = "auto"
):
    """(m, r) margins through the link; see `DecisionMachine.response`."""
    return respond(machine, margin(machine, X, n_threads=n_threads, engine=engine))


def features(machine: DecisionMachine, X: Any, *, dtype: Any = None):
    """(m, n_features) rows as the machine reads them; see `DecisionMachine.features`."""
    columns = machine.columns
    if dtype is not None:
        columns = replace(columns, dtype=dtype, integers_as=columns.integers_as)
    rows = read_rows(X, columns)
    return np.asarray(rows.block(0, rows.n_rows))


def respond(machine: DecisionMachine, margins: np.ndarray) -> np.ndarray:
    """The link applied to margins, group by group."""
    output = machine.output
    link = _named(LINKS, "link", output.link)
    if len(output.groups) == 2:
        return link(margins, *output.link_params)
    parts = [
        link(margins[:, a:b], *output.link_params)
        for a, b in zip(output.groups, output.groups[1:], strict=False)
    ]
    return np.concatenate(parts, axis=1)


def _in_blocks(machine: DecisionMachine, X: Any, run: Any, width: int, dtype: Any) -> np.ndarray:
    """(m, width) answers of an engine that takes a block of rows at a time."""
    rows = read_rows(X, machine.columns)
    found = np.empty((rows.n_rows, width), dtype)
    for start in range(0, rows.n_rows, ROWS_AT_ONCE):
        block = rows.block(start, min(start + ROWS_AT_ONCE, rows.n_rows))
        found[start : start + len(block)] = run(machine, block)
    return found


def _named(table: dict[str, Any], what: str, name: str) -> Any:
    if name not in table:
        raise InputError("predicting", f"{what}={name!r}", f"use one of {', '.join(table)}")
    return table[name]


def _check_threads(n_threads: int) -> None:
    if not (isinstance(n_threads, (int, np.integer)) and n_threads > 0):
        raise InputError(
            "predicting", f"n_threads={n_threads!r}", "use a whole number from 1, or None for all"
        )
