"""`tune`: a trained machine that goes on learning, end to end, and is hard again afterwards."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, UnsupportedModelError
from ...machine import DecisionMachine, single
from ...progress import Verbosity, Watch
from ..torch_setup import threads
from . import checkpoints, distributed
from .changes import result
from .checkpoints import Identity
from .descent import Setting, judge, soft_margin
from .objectives import objective_for
from .search import HARD_LEAD, SOFT_LEAD, Search
from .source_objectives import trained_for
from .subject import Subject
from .tensor_rows import read_parts
from .tuned import Tuned
from .units import import_optimizers

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

DOING = "tuning a machine"
SETTINGS = (
    Setting(0.1, 0.02, 0.02, 0.01),
    Setting(0.3, 0.02, 0.02, 0.01),
    Setting(0.5, 0.005, 0.005, 0.01),
    Setting(0.5, 0.05, 0.05, 0.01),
    Setting(0.8, 0.005, 0.005, 0.005),
    Setting(0.8, 0.05, 0.05, 0.01),
    Setting(0.3, 0.05, 0.05, 0.02, sharpen=30.0),
)
"""Tried by default: the noisier the targets, the softer; the last ends nearly hard."""
PARTS = ("t", "slope", "V", "S")
ROWS_OF_THE_BOUND = 128


def tune(
    machine: DecisionMachine | Any,
    X: Any,
    y: Any,
    *,
    validation: Any = None,
    sample_weight: Any = None,
    group: Any = None,
    objective: str | Callable[..., Any] | None = None,
    learn: Sequence[str] = ("t", "slope", "V"),
    settings: Sequence[Setting] | None = None,
    epochs: int = 12,
    patience: int = 4,
    batch_size: int = 256,
    refit: bool | DecisionMachine | Any = None,
    leads: tuple[float, float] = (SOFT_LEAD, HARD_LEAD),
    time_limit: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: Verbosity = None,
    keep_best_on_interrupt: bool = False,
    show: Verbosity = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Tuned:
    """Fine-tune a trained machine end to end: thresholds, slopes and values; then harden it.

    The machine is softened so that it starts near its own predictions, trained by gradients with
    several settings, and judged on validation rows after every epoch, soft and hardened. The source
    is a candidate itself: on the validation rows neither what is chosen as soft nor what is chosen
    as hard is worse than what went in.

    Give validation rows that the source was not trained on. On rows that it knows, its loss is too
    low to be beaten, and it comes back as it was.

    Parameters
    ----------
    machine
        A machine of any source, or a fitted model that `convert` reads.
    X, y
        Rows and targets: labels as the machine gives them, or numbers, (m,) or (m, outputs).
    validation
        (X, y), (X, y, weights) or (X, y, weights, group) to judge by; or the share of X to hold out
        for it; None holds out a fifth.
    sample_weight
        A weight for each row.
    group
        What is ranked together: an id for each row, or sizes of groups that follow one another.
        The objective is then "lambdarank" unless another is named.
    objective
        What to train for. None asks the model; for a machine it follows the link: "logistic",
        "softmax", "poisson" …, "squared" where there is none, "brier" where leaves hold
        probabilities. (A machine cannot tell an absolute error or a quantile from a squared error:
        name those.) Or a name of `objectives.NAMES`, such as "absolute", "huber:2",
        "quantile:0.9", "gamma", "tweedie:1.5". In a machine without a link, "logistic" takes the
        margins as log-odds, and `predict` gives log-odds. Or a function of (margin, y), torch
        tensors, that gives a loss for each row or their mean.
    learn
        What is trained, of "t", "slope", "V" and "S": with "S" tests become oblique.
    settings
        What is tried, instead of `SETTINGS`.
    epochs, patience, batch_size
        Epochs of a setting at most; how many without a better result end it; rows in a step.
    refit
        Whether the chosen settings are trained again, as long as they were, on training and
        validation rows together. By default only where the validation rows were held out of X: rows
        that you gave are not trained on unless you ask. It is best to give the source trained on
        all of these rows, a machine or a model: the settings are then applied to it.
        `report.soft` and `report.hard` are losses of the choice before the refit, on rows that it
        had not seen, and `before_refit` holds it. After a refit no unseen rows are left to judge it
        by. It is kept only where it is no worse than the source on the validation rows; otherwise
        the choice before it is returned.
    leads
        By how many standard errors of the difference the soft and the hard choice must be better
        than the source on validation rows; with less, the source comes back. 0 where other rows
        judge the result.
    time_limit
        Seconds. After three quarters of them no further epoch is begun: the best so far is given,
        trained again only if there is time for it. The result then depends on the computer's speed.
    seed
        The same seed, rows and options give the same result.
    n_threads
        By default as many as torch uses.
    verbose
        Whether to show progress: a bar on a terminal and in a notebook, in a pipe a line now and
        then. None shows it, too, but not for quick work in a pipe. `show` is an older name.
    keep_best_on_interrupt
        Whether Ctrl-C ends tuning early and gives the best so far, with `report.interrupted`. By
        default it raises `KeyboardInterrupt`.
    checkpoint, resume
        A file to keep the state in, after every epoch; with `resume` a run goes on from it and
        ends as it would have. A checkpoint of another machine, other rows or other options is
        refused, with the names of those that differ.

    Returns
    -------
    Tuned
        `machine`, hard; `soft`, a torch module; `report`; `history`.

    Notes
    -----
    Under ``torchrun`` every process calls this with the same arguments and gets the same result.

    Examples
    --------
    >>> import numpy as np, decision_machines as dm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 4, (200, 4))
    >>> tuned = dm.tune(dm.figure_one(), X, X @ [1.0, 2, 0, 1], epochs=2, seed=0)
    >>> tuned.report.soft < tuned.report.source and tuned.report.hard <= tuned.report.source
    True
    """
    if objective is None:
        objective = trained_for(machine) if group is None else "lambdarank"
    if not isinstance(machine, DecisionMachine):
        from ...libraries import convert

        machine = single(convert(machine), DOING)
    begin = time.perf_counter()
    verbose = show if verbose is None else verbose
    _check_numbers(epochs=epochs, patience=patience, batch_size=batch_size)
    if time_limit is not None and not time_limit >= 0:
        raise InputError(DOING, f"time_limit={time_limit!r}", "use seconds from 0, or None")
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(DOING, f"seed={seed!r}", "use a whole number of at least 0")
    learn = _check_learn(learn)
    settings = _check_settings(settings)
    _check_machine(machine)
    _check_checkpoint(checkpoint, resume)
    distributed.join()
    with threads(n_threads, DOING):
        goal = objective_for(machine, objective)
        train, valid, held_out = read_parts(
            machine, goal, X, y, sample_weight, group, validation, seed
        )
        again = _to_train_again(machine, refit, held_out is not None)
        subject = Subject(
            machine,
            goal,
            train,
            settings,
            learn=learn,
            epochs=epochs,
            batch_size=batch_size,
            seed=seed,
            n_threads=n_threads,
        )
        search = Search(subject, valid, patience=patience, leads=leads)
        _check_loss(search)
        identity = Identity.of(
            {
                "machine": machine,
                **{f"training {name}": part for name, part in train.parts().items()},
                **{f"validation {name}": part for name, part in valid.parts().items()},
                **{"objective": goal.name, "learn": learn, "settings": settings},
                **{"epochs": int(epochs), "patience": int(patience)},
                **{"batch_size": int(batch_size), "seed": int(seed), "refit": again},
                **({} if leads == (SOFT_LEAD, HARD_LEAD) else {"leads": leads}),
            },
            {
                "loss of the source on the training rows": subject.loss,
                "loss of the source on the validation rows": search.source.mean,
            },
        )
        search.save, state = _checkpoint(checkpoint, resume, identity)
        verbose = verbose if distributed.rank() == 0 else False
        keep = keep_best_on_interrupt
        import_optimizers()
        n_steps = len(settings) * epochs + 1
        search_for = None if time_limit is None else 0.75 * time_limit
        with Watch("tuning", n_steps, verbose, keep_best=keep, time_limit=search_for) as watch:
            if state is not None:
                watch.history = search.load_state_dict(state)
                watch.done = len(watch.history)
            search.run(watch)
        chosen = result(search, subject, search.soft, search.hard, watch, held_out, begin)
        if again is None or watch.interrupted:
            return chosen
        if time_limit is not None and _refit_seconds(search, watch, begin) > time_limit:
            return chosen
        with Watch("training again on all rows", None, verbose, keep_best=keep) as second:
            second.history = watch.history
            other = subject.on(again, train.joined(valid))
            soft, hard = search.refit(other, second)
        if second.interrupted:
            return replace(chosen, report=replace(chosen.report, interrupted=True))
        found = result(search, other, soft, hard, second, held_out, begin)
        return _checked_refit(search, chosen, found)


def _refit_seconds(search: Search, watch: Watch, begin: float) -> float:
    """How long the whole will have taken once the choice is trained again."""
    spent = time.perf_counter() - begin
    epochs: dict[int, int] = {}
    for choice in (search.soft, search.hard):
        if choice.setting >= 0:
            epochs[choice.setting] = max(choice.epoch, epochs.get(choice.setting, 0))
    return spent * (1 + 1.3 * sum(epochs.values()) / max(watch.done, 1))


def _checked_refit(search: Search, chosen: Tuned, found: Tuned) -> Tuned:
    """What was trained again; where it is worse than the source, what was chosen instead."""
    valid, goal = search.valid, search.subject.objective
    soft = judge(goal, soft_margin(found.soft, valid), valid).mean
    hard = search.subject.judge(found.machine, valid).mean
    report = replace(found.report, refit_soft=soft, refit_hard=hard)
    return Tuned(
        found.machine if hard <= search.source.mean else chosen.machine,
        found.soft if soft <= search.source.mean else chosen.soft,
        report,
        found.history,
        chosen,
    )


# -- checks ---------------------------------------------------------------------------------------


def _check_numbers(**numbers: Any) -> None:
    for name, number in numbers.items():
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
            raise InputError(DOING, f"{name}={number!r}", "use a whole number of at least 1")


def _check_learn(learn: Sequence[str]) -> tuple[str, ...]:
    found = (learn,) if isinstance(learn, str) else tuple(learn)
    for part in found:
        if part not in PARTS:
            raise InputError(DOING, f"learn includes {part!r}", f"use any of {', '.join(PARTS)}")
    if not found:
        raise InputError(DOING, "learn is empty", f"name any of {', '.join(PARTS)}")
    return found


def _check_settings(settings: Sequence[Setting] | None) -> list[Setting]:
    found = list(SETTINGS if settings is None else settings)
    for setting in found:
        if not isinstance(setting, Setting):
            raise InputError(
                DOING, f"settings with {setting!r}", "give instances of train.tune.descent.Setting"
            )
        rates = [setting.alpha, setting.lr_t, setting.lr_slope, setting.lr_V]
        if not 0 < setting.alpha <= 1 or not all(np.isfinite(rates)) or min(rates) < 0:
            raise InputError(DOING, f"{setting!r}", "use 0 < alpha ≤ 1 and finite rates from 0")
    if not found:
        raise InputError(DOING, "settings is empty", "give at least one Setting, or None")
    return found


def _check_machine(machine: DecisionMachine) -> None:
    if machine.output.aggregate != "sum":
        raise UnsupportedModelError(
            DOING,
            f"a machine that takes the {machine.output.aggregate} of its trees",
            "tune its trees one by one: machine.tree(i)",
        )
    if not np.all(np.isfinite(machine.V)):
        raise UnsupportedModelError(
            DOING, "a leaf value that is not finite", "correct V, or train the source again"
        )


def _to_train_again(
    machine: DecisionMachine, refit: Any, is_held_out: bool
) -> DecisionMachine | None:
    """The machine that is trained again on all rows; None for none."""
    if refit is None or isinstance(refit, (bool, np.bool_)):
        return machine if (is_held_out if refit is None else refit) else None
    from ...libraries import convert

    again = single(convert(refit), DOING)
    _check_machine(again)
    same = (again.n_features, again.n_outputs, again.output.link)
    classes = [
        None if m.output.classes is None else [c.tolist() for c in m.output.classes]
        for m in (again, machine)
    ]
    if same != (machine.n_features, machine.n_outputs, machine.output.link) or (
        classes[0] != classes[1]
    ):
        raise InputError(
            DOING,
            f"refit={again!r} for the source {machine!r}",
            "give the same kind of model, trained on training and validation rows",
        )
    return again


def _check_loss(search: Search) -> None:
    if not np.isfinite(search.source.mean):
        raise InputError(
            DOING,
            "the source's own loss on the validation rows is not finite",
            "check the objective and scale the targets to a sensible range",
        )


def _checkpoint(
    path: str | os.PathLike[str] | None, resume: bool, identity: Identity
) -> tuple[Callable[[dict[str, Any]], None] | None, dict[str, Any] | None]:
    """What saves the state, and the state to go on from."""
    if path is None:
        return None, None
    state = checkpoints.load(path, identity) if resume else None
    return lambda now: checkpoints.save(path, identity, now), state


def _check_checkpoint(path: str | os.PathLike[str] | None, resume: bool) -> None:
    """Refuse, before any work, a checkpoint that could not be written or is not named."""
    if path is None:
        if resume:
            raise InputError(DOING, "resume=True without a checkpoint", "name its file")
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InputError(
            DOING,
            f"checkpoint={str(path)!r} in a folder that does not exist",
            f"make {folder} first",
        )
