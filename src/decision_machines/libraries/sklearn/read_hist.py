"""scikit-learn's HistGradientBoosting.

All in float64: x ≤ t goes left, NaN where the node says, the sum starts at the baseline and takes
the trees in order. A categorical feature passes through the model's own ordinal encoder first,
arrays and tables alike: a label that the encoder does not know is missing. A categorical test then
has three answers: codes in its set go left, other known codes right, all else where NaN goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelFormatError, UnsupportedModelError
from ...machine import (
    CategorySets,
    Columns,
    DecisionMachine,
    Output,
    Rule,
    Trees,
    layout,
    stored_cover,
)
from .fields import HIST_NODES, check_attributes
from .read_trees import n_features_of, require_fitted, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

LINKS = {
    "squared_error": "identity",
    "absolute_error": "identity",
    "quantile": "identity",
    "poisson": "exp",
    "gamma": "exp",
}


def read_hist_gradient_boosting(model: Any) -> DecisionMachine:
    """The machine of a HistGradientBoostingClassifier or HistGradientBoostingRegressor."""
    require_fitted(model, "_predictors")
    source = source_of(model)
    predictors = [tree for stage in model._predictors for tree in stage]
    base = np.array(model._baseline_prediction, np.float64).reshape(-1)
    if any(len(stage) != len(base) for stage in model._predictors):
        raise _broken(source, f"a stage that does not have {len(base)} trees")
    nodes = [tree.nodes for tree in predictors]
    for i, predictor in enumerate(predictors):
        check_attributes(predictor, f"reading a {source}", f"tree {i}")
        HIST_NODES.check_keys(
            predictor.nodes.dtype.names, f"reading a {source}", f"tree {i}, nodes"
        )
    node_start = np.cumsum([0] + [len(n) for n in nodes])
    join = _joiner(nodes)
    is_leaf = join("is_leaf") != 0
    found = layout(
        np.where(is_leaf, -1, join("left").astype(np.int64)),
        np.where(is_leaf, -1, join("right").astype(np.int64)),
        node_start,
        f"reading a {source}",
    )
    tests = found.tests
    tree = np.repeat(np.arange(len(nodes)), np.diff(found.test_start))
    leaf_tree = np.repeat(np.arange(len(nodes)), np.diff(found.test_start) + 1)
    features = _Features(model)
    columns, selection = features.columns(
        join("feature_idx")[tests],
        join("is_categorical")[tests] != 0,
        join("bitset_idx")[tests],
        tree,
        predictors,
    )
    is_member = columns.rule[selection] == Rule.MEMBER
    return DecisionMachine(
        columns=columns,
        selection=selection.astype(np.int32),
        t=np.where(is_member, 0.5, join("num_threshold")[tests]),
        missing=np.where(join("missing_go_to_left")[tests] != 0, -1, 1).astype(np.int8),
        children=found.children,
        V=join("value")[found.leaves][:, None],
        trees=Trees(
            found.test_start,
            np.tile(np.arange(len(base)), len(model._predictors)),
            test_ids=tests - node_start[tree],
            leaf_ids=found.leaves - node_start[leaf_tree],
        ),
        output=_output(model, base),
        source=source,
        cover=stored_cover(join("count")[tests], join("count")[found.leaves], found.test_start),
    )


def _joiner(nodes: list[np.ndarray]) -> Callable[[str], np.ndarray]:
    def join(name: str) -> np.ndarray:
        return np.concatenate([n[name] for n in nodes])

    return join


def _output(model: Any, base: np.ndarray) -> Output:
    check_attributes(model._loss, f"reading a {source_of(model)}", "_loss")
    if not hasattr(model, "classes_"):
        if model.loss not in LINKS:
            raise _unknown_loss(model, tuple(LINKS))
        return Output(base, link=LINKS[model.loss])
    if model.loss != "log_loss":
        raise _unknown_loss(model, ("log_loss",))
    classes = (model.classes_,)
    if len(base) > 1:
        # Its sums lie column by column in memory, so NumPy adds the exponentials class by class.
        return Output(
            base,
            link="softmax",
            link_params=(1.0,),
            decision="argmax_margin",
            classes=classes,
        )
    return Output(
        base, link="expit", decision="margin_above", decision_params=(0.0,), classes=classes
    )


def _unknown_loss(model: Any, known: tuple[str, ...]) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"reading a {source_of(model)}",
        f"loss = {model.loss!r}, whose link we do not know",
        f"fit the model with one of {', '.join(known)}",
    )


def _broken(source: str, found: str) -> ModelFormatError:
    return ModelFormatError(
        f"reading a {source}", found, "check that the model file is whole and unedited"
    )


def _check_encoder(encoder: Any, doing: str) -> None:
    """An unknown label and a missing one are NaN, and no label shares its code with others."""
    check_attributes(encoder, doing, "_preprocessor.encoder")
    codes = (encoder.unknown_value, encoder.encoded_missing_value)
    is_known = encoder.handle_unknown == "use_encoded_value" and all(
        isinstance(code, float) and np.isnan(code) for code in codes
    )
    if not is_known or getattr(encoder, "_infrequent_enabled", False):
        raise UnsupportedModelError(
            doing,
            f"its encoder has handle_unknown = {encoder.handle_unknown!r} and the codes {codes} "
            "for unknown and missing labels, or joins rare labels",
            "encode the labels beforehand, and fit the model on their codes",
        )


class _Features:
    """The model's features as the user passes them, and in the order its trees number them."""

    def __init__(self, model: Any) -> None:
        self.source = source_of(model)
        self.n = n_features_of(model)
        names = getattr(model, "feature_names_in_", None)
        self.names = None if names is None else tuple(names)
        self.order = np.arange(self.n)
        self.labels: dict[int, tuple[Any, ...]] = {}
        self.known: dict[int, np.ndarray] = {}
        if model.is_categorical_ is None:
            return
        if getattr(model, "_preprocessor", None) is None:
            raise UnsupportedModelError(
                f"reading a {self.source}",
                "categorical features without an encoder: a model fitted before scikit-learn 1.4",
                "fit it again with scikit-learn 1.4 or newer",
            )
        is_categorical = np.asarray(model.is_categorical_, bool)
        # The trees see the categorical features first, then the others.
        self.order = np.concatenate(
            [np.flatnonzero(is_categorical), np.flatnonzero(~is_categorical)]
        )
        encoder = model._preprocessor.named_transformers_["encoder"]
        _check_encoder(encoder, f"reading a {self.source}")
        check_attributes(model._bin_mapper, f"reading a {self.source}", "_bin_mapper")
        if len(self.order) != self.n or len(encoder.categories_) != is_categorical.sum():
            raise _broken(self.source, "an encoder that does not fit the categorical features")
        for feature, labels in zip(self.order, encoder.categories_, strict=False):
            labels = np.asarray(labels).tolist()
            # The encoder keeps NaN last and encodes it as NaN.
            if labels and labels[-1] != labels[-1]:
                labels = labels[:-1]
            self.labels[int(feature)] = tuple(labels)
        for seen in np.flatnonzero(model._bin_mapper.is_categorical_):
            codes = np.asarray(model._bin_mapper.bin_thresholds_[seen]).astype(np.int64)
            if len(codes) and not (codes.min() >= 0 and codes.max() < 256):
                raise _broken(self.source, f"a category code outside 0..255 in feature {seen}")
            self.known[int(seen)] = np.isin(np.arange(256), codes)

    def columns(
        self,
        seen: np.ndarray,
        is_member: np.ndarray,
        bitset: np.ndarray,
        tree: np.ndarray,
        predictors: list[Any],
    ) -> tuple[Columns, np.ndarray]:
        """The columns that tests on these features, as the trees number them, read."""
        if len(seen) and not (seen.min() >= 0 and seen.max() < self.n):
            raise _broken(self.source, f"a test on a feature outside 0..{self.n - 1}")
        selection = self.order[seen]
        if not np.any(is_member):
            return self._columns(np.empty(0, np.int64), None), selection
        sets = [np.asarray(p.raw_left_cat_bitsets, "<u4").reshape(-1, 8) for p in predictors]
        sizes = np.array([len(s) for s in sets])
        at, owner = bitset[is_member].astype(np.int64), tree[is_member]
        if np.any(at >= sizes[owner]):
            raise _broken(self.source, "a categorical test whose set is not there")
        if not set(seen[is_member].tolist()) <= self.known.keys():
            raise _broken(self.source, "a categorical test on a feature without categories")
        words = np.concatenate(sets)[at + (np.cumsum(sizes) - sizes)[owner]]
        keys, column = np.unique(
            np.column_stack([seen[is_member], words]), axis=0, return_inverse=True
        )
        selection = selection.copy()
        selection[is_member] = self.n + column.reshape(-1)
        left = np.unpackbits(
            np.ascontiguousarray(keys[:, 1:].astype("<u4")).view(np.uint8),
            axis=1,
            bitorder="little",
        ).astype(bool)
        return self._columns(keys[:, 0], left), selection

    def _columns(self, seen: np.ndarray, left: np.ndarray | None) -> Columns:
        """Every feature as it is, then a column for each (feature, set of codes that go left)."""
        sets = None
        if left is not None:
            is_known = left | np.array([self.known[f] for f in seen.tolist()])
            which, members = np.nonzero(is_known)
            sets = CategorySets(
                start=np.concatenate([[0], np.cumsum(is_known.sum(axis=1))]),
                members=members,
                answer=np.where(left[which, members], -1, 1).astype(np.int8),
                outside=np.zeros(len(seen), np.int8),
            )
        return Columns(
            self.n,
            np.float64,
            feature=np.concatenate([np.arange(self.n), self.order[seen]]),
            rule=np.repeat([Rule.VALUE, Rule.MEMBER], [self.n, len(seen)]),
            names=self.names,
            sets=sets,
            categories=self.labels,
            encodes_arrays=bool(self.labels),
        )
