"""XGBoost's boosters, scikit-learn wrappers and model files (JSON and UBJSON).

x is cast to float32. The sum starts at the margin of base_score and takes the leaves in tree
order, in float32 throughout. A booster is read through the bytes that it saves, so objects and
files go one way.

What `predict` answers depends on who asks. `Booster.predict` uses all trees and knows NaN alone for
missing. A wrapper stops after its best iteration, has a `missing=` value, and a classifier answers
with labels. A file saved by a wrapper says so in `learner.attributes.scikit_learn` and is read as
the wrapper that loads it (which has forgotten `missing=`, for XGBoost does not save it).

Wrappers predict in place. For DART, until 3.2, that is another sum than `Booster.predict`: the base
score is added to each leaf and taken away again, which rounds. Both are reproduced. (Given a COO or
CSC matrix, such a wrapper falls back to the booster's sum; its machine does not.) From 3.3 on there
is one sum, and trees of vector leaves have weights, too.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import InputError, InvariantError, ModelFormatError, UnsupportedModelError
from ...machine import DecisionMachine
from ..document import WHOLE, Document, read_json
from .fields import DOCUMENT
from .objectives import OBJECTIVES, base_margins, output_of
from .read_binary import read_binary
from .read_trees import leaf_width, read_forest, stored_trees
from .releases import RELEASES
from .ubjson import read_ubjson

CUTS_LABELS_BY_BYTES = (3, 4)
"""The first release that stores labels beyond ASCII as they are."""


@dataclass(frozen=True)
class Asker:
    """Who calls predict, and what that changes."""

    is_wrapper: bool = False
    n_classes: int | None = None
    """Of a classifier that answers with labels."""
    n_rounds: int | None = None
    """How many boosting rounds are used; None for all."""
    missing: float = math.nan


def read_xgboost(model: Any) -> DecisionMachine:
    """The machine of a booster or a scikit-learn wrapper; it answers as `model.predict` does.

    Paper: cites `chen2015xgboost`.
    """
    kind = type(model).__name__
    doing, source = f"reading an XGBoost {kind}", f"XGBoost {kind}"
    booster, asker = model, Asker()
    if hasattr(model, "get_booster"):
        booster = _booster_of(model, doing)
        best = booster.attr("best_iteration")
        n_classes = getattr(model, "n_classes_", None)
        asker = Asker(
            is_wrapper=True,
            # Trained on one class, XGBoost still decides between 0 and 1.
            n_classes=None if n_classes is None else max(n_classes, 2),
            n_rounds=None if best is None else int(best) + 1,
            missing=math.nan if model.missing is None else float(model.missing),
        )
    if not hasattr(booster, "save_raw"):
        raise UnsupportedModelError(
            doing, "it is neither a Booster nor a scikit-learn wrapper", "pass one of these"
        )
    try:
        raw = booster.save_raw(raw_format="ubj")
    except MemoryError:
        raise
    except Exception as error:  # XGBoostError: it has no class of its own for "no model yet"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(doing, f"XGBoost cannot save it ({reason})", "train it first") from None
    machine = _read(Document(read_ubjson(bytes(raw), doing), doing), asker, source)
    return _linked_as_built(machine)


def _linked_as_built(machine: DecisionMachine) -> DecisionMachine:
    """survival:aft: a build with CUDA exponentiates in float32, one without it in float64.

    A file does not tell which build wrote it, and is read as by one without CUDA.
    """
    if machine.output.link != "xgboost_rounded_exp":
        return machine
    import xgboost

    if not xgboost.build_info().get("USE_CUDA"):
        return machine
    return replace(machine, output=replace(machine.output, link="xgboost_exp"))


def read_xgboost_bytes(data: bytes, source: str = "model file") -> DecisionMachine:
    """The machine of a saved model, JSON or UBJSON.

    It answers as `Booster.predict` does; as the wrapper's `predict`, if a wrapper saved it.
    """
    data = data.encode() if isinstance(data, str) else bytes(data)
    doing = f"reading the XGBoost model {source}"
    parse = read_ubjson if _is_ubjson(data) else read_json
    document = Document(parse(data, doing), doing)
    return _read(document, _saved_by(document), f"XGBoost {source}")


def read_xgboost_binary(data: bytes, source: str = "model file") -> DecisionMachine:
    """The machine of an old binary file, which XGBoost 3.1 and newer do not read."""
    doing = f"reading the XGBoost model {source}"
    content, is_margin = read_binary(data, doing)
    document = Document(content, doing)
    return _read(document, Asker(), f"XGBoost {source}", base_is_margin=is_margin)


def looks_like_xgboost(data: bytes) -> bool:
    """Whether the content starts as a model saved by XGBoost does."""
    if _is_ubjson(data):
        return b"learner" in data[:64]
    return (
        bytes(data[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and b'"learner"' in data[:4096]
    )


def _is_ubjson(data: bytes) -> bool:
    # In JSON a quote, a brace or white space follows the first brace.
    return data[:1] == b"{" and data[1:2] in (b"i", b"U", b"I", b"l", b"L", b"#", b"$")


def _booster_of(model: Any, doing: str) -> Any:
    try:
        return model.get_booster()
    except MemoryError:
        raise
    except Exception as error:  # sklearn's NotFittedError, or AttributeError in old versions
        raise InputError(doing, f"it is not fitted ({error})", "call fit first") from None


def _saved_by(document: Document) -> Asker:
    """The wrapper that saved a file, as far as the file tells."""
    learner = document.child("learner")
    attributes = learner.child("attributes") if "attributes" in learner else None
    if attributes is None or "scikit_learn" not in attributes:
        return Asker()
    try:
        kind = json.loads(attributes.text("scikit_learn")).get("_estimator_type")
    except (ValueError, AttributeError, RecursionError):
        raise document.fault("learner.attributes.scikit_learn is not a JSON object") from None
    n_classes = None
    if kind == "classifier":
        n_classes = max(learner.child("learner_model_param").integer("num_class"), 2)
    best = attributes.integer("best_iteration") + 1 if "best_iteration" in attributes else None
    return Asker(is_wrapper=True, n_classes=n_classes, n_rounds=best)


# ---------------------------------------------------------------------- from document to machine


def _read(
    document: Document, asker: Asker, source: str, *, base_is_margin: bool = False
) -> DecisionMachine:
    learner = document.child("learner")
    booster = learner.child("gradient_booster")
    kind = booster.text("name")
    if kind not in ("gbtree", "dart"):
        raise UnsupportedModelError(
            document.doing,
            f"learner.gradient_booster.name is {kind!r}, which has no trees"
            if kind == "gblinear"
            else f"learner.gradient_booster.name is {kind!r}",
            "train with booster='gbtree' or booster='dart'",
        )
    DOCUMENT.check(document.value, document.doing)
    name = learner.child("objective").text("name")
    if name not in OBJECTIVES:
        raise UnsupportedModelError(
            document.doing,
            f"learner.objective.name is {name!r}, whose link we do not know",
            f"train with one of {', '.join(sorted(OBJECTIVES))}",
        )
    release = tuple(document.array("version", np.int64).tolist())
    RELEASES.note(".".join(map(str, release)), document.doing)
    try:
        return _assemble(learner, booster, kind, name, asker, source, release, base_is_margin)
    except InvariantError as error:
        raise ModelFormatError(document.doing, error.found, WHOLE) from None


def _assemble(
    learner: Document,
    booster: Document,
    kind: str,
    name: str,
    asker: Asker,
    source: str,
    release: tuple[int, ...],
    base_is_margin: bool,
) -> DecisionMachine:
    doing = learner.doing
    param = learner.child("learner_model_param")
    model = (booster.child("gbtree") if "gbtree" in booster else booster).child("model")
    trees = stored_trees(model)
    n_features = param.integer("num_feature")
    n_outputs = _n_outputs(param, trees, doing)
    feeds = model.array("tree_info", np.int64)
    weights = _dart_weights(booster, model)
    for key, array in (("tree_info", feeds), ("weight_drop", weights)):
        if array is not None and len(array) != len(trees):
            raise learner.fault(f"{key} has {len(array)} entries for {len(trees)} trees")
    if len(feeds) and not (feeds.min() >= 0 and feeds.max() < n_outputs):
        raise learner.fault(f"tree_info names an output outside 0..{n_outputs - 1}")
    if not 0 <= n_features < 2**31:
        raise learner.fault(f"{param.name('num_feature')} is {n_features}")
    n_used = _n_used(model, trees, n_outputs, asker, doing)
    base = base_margins(name, param, n_outputs, bool(len(trees)), release, is_margin=base_is_margin)

    def value(leaf: np.ndarray, tree: np.ndarray) -> np.ndarray:
        if weights is None:
            return leaf
        if asker.is_wrapper and kind == "dart":
            leaf = (leaf + base[feeds[tree]]) - base[feeds[tree]]
        found: np.ndarray = leaf * (weights[tree] if leaf.ndim == 1 else weights[tree, None])
        return found

    with np.errstate(over="ignore", invalid="ignore"):
        forest = read_forest(
            trees[:n_used],
            feeds[:n_used],
            n_outputs,
            n_features,
            value,
            doing,
            names=_names(learner, n_features),
            categories=_labels(model, n_features, release),
            absent=math.nan,
            refuses_new_labels=True,
            missing_value=float(np.float32(asker.missing)),
        )
    return DecisionMachine(
        **vars(forest), output=output_of(name, base, asker.n_classes, release), source=source
    )


def _dart_weights(booster: Document, model: Document) -> np.ndarray | None:
    """The weight of each tree in DART; None in other models.

    Until 3.2 the booster is named "dart" and has them itself; 3.3 saves it as "gbtree", and 3.4
    puts them beside the trees.
    """
    holders = [part for part in (booster, model) if "weight_drop" in part]
    if len(holders) > 1:
        raise booster.fault("weight_drop stands in the booster and in its model")
    if not holders:
        if booster.text("name") == "dart":
            raise booster.fault(f"{booster.name('weight_drop')} is missing")
        return None
    return holders[0].array("weight_drop", np.float32)


def _n_outputs(param: Document, trees: list[dict[str, Any]], doing: str) -> int:
    n_class = param.integer("num_class") if "num_class" in param else 0
    n_target = param.integer("num_target") if "num_target" in param else 1
    if min(n_class, n_target) > 1:
        raise param.fault(
            f"{n_class} classes (num_class) and {n_target} targets (num_target) at once"
        )
    n_outputs = max(n_class, n_target, 1)
    # A round of boosting makes a tree for each output, or trees whose leaves hold them all.
    if n_outputs > max(len(trees), leaf_width(trees, doing), 4096):
        raise param.fault(f"{n_outputs} outputs (num_class, num_target) from {len(trees)} trees")
    return n_outputs


def _n_used(
    model: Document, trees: list[dict[str, Any]], n_outputs: int, asker: Asker, doing: str
) -> int:
    """How many trees predict: all, or those up to the best round."""
    if "iteration_indptr" in model:
        ends = model.array("iteration_indptr", np.int64)
        if not len(ends) or ends[0] != 0 or np.any(np.diff(ends) < 0) or ends[-1] != len(trees):
            raise model.fault(
                f"{model.name('iteration_indptr')} does not divide {len(trees)} trees"
            )
    else:
        param = model.child("gbtree_model_param")
        parallel = param.integer("num_parallel_tree") if "num_parallel_tree" in param else 1
        per_round = max(parallel, 1) * (n_outputs if leaf_width(trees, doing) == 1 else 1)
        ends = np.arange(0, len(trees) + 1, min(per_round, len(trees) + 1))
    if asker.n_rounds is None:
        return len(trees)
    if not 1 <= asker.n_rounds < len(ends):
        raise model.fault(
            f"best_iteration is {asker.n_rounds - 1} of {len(ends) - 1} boosting rounds"
        )
    return int(ends[asker.n_rounds])


def _names(learner: Document, n_features: int) -> tuple[str, ...] | None:
    names = learner.texts("feature_names") if "feature_names" in learner else []
    if names and len(names) != n_features:
        raise learner.fault(f"{len(names)} names (feature_names) for {n_features} features")
    return tuple(names) or None


def _labels(
    model: Document, n_features: int, release: tuple[int, ...]
) -> dict[int, tuple[Any, ...]]:
    """Labels of the features that were trained as categories of a table.

    Before 3.4 XGBoost cuts its store of labels by characters where it counts bytes, so labels
    beyond ASCII cannot be told apart from it; such a feature is left without labels and takes
    codes only.
    """
    if "cats" not in model:
        return {}
    cats = model.child("cats")
    stored = cats.objects("enc") if "enc" in cats else []
    if len(stored) not in (0, n_features):
        raise cats.fault(f"{cats.name('enc')} has {len(stored)} entries for {n_features} features")
    found = {}
    for feature, item in enumerate(stored):
        part = Document(item, model.doing, f"{cats.name('enc')}[{feature}]")
        values = part.array("values", np.int64)
        if "offsets" not in part:
            labels: tuple[Any, ...] = tuple(values.tolist())
        else:
            ends = part.array("offsets", np.int64)
            if np.any(np.diff(ends) < 0) or (
                len(ends) and (ends[0] != 0 or ends[-1] != len(values))
            ):
                raise part.fault(f"{part.name('offsets')} does not divide {len(values)} bytes")
            raw = (values & 0xFF).astype(np.uint8).tobytes()
            if not raw.isascii() and release < CUTS_LABELS_BY_BYTES:
                continue
            try:
                labels = tuple(
                    raw[a:b].decode()
                    for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
                )
            except UnicodeDecodeError:
                raise part.fault(f"{part.name('values')} is not UTF-8") from None
        if len(set(labels)) != len(labels):
            raise part.fault(f"{part.name('values')} names a category twice")
        if labels:
            found[feature] = labels
    return found
