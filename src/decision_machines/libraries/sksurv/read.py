"""scikit-survival's trees, forests and boosted trees as machines, and as assemblies of them.

A leaf of a survival tree holds two functions of time, a cumulative hazard and a survival function.
A forest's functions are the means over its trees; its risk is the mean of what each leaf's hazards
add up to. So three machines share their tests and differ in their leaves.

Boosted trees with Cox's loss have one risk, and functions of time that all rows share, bent by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedModelError
from ...machine import Assembly, DecisionMachine, Output
from ..sklearn.read_trees import (
    assemble,
    columns_of,
    member_trees,
    require_fitted,
    source_of,
    values_of,
)
from .fields import LOSS, OWN, check_baseline, check_own_attributes
from .releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = ("risk", "cumulative hazard", "survival")
"""What the machines of a forest answer, at the end of their source."""
ANSWERS = (
    "predict", "predict_survival_function", "predict_cumulative_hazard_function", "_predict",
    "_raw_predict",
)  # fmt: skip


def read_survival(model: Any) -> DecisionMachine | Assembly:
    """The machine, or the assembly, of a fitted scikit-survival model."""
    name = next((c.__name__ for c in type(model).__mro__ if c.__name__ in READERS), None)
    if name is None:
        found, remedy = INSTEAD.get(type(model).__name__, NO_TREES)
        raise UnsupportedModelError(f"reading a {source_of(model)}", found, remedy)
    for answer in ANSWERS:
        owner = next((c for c in type(model).__mro__ if answer in vars(c)), None)
        if owner is not None and owner.__module__.split(".")[0] not in ("sksurv", "sklearn"):
            raise UnsupportedModelError(
                f"reading a {type(model).__name__}, a subclass of scikit-survival's {name}",
                f"it has a {answer} of its own",
                f"convert a plain {name}, or do what {answer} does to the machine's answers",
            )
    check_own_attributes(model)
    import sksurv

    RELEASES.note(sksurv.__version__, f"reading a {source_of(model)}")
    return READERS[name](model)


NO_TREES = (
    "it is not one of the tree models we read",
    f"convert one of {', '.join(sorted(OWN))}",
)
INSTEAD = {
    "ComponentwiseGradientBoostingSurvivalAnalysis": (
        "its base learners are linear functions of single features, not trees",
        "use its coef_, or fit a GradientBoostingSurvivalAnalysis",
    )
}


def n_machines(model: Any) -> int:
    """How many machines there are in the assembly of a model."""
    read = read_survival(model)
    return len(read.machines) if isinstance(read, Assembly) else 1


def read_tree(model: Any) -> Assembly:
    require_fitted(model, "tree_")
    return _forest(model, [model], divisor=1.0)


def read_forest(model: Any) -> Assembly:
    require_fitted(model, "estimators_")
    for i, tree in enumerate(model.estimators_):
        check_own_attributes(tree, f"estimators_[{i}].")
    return _forest(model, model.estimators_, divisor=float(len(model.estimators_)))


def _forest(model: Any, estimators: list[Any], divisor: float) -> Assembly:
    trees = [estimator.tree_ for estimator in estimators]
    is_small = bool(estimators[0].low_memory)
    reached: list[np.ndarray] = []

    def risks(i: int, nodes: np.ndarray) -> np.ndarray:
        reached.append(nodes)
        if is_small:
            return np.asarray(trees[i].value[nodes][:, :, 0])
        return _sums(trees[i].value[nodes, :, 0], np.asarray(estimators[i].is_event_time_))

    source, width = source_of(model), 1 if is_small else 2
    risk = assemble(
        trees,
        risks,
        columns_of(model),
        Output(np.zeros(width), divisor=divisor),
        f"{source}, {PARTS[0]}",
    )
    times = np.asarray(model.unique_times_, np.float64)
    if is_small:
        return Assembly("survival forest", (risk,), {"times": times}, source=source)
    output = Output(np.zeros(len(times)), divisor=divisor, squeeze=False)
    functions = [
        replace(
            risk,
            V=np.concatenate([t.value[n, :, k] for t, n in zip(trees, reached, strict=True)]),
            output=output,
            source=f"{source}, {PARTS[1 + k]}",
        )
        for k in range(2)
    ]
    return Assembly("survival forest", (risk, *functions), {"times": times}, source=source)


def _sums(hazards: np.ndarray, is_event: np.ndarray) -> np.ndarray:
    """(leaves, 2) hazards at the times of events, added up as for many rows and as for one."""
    # One leaf alone would be added up as one row.
    twice = np.concatenate([hazards, hazards])
    many = twice[:, is_event].sum(1)[: len(hazards)]
    one = [row[None][:, is_event].sum(1)[0] for row in hazards]
    return np.stack([many, one], axis=1)


def read_boosting(model: Any) -> DecisionMachine | Assembly:
    require_fitted(model, "estimators_")
    source = source_of(model)
    if model.init_ != "zero":
        raise UnsupportedModelError(
            f"reading a {source}", f"init_ = {model.init_!r:.60}", "fit it with init='zero'"
        )
    loss = type(model._loss).__name__
    if loss not in LOSSES:
        raise UnsupportedModelError(
            f"reading a {source}", f"a loss of type {loss}", "fit it with coxph, squared or ipcwls"
        )
    LOSS.check_keys(vars(model._loss), f"reading a {source}", "_loss")
    stages = model.estimators_
    trees = member_trees(model, stages.ravel().tolist(), "regressor")
    rate = np.float64(model.learning_rate)
    scales = np.asarray(model._scale) if hasattr(model, "_scale") else np.ones(len(trees))

    def values(i: int, nodes: np.ndarray) -> np.ndarray:
        found: np.ndarray = (rate * scales[i]) * values_of(trees[i], nodes, None)
        return found

    machine = assemble(
        trees, values, columns_of(model), Output(np.zeros(1), link=LOSSES[loss]), source,
        nan_goes_right=True,
    )  # fmt: skip
    shared = model._baseline_model
    if loss != "CoxPH":
        return machine
    check_baseline(model)
    return Assembly(
        "proportional hazards",
        (machine,),
        {
            "times": np.asarray(shared.unique_times_, np.float64),
            "hazard": np.asarray(shared.cum_baseline_hazard_.y),
            "survival": np.asarray(shared.baseline_survival_.y),
        },
        source=source,
    )


LOSSES = {"CoxPH": "identity", "CensoredSquaredLoss": "exp", "IPCWLeastSquaresError": "exp"}
"""What predicts, and what it makes of the sum."""
READERS: dict[str, Callable[[Any], DecisionMachine | Assembly]] = {
    "SurvivalTree": read_tree,
    "RandomSurvivalForest": read_forest,
    "ExtraSurvivalTrees": read_forest,
    "GradientBoostingSurvivalAnalysis": read_boosting,
}
