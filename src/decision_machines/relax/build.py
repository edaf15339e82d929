"""Checking what `soften` is asked for, and building the module."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import InputError, MissingLibraryError, UnsupportedModelError
from ..machine.look_ups import check_single_features
from .forms import Form, choose_form
from .gaps import Gaps
from .linear_attention import FEATURE_MAPS
from .selection import SELECTIONS
from .weighing import Given, check_given

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..machine import DecisionMachine
    from .module import SoftMachine

DOING = "softening a machine"
PARTS = ("S", "t", "slope", "keys", "V", "tau", "prior", "alpha")
OF_ENTMAX = (
    "sparsemax",
    "entmax15",
    "entmax",
    "sparsegen",
    "sparsehourglass",
    "fusedmax",
    "oscarmax",
)
"""Weights whose sparse projections the `entmax` package makes."""
HEAD_PARTS = ("W_Q", "W_K", "W_V", "W_O")


@dataclass(frozen=True)
class Options:
    """What was asked for besides the form, checked."""

    tau: float
    given: Given
    slope: Any
    learn: tuple[str, ...]
    selection: str
    gap: float
    output: str
    dtype: torch.dtype
    feature_map: str
    n_random: int
    seed: int
    gaps: Gaps


def build(
    machine: DecisionMachine,
    form: str | None = "soft_tree",
    *,
    query: str | None = None,
    keys: str | None = None,
    weights: str | None = None,
    tau: float = 1.0,
    alpha: float | None = None,
    strength: float | None = None,
    budget: Any = None,
    prior: Any = None,
    k: int | None = None,
    sample_tau: float | None = None,
    slope: Any = 1.0,
    learn: Iterable[str] = ("t", "slope", "V"),
    selection: str | None = None,
    gap: float | None = None,
    output: str = "response",
    dtype: Any = None,
    mask: Iterable[int] = (),
    feature_map: str = "elu",
    n_random: int = 64,
    seed: int = 0,
    data: Any = None,
) -> SoftMachine:
    """A module of the machine; see `DecisionMachine.soften`."""
    name, chosen = choose_form(form, query, keys, weights)
    check_single_features(machine, DOING)
    _check_machine(machine, chosen)
    learned = _check_learn(learn, name)
    if selection is None:
        selection = "oblique" if machine.is_oblique or "S" in learned else "fixed"
    _check_selection(machine, selection, learned)
    for what, choice, table in (
        ("output", output, ("response", "margin")),
        ("feature_map", feature_map, (*FEATURE_MAPS, "random")),
    ):
        if choice not in table:
            raise InputError(DOING, f"{what}={choice!r}", f"use one of {', '.join(table)}")
    if not isinstance(n_random, int) or n_random < 1:
        raise InputError(DOING, f"n_random={n_random!r}", "use a whole number of at least 1")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(DOING, f"seed={seed!r}", "use a whole number of at least 0")
    if selection in ("sparse", "hard") or chosen.weights in OF_ENTMAX:
        _check_entmax()
    options = Options(
        tau=check_tau(tau),
        given=check_given(
            machine,
            chosen.weights,
            learned,
            alpha=alpha,
            strength=strength,
            budget=budget,
            prior=prior,
            k=k,
            sample_tau=sample_tau,
        ),
        slope=_check_slope(slope, machine.n_tests),
        learn=learned,
        selection=selection,
        gap=_check_gap(gap, selection),
        output=output,
        dtype=check_dtype(dtype, machine),
        feature_map=feature_map,
        n_random=n_random,
        seed=int(seed),
        gaps=Gaps.of(machine, data),
    )
    if name == "multi_head":
        from .attention import MultiHeadMachine

        return MultiHeadMachine(machine, chosen, options).mask(mask)
    from .module import SoftMachine

    return SoftMachine(machine, chosen, options).mask(mask)


def check_tau(tau: Any) -> float:
    """A temperature: a positive, finite number."""
    try:
        value = float(tau)
    except (TypeError, ValueError):
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise InputError(
            DOING, f"tau={tau!r}", "use a positive number; the smaller, the nearer to the tree"
        )
    return value


def _check_machine(machine: DecisionMachine, form: Form) -> None:
    if machine.output.aggregate != "sum":
        raise UnsupportedModelError(
            DOING,
            f"output.aggregate={machine.output.aggregate!r}: the machine takes the "
            f"{machine.output.aggregate} of its trees, which is not a weighted sum",
            "soften its trees one by one: machine.tree(i).soften(...)",
        )
    if machine.linear is not None and form.weights == "kernel":
        raise UnsupportedModelError(
            DOING,
            "leaves that are linear functions, whose sums depend on the row",
            "use another form, such as 'soft_tree' or 'softmax'",
        )


def _check_learn(learn: Iterable[str], name: str) -> tuple[str, ...]:
    learned = (learn,) if isinstance(learn, str) else tuple(learn)
    allowed = PARTS + (HEAD_PARTS if name == "multi_head" else ())
    for part in learned:
        if part not in allowed:
            raise InputError(DOING, f"learn includes {part!r}", f"use any of {', '.join(allowed)}")
    if name == "linear" and "keys" in learned:
        raise InputError(
            DOING,
            "learned keys in linear attention, whose sums over leaves rest on B's three values",
            "leave 'keys' out of learn, or use form='softmax'",
        )
    return learned


def _check_selection(machine: DecisionMachine, selection: str, learned: tuple[str, ...]) -> None:
    if selection not in SELECTIONS:
        raise InputError(DOING, f"selection={selection!r}", f"use one of {', '.join(SELECTIONS)}")
    if machine.is_oblique and selection != "oblique":
        raise InputError(
            DOING,
            f"selection={selection!r} for an oblique machine, whose tests weigh several columns",
            "use selection='oblique'",
        )
    if selection == "fixed" and "S" in learned:
        raise InputError(
            DOING,
            "learn includes 'S' and selection='fixed'",
            "use selection='sparse', 'hard' or 'oblique' to learn S",
        )


def _check_entmax() -> None:
    try:
        import entmax  # noqa: F401
    except ImportError:
        raise MissingLibraryError(
            DOING, "entmax is not installed", "pip install 'decision-machines[torch]'"
        ) from None


def _check_slope(slope: Any, n_tests: int) -> np.ndarray:
    found = np.asarray(
        slope.detach().cpu() if isinstance(slope, torch.Tensor) else slope, np.float64
    )
    is_slope = (found > 0) & np.isfinite(found)
    if found.shape not in ((), (n_tests,)) or not np.all(is_slope):
        raise InputError(
            DOING,
            f"a slope of {found[~is_slope].tolist()[0]}"
            if not np.all(is_slope)
            else f"slope of shape {found.shape}",
            f"give one positive finite number, or one for each of the {n_tests} tests",
        )
    return found


def _check_gap(gap: float | None, selection: str) -> float:
    if gap is None:
        return 1.0
    if not (isinstance(gap, (int, float)) and gap > 0 and math.isfinite(gap)):
        raise InputError(DOING, f"gap={gap!r}", "use a positive number")
    return float(gap)


def check_dtype(dtype: Any, machine: DecisionMachine) -> torch.dtype:
    """The dtype asked for, or the one in which the machine is reproduced exactly."""
    if dtype is None:
        exact = np.result_type(machine.columns.dtype, machine.V.dtype, machine.output.dtype)
        return torch.float32 if exact == np.float32 else torch.float64
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise InputError(DOING, f"dtype={dtype!r}", "use torch.float32 or torch.float64")
    return dtype
