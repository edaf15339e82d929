"""Pipelines and what they hold, read: steps folded into whatever model stands last."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import InputError, UnsupportedModelError
from ....machine import Assembly, Columns, DecisionMachine
from ....run.inputs.accepted import arithmetic
from ....run.inputs.features import is_table
from ....run.inputs.tables import match_names, native_table
from ... import convert
from ..fields import check_attributes
from ..read_meta import reader_of
from ..read_trees import is_active
from .fold import fold
from .graph import Graph, blocks_of, graph_of

if TYPE_CHECKING:
    from collections.abc import Collection


def read_pipeline(model: Any, sample: Any = None, monotone: Collection[Any] = ()) -> Any:
    """The machine of a fitted Pipeline.

    Parameters
    ----------
    sample
        Rows as they will be given, for the dtypes of their columns.
    monotone
        Steps that the user declares to be monotone functions of single columns: their names,
        their classes or their functions.
    """
    check_attributes(model, "reading a Pipeline")
    *before, (_, last) = model.steps
    if not any(is_active(step) for _, step in before):
        return convert(last, sample, monotone=monotone)
    n, names = _features_of(model, [step for _, step in before])
    graph = graph_of(n, names, monotone)
    if sample is not None:
        trial = graph.then(before)
        graph.raw.dtypes.update(_dtypes(sample, trial))
        graph.raw.steps.clear()
    return read_member(graph.then(before), last)


def read_member(graph: Graph, model: Any) -> Any:
    """The machine of a model that reads what the graph's steps make of raw features."""
    if type(model).__name__ == "Pipeline":
        check_attributes(model, "reading a Pipeline")
        *before, (_, last) = model.steps
        return read_member(graph.then(before), last)
    if hasattr(model, "best_estimator_"):
        return read_member(graph, model.best_estimator_)
    reader = reader_of(model)
    if reader is not None:
        _refuse_fed_by_steps(graph, model)
        return reader(model, lambda member: read_member(graph, member))
    return _folded(graph, model, convert(model))


def _refuse_fed_by_steps(graph: Graph, model: Any) -> None:
    """Models that give what the steps make of X to a member, beside answers of other members."""
    is_chain = hasattr(model, "chain_method_") or hasattr(model, "order_")
    if graph.transforms and (is_chain or getattr(model, "passthrough", False)):
        found = "a chain" if is_chain else "a stack with passthrough = True"
        raise UnsupportedModelError(
            "folding a pipeline",
            f"{found} ({type(model).__name__}) behind steps: a member reads columns of the steps "
            "beside answers of other members",
            "run the steps yourself, pipe[:-1].transform(X), and convert the last step alone",
        )


def _folded(graph: Graph, model: Any, read: DecisionMachine | Assembly) -> Any:
    """The model's machine with the steps folded in; of an assembly, every machine."""
    if isinstance(read, DecisionMachine):
        return fold(graph, model, read)
    return replace(read, members=tuple(_folded(graph, model, one) for one in read.members))


def _features_of(model: Any, steps: list[Any]) -> tuple[int, tuple[str, ...] | None]:
    """How many features a pipeline reads, and their names."""
    first = next(step for step in steps if is_active(step))
    n = getattr(first, "n_features_in_", None)
    names = getattr(first, "feature_names_in_", None)
    if n is None:
        try:
            n = model.n_features_in_
        except AttributeError:
            n = None
    if n is None:
        raise InputError(
            "reading a scikit-learn Pipeline",
            f"its first step, a {type(first).__name__}, does not say how many features it reads",
            "fit the pipeline with a current scikit-learn",
        )
    return int(n), None if names is None else tuple(str(name) for name in names)


def _dtypes(sample: Any, graph: Graph) -> dict[int, np.dtype[Any]]:
    """The dtype of every feature in a sample that some step computes with in float32."""
    found = _given_dtypes(sample, graph)
    single = np.dtype(np.float32)
    result: dict[int, np.dtype[Any]] = {}
    for block in blocks_of(graph):
        if arithmetic([found[f] for f in block if f in found]) == "float32":
            result.update(dict.fromkeys(block, single))
    return result


def _given_dtypes(sample: Any, graph: Graph) -> dict[int, np.dtype[Any]]:
    n, names = graph.raw.n_features, graph.raw.names
    if not is_table(sample):
        dtype = np.asarray(sample).dtype
        return dict.fromkeys(range(n), dtype if dtype.kind in "biuf" else np.dtype(float))
    table = native_table(sample)
    order = match_names(list(table.columns), Columns(n, names=names)) if names else range(n)
    found = {}
    for feature, position in enumerate(order):
        series = table[:, position]
        if series.dtype.is_numeric():
            values = np.asarray(series.head(1).to_numpy())
            found[feature] = values.dtype if values.dtype.kind in "biuf" else np.dtype(float)
    return found
