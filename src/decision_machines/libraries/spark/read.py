"""Folders that Spark saved: trees, random forests and boosted trees, alone or in a PipelineModel.

x is float64. Nothing of Spark is needed to read them, only pyarrow. An object is read through the
folder that it is saved to.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvariantError, UnsupportedModelError
from ...machine import DecisionMachine, Trees, layout, stored_cover
from .features import Features, Stages, plain
from .fields import INDEX_TO_STRING, MODEL, PIPELINE
from .folder import Stage, stage_of
from .nodes import Nodes, read_nodes
from .outputs import CLASSIFIERS, MODELS, total_of, values_of
from .releases import RELEASES
from .tests import read_tests

if TYPE_CHECKING:
    from ...machine import Cover, Layout

MOST_FEATURES = 1 << 22


def read_spark(model: Any) -> DecisionMachine:
    """The machine of a fitted Spark model, which is saved to a folder of this computer first."""
    kind = type(model).__name__
    doing = f"reading a Spark {kind}"
    if not hasattr(model, "write"):
        raise UnsupportedModelError(
            doing, "it cannot be saved", f"pass one of {', '.join(MODELS)}, or a PipelineModel"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.write().save(path.as_uri())
        if not (path / "metadata").is_dir():
            raise UnsupportedModelError(
                doing,
                "Spark wrote the model on another computer",
                "save it to storage that this one sees, and use dm.load(folder)",
            )
        return _read(stage_of(path, doing), f"Spark {kind}")


def read_spark_folder(folder: Path, source: str) -> DecisionMachine:
    """The machine of a folder that Spark saved a model in."""
    return _read(stage_of(folder, f"reading the Spark model {source}"), f"Spark {source}")


def _read(stage: Stage, source: str) -> DecisionMachine:
    RELEASES.note(str(stage.metadata.get("sparkVersion", "")), stage.doing)
    if stage.kind == "PipelineModel":
        return _read_pipeline(stage, source)
    if stage.kind not in MODELS:
        raise stage.refuse(
            f"it holds a {stage.kind}", f"give one of {', '.join(MODELS)}, or a PipelineModel"
        )
    n = stage.count("numFeatures")
    if n > MOST_FEATURES:
        raise stage.fault(f"numFeatures is {n}")
    return _read_model(stage, plain(n), source)


def _read_pipeline(pipeline: Stage, source: str) -> DecisionMachine:
    pipeline.check(PIPELINE)
    uids = pipeline.texts("stageUids")
    stages = [
        stage_of(pipeline.folder / "stages" / f"{i:0{len(str(len(uids)))}}_{uid}", pipeline.doing)
        for i, uid in enumerate(uids)
    ]
    at = [i for i, stage in enumerate(stages) if stage.kind in MODELS]
    if len(at) != 1:
        kinds = ", ".join(stage.kind for stage in stages)
        raise pipeline.refuse(
            f"a pipeline with {len(at)} models of trees: {kinds:.300}",
            "give a pipeline with one",
        )
    before = Stages()
    for stage in stages[: at[0]]:
        before.add(stage)
    model = stages[at[0]]
    return _read_model(model, before.of(model), source, _names(model, stages[at[0] + 1 :]))


def _names(model: Stage, after: list[Stage]) -> list[str] | None:
    """The labels that the stage after the model gives to its classes."""
    if not after:
        return None
    stage = after[0]
    if stage.kind != "IndexToString" or len(after) > 1 or model.kind not in CLASSIFIERS:
        raise stage.refuse(
            f"the stage {after[-1].kind} after the trees",
            "give a pipeline that ends with its model, or with an IndexToString of its prediction",
        )
    stage.check(INDEX_TO_STRING)
    if stage.text("inputCol") != model.text("predictionCol"):
        raise stage.refuse(
            f"an IndexToString of {stage.text('inputCol')!r:.60}, which is not the prediction",
            "give a pipeline that ends with its model, or with an IndexToString of its prediction",
        )
    return stage.texts("labels")


def _read_model(
    model: Stage, features: Features, source: str, names: list[str] | None = None
) -> DecisionMachine:
    model.check(MODEL)
    is_tree = model.kind.startswith("DecisionTree")
    nodes = read_nodes(model, None if is_tree else model.count("numTrees"))
    is_leaf = (nodes.left < 0) & (nodes.right < 0)
    found = layout(
        np.where(is_leaf, -1, nodes.left),
        np.where(is_leaf, -1, nodes.right),
        nodes.start,
        model.doing,
    )
    tests = read_tests(nodes, found, features, model)
    values = values_of(model, nodes, found.leaves, names)
    leaf_start = found.test_start + np.arange(len(found.test_start))
    leaf_ids = np.arange(leaf_start[-1]) - np.repeat(leaf_start[:-1], np.diff(leaf_start))
    try:
        return DecisionMachine(
            columns=tests.columns,
            selection=tests.selection,
            t=tests.t,
            missing=tests.missing,
            children=found.children,
            V=values.V,
            # `predictLeaf` numbers leaves as we do, from left to right.
            trees=Trees(found.test_start, values.feeds, leaf_ids=leaf_ids),
            output=values.output,
            source=source,
            cover=_cover(model, nodes, found),
        )
    except InvariantError as error:
        raise model.fault(error.found) from None


def _cover(model: Stage, nodes: Nodes, found: Layout) -> Cover | None:
    """The training weight of every node: that of its classes, or the first of its statistics."""
    if any(not len(stats) for stats in nodes.stats):
        return None
    if model.kind in CLASSIFIERS and model.kind != "GBTClassificationModel":
        held = np.array([float(total_of(stats[None])[0, 0]) for stats in nodes.stats])
    else:
        held = np.array([stats[0] for stats in nodes.stats])
    return stored_cover(held[found.tests], held[found.leaves], found.test_start)
