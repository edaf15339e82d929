"""`shap_values` and what belongs to it: rows of any kind in, arrays in the shapes of shap out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, UnsupportedModelError
from ...machine.digest import digest
from ...run.decide import respond
from ...run.engines.processor import cpu_count
from ...run.inputs.features import read_features
from .background import BackgroundValues, mean_margin
from .paths import PathValues
from .shares import DOING, base_values, check_machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float

    from ...machine import DecisionMachine

DTYPES = ("float64", "float32")
OUTPUTS = ("margin", "probability")
ROWS_AT_ONCE = 16384
ROWS_FOR_THREADS = 16
"""Fewer rows than this are done before a second thread has started."""
Maker = PathValues | BackgroundValues


class ShapleyPrepared:
    """What Shapley values of one machine need, made on first use and kept by the machine.

    It holds no machine: what a machine keeps must not keep the machine.
    """

    def __init__(self) -> None:
        self._by_paths: dict[tuple[str, bool, float | None], PathValues] = {}
        self._background: tuple[Any, BackgroundValues] | None = None

    def values(
        self,
        machine: DecisionMachine,
        X: Any,
        background: Any,
        *,
        dtype: Any,
        pairs: bool,
        n_threads: int | None,
        output: str = "margin",
        point: float | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """(m, n, k) values and, if wanted, (m, n, n, k) interactions; `point` as of PathValues."""
        check_machine(machine)
        name = _dtype(dtype)
        if output not in OUTPUTS:
            raise InputError(DOING, f"output={output!r}", f"use one of {', '.join(OUTPUTS)}")
        _check_threads(n_threads)
        rows = read_features(X, machine.columns)
        if output == "probability":
            return _of_probabilities(machine, rows, background, name, pairs, n_threads)
        maker = self._maker(machine, background, name, pairs, point)
        n, k = machine.n_features, machine.n_outputs
        out = np.empty((rows.n_rows, n, k), name)
        between = np.empty((rows.n_rows, n, n, k), name) if pairs else None
        for start, stop in _blocks(rows.n_rows, n * n * k if pairs else n * k):
            block = np.asarray(rows.block(start, stop))
            out[start:stop], found = maker.values(block, _threads(stop - start, n_threads))
            if between is not None:
                between[start:stop] = found
        return out, between

    def _maker(
        self,
        machine: DecisionMachine,
        background: Any,
        dtype: str,
        pairs: bool,
        point: float | None,
    ) -> Maker:
        if background is None:
            key = (dtype, pairs, point)
            if key not in self._by_paths:
                self._by_paths[key] = PathValues(machine, dtype, pairs, point)
            return self._by_paths[key]
        rows = background_rows(machine, background)
        known = (digest(rows), dtype, pairs)
        held = self._background
        if held is None or held[0] != known:
            held = (known, BackgroundValues(machine, rows, dtype, pairs))
            self._background = held
        return held[1]


def background_rows(machine: DecisionMachine, background: Any) -> np.ndarray:
    """The background's rows as the machine reads them; at least one."""
    rows = read_features(background, machine.columns)
    if not rows.n_rows:
        raise InputError(DOING, "a background without rows", "give at least one row")
    return np.asarray(rows.block(0, rows.n_rows))


def shap_base(machine: DecisionMachine, background: Any, output: str) -> Float[np.ndarray, "k"]:
    """What the values of a row add to: (k,) the margin, or response, with no feature known."""
    check_machine(machine)
    if output not in OUTPUTS:
        raise InputError(DOING, f"output={output!r}", f"use one of {', '.join(OUTPUTS)}")
    if background is None:
        if output == "probability":
            raise _needs_background()
        return base_values(machine)
    rows = background_rows(machine, background)
    if output == "probability":
        from ...machine.coded import coded

        return np.asarray(_response(machine, coded(machine).margin(rows)).mean(axis=0))
    return mean_margin(machine, rows)


def squeezed(machine: DecisionMachine, values: np.ndarray) -> np.ndarray:
    """The last axis goes where there is one output, as shap has it."""
    return values[..., 0] if values.shape[-1] == 1 else values


def _of_probabilities(
    machine: DecisionMachine,
    rows: Any,
    background: Any,
    dtype: str,
    pairs: bool,
    n_threads: int | None,
) -> tuple[np.ndarray, None]:
    """Values of the response: against each background row, those of the margin, rescaled.

    The margins' values of a row against one background row add up to the difference of the two
    margins. Multiplied by the difference of the responses over that of the margins, they add up to
    the difference of the responses; the mean over the background is returned. shap does the same.
    """
    from ...machine.coded import coded

    if background is None:
        raise _needs_background()
    if pairs:
        raise UnsupportedModelError(
            DOING,
            "interactions of probabilities, which have no such rescaling",
            "ask for interactions of margins",
        )
    if machine.n_outputs > 1 and not _is_identity(machine):
        raise UnsupportedModelError(
            DOING,
            f"probabilities of {machine.n_outputs} outputs that a link mixes "
            f"({machine.output.link})",
            "ask for values of the margins",
        )
    others = background_rows(machine, background)
    plain = coded(machine)
    block = np.asarray(rows.block(0, rows.n_rows))
    margin, other = plain.margin(block).astype(float), plain.margin(others).astype(float)
    response, known = (
        _response(machine, plain.margin(block)),
        _response(machine, plain.margin(others)),
    )
    total = np.zeros((len(block), machine.n_features, machine.n_outputs))
    for i in range(len(others)):
        maker = BackgroundValues(machine, others[i : i + 1], "float64", False)
        phi, _ = maker.values(block, _threads(len(block), n_threads))
        gap = margin - other[i]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(gap != 0, (response - known[i]) / gap, 0.0)
        total += phi * slope[:, None, :]
    return (total / len(others)).astype(dtype), None


def _is_identity(machine: DecisionMachine) -> bool:
    return machine.output.link == "identity"


def _response(machine: DecisionMachine, margin: np.ndarray) -> np.ndarray:
    """(m, k) responses; of two classes by one margin, the probability of the second."""
    found = np.asarray(respond(machine, margin), np.float64)
    found = found[:, None] if found.ndim == 1 else found
    return found[:, -1:] if machine.n_outputs == 1 else found


def _needs_background() -> InputError:
    return InputError(
        DOING,
        "output='probability' without a background",
        "give rows to compare with (background=rows): the share of a probability is known only "
        "against rows",
    )


def _blocks(n_rows: int, width: int) -> Iterator[tuple[int, int]]:
    """Blocks of rows whose values, in float64, take no more than a few tens of megabytes."""
    size = int(np.clip((1 << 25) // max(8 * width, 1), 64, ROWS_AT_ONCE))
    for start in range(0, n_rows, size):
        yield start, min(start + size, n_rows)


def _threads(n_rows: int, n_threads: int | None) -> int:
    if n_threads is None:
        return 1 if n_rows < ROWS_FOR_THREADS else cpu_count()
    return int(n_threads)


def _check_threads(n_threads: int | None) -> None:
    if n_threads is not None and not (isinstance(n_threads, (int, np.integer)) and n_threads > 0):
        raise InputError(
            DOING, f"n_threads={n_threads!r}", "use a whole number of at least 1, or None for all"
        )


def _dtype(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = repr(dtype)
    if name not in DTYPES:
        raise InputError(DOING, f"dtype={dtype!r}", f"use one of {', '.join(DTYPES)}")
    return name
