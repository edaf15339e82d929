"""What tuning changed: the machines of the choices, and the report on them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...machine.coded import coded
from .subject import SOURCE
from .tuned import Report, Start, Tuned

if TYPE_CHECKING:
    from ...machine import DecisionMachine
    from ...progress import Watch
    from .search import Search
    from .subject import Choice, Subject

ROWS_OF_THE_BOUND = 128


def result(
    search: Search,
    subject: Subject,
    soft: Choice,
    hard: Choice,
    watch: Watch,
    held_out: np.ndarray | None,
    begin: float,
) -> Tuned:
    """The machines of the choices, and the report."""
    net, machine = subject.soft_machine(soft), subject.hard_machine(hard)
    settings = subject.settings
    report = Report(
        objective=subject.objective.name,
        n_train=len(search.subject.rows),
        n_validation=len(search.valid),
        source=search.source.mean,
        soft=soft.loss,
        hard=hard.loss,
        leads=(search.best_soft.lead, search.best_hard.lead),
        chosen_soft=soft.words(settings),
        chosen_hard=hard.words(settings),
        trials=search.trials,
        start=_start(subject, soft),
        n_tests=machine.n_tests,
        **_changes(subject, machine, net, soft, settings[max(hard.setting, 0)].alpha),
        interrupted=watch.interrupted,
        seconds=time.perf_counter() - begin,
        validation_rows=held_out,
    )
    return Tuned(machine, net, report, watch.history)


def _changes(
    subject: Subject, machine: DecisionMachine, net: Any, soft: Choice, alpha: float
) -> dict[str, Any]:
    source = subject.machine
    t, was = (np.nan_to_num(m.t.astype(np.float64)) for m in (machine, source))
    moved = np.abs(t - was) / subject.widths.width(alpha)
    spread = float(np.std(source.V)) if source.V.size else 0.0
    factor = 1.0
    if soft.setting != SOURCE and source.n_tests:
        begun = np.log(subject.widths.slope(subject.settings[soft.setting].alpha))
        now = (net.log_slope - net.log_tau).detach().numpy()
        factor = float(np.exp(np.median(now - begun)))
    return {
        "thresholds_moved": int(np.count_nonzero(moved)),
        "median_move": float(np.median(moved[moved > 0])) if np.any(moved > 0) else 0.0,
        "value_change": float(np.sqrt(np.mean((machine.V / spread - source.V / spread) ** 2)))
        if spread
        else 0.0,
        "slope_factor": factor,
    }


def _start(subject: Subject, soft: Choice) -> Start | None:
    """How far the softened source is from the source on training rows, and the bound of it."""
    machine = subject.machine
    rows = subject.rows.x[:ROWS_OF_THE_BOUND]
    if machine.linear is not None or not machine.n_trees:
        return None
    alpha = subject.settings[max(soft.setting, 0)].alpha
    net = subject.soften(alpha)
    with torch.no_grad():
        margin, weights = net._margin(rows, True)
    assert weights is not None
    plain = coded(machine)
    exits = torch.from_numpy(plain.apply(rows.numpy()).astype(np.int64))
    exits = exits + torch.from_numpy(machine.trees.leaf_start[:-1])
    V = np.asarray(machine.V, np.float64)
    starts = machine.trees.leaf_start[:-1]
    spread = np.maximum.reduceat(V, starts) - np.minimum.reduceat(V, starts)
    lost = (1 - weights.gather(1, exits)).clamp(min=0.0)
    factor = abs(machine.output.scale / machine.output.divisor)
    bound = lost.double() @ torch.from_numpy(spread.max(1)) * factor
    gap = (margin - torch.from_numpy(plain.margin(rows.numpy()).astype(np.float64))).abs()
    return Start(alpha, float(bound.max()), float(gap.max()), float(gap.mean()))
