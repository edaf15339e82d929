"""InterpretML's explainable boosting machines (EBMs): sums of tables, each read as one tree.

The sum starts at the intercept and takes the terms in their order, in float64. Labels are texts;
InterpretML matches an integer, a whole number or a truth value by its digits, so that each label of
digits stands twice among the categories, as text and as integer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError, InvariantError, ModelFormatError, UnsupportedModelError
from ...machine import ALL_OUTPUTS, Accepted, Columns, DecisionMachine, Output, Rule, Trees, layout
from .fields import LEARNED
from .releases import RELEASES
from .terms import MOST_LEAVES, Grower, axes_of

KINDS = {
    "ExplainableBoostingClassifier": True,
    "ExplainableBoostingRegressor": False,
    "DPExplainableBoostingClassifier": True,
    "DPExplainableBoostingRegressor": False,
}
"""The classes that are read, and whether they classify."""
LINKS = {
    "identity": "identity",
    "log": "interpret_exp",
    "logit": "interpret_sigmoid",
    "mlogit": "interpret_softmax",
}
"""Names of links → what undoes them."""


def read_interpret(model: Any) -> DecisionMachine:
    """The machine of an EBM; it answers as `model.predict` does."""
    kind = type(model).__name__
    doing = f"reading an InterpretML {kind}"
    if kind not in KINDS:
        raise UnsupportedModelError(
            doing, "it is not an explainable boosting machine", f"pass one of {', '.join(KINDS)}"
        )
    if not getattr(model, "has_fitted_", False):
        raise InputError(doing, "it is not fitted", "call fit first")
    import interpret

    RELEASES.refuse_older(interpret.__version__, doing)
    RELEASES.note(interpret.__version__, doing)
    learned = [name for name in vars(model) if name.endswith("_") or name.startswith("_")]
    LEARNED.check_keys(learned, doing, kind)
    try:
        return _read(model, kind, doing)
    except (InvariantError, IndexError, KeyError, ValueError) as error:
        found = error.found if isinstance(error, InvariantError) else f"{error!r:.80}"
        raise ModelFormatError(
            doing, f"its attributes do not fit each other ({found})", "fit it again"
        ) from None


def _read(model: Any, kind: str, doing: str) -> DecisionMachine:
    intercept = np.atleast_1d(np.asarray(model.intercept_, np.float64))
    output = _output(model, KINDS[kind], intercept, doing)
    n, k = len(model.feature_names_in_), len(intercept)
    for name, found in zip(model.feature_names_in_, model.feature_types_in_, strict=True):
        if found not in ("continuous", "nominal", "ordinal"):
            raise UnsupportedModelError(
                doing,
                f"the feature {name!r:.60} is of type {found!r:.40}",
                "use continuous, nominal and ordinal features",
            )
    labels = {
        feature: _labels(levels, model.feature_names_in_[feature], doing)
        for feature, levels in enumerate(model.bins_)
        if levels and isinstance(levels[0], dict)
    }
    grower = Grower(n)
    for features, scores in zip(model.term_features_, model.term_scores_, strict=True):
        shape = np.shape(scores)[: len(features)]
        if np.prod(shape, dtype=np.float64) > MOST_LEAVES:
            raise UnsupportedModelError(
                doing, f"a term of shape {shape}", "fit it with fewer bins (max_interaction_bins)"
            )
        grower.term(axes_of(features, model.bins_, labels, shape))
    left, right, start = (np.asarray(a) for a in (grower.left, grower.right, grower.start))
    found = layout(left, right, start, doing)
    tree = np.repeat(np.arange(len(grower.start) - 1), np.diff(found.test_start) + 1)
    V = np.empty((len(found.leaves), k))
    for i, (term, node) in enumerate(zip(tree.tolist(), found.leaves.tolist(), strict=True)):
        V[i] = model.term_scores_[term][grower.value[node]]
    if not np.all(np.isfinite(V)):
        raise UnsupportedModelError(
            doing, "a score that is not finite (term_scores_)", "fit it on finite data"
        )
    own = grower.set_features
    columns = Columns(
        n,
        np.float64,
        feature=np.concatenate([np.arange(n), np.array(own, np.int64)]),
        rule=np.repeat([Rule.VALUE, Rule.MEMBER], [n, len(own)]),
        names=tuple(map(str, model.feature_names_in_)),
        sets=grower.category_sets(),
        categories=labels,
        encodes_arrays=bool(labels),
        accepted=Accepted(  # a table may have further columns, which are passed over
            np.full(n, -np.inf),
            np.full(n, np.inf),
            np.ones(n, bool),
            np.ones(n, bool),
            ignores_further=True,
        ),
    )
    return DecisionMachine(
        columns=columns,
        selection=np.array(grower.column, np.int64)[found.tests],
        t=np.array(grower.t)[found.tests],
        missing=np.array(grower.missing, np.int8)[found.tests],
        children=found.children,
        V=V,
        trees=Trees(found.test_start, np.full(len(grower.start) - 1, 0 if k == 1 else ALL_OUTPUTS)),
        output=output,
        source=f"InterpretML {kind}",
    )


def _output(model: Any, classifies: bool, intercept: np.ndarray, doing: str) -> Output:
    link = model.link_
    if link not in LINKS or not np.all(np.isfinite(intercept)):
        raise UnsupportedModelError(
            doing,
            f"link_ is {link!r:.40}, with intercept_ {intercept!r:.60}",
            f"fit it with one of {', '.join(LINKS)}, on two classes or more",
        )
    decision, classes = "response", None
    if classifies:
        decision = "margin_above" if len(intercept) == 1 else "argmax_margin"
        classes = (np.asarray(model.classes_),)
    return Output(intercept, np.float64, link=LINKS[link], decision=decision, classes=classes)


def _labels(levels: list[dict[str, int]], name: str, doing: str) -> tuple[Any, ...]:
    """The labels of a feature, of all its levels, and the integers that are matched with them."""
    texts = list(dict.fromkeys(label for level in levels for label in level))
    if any(not isinstance(text, str) for text in texts):
        raise UnsupportedModelError(doing, f"labels of {name!r:.60} that are not text", "use text")
    numbers = [
        int(text)
        for text in texts
        if len(text) < 19 and text.removeprefix("-").isdigit() and text.isascii()
    ]
    return (*texts, *(number for number in numbers if str(number) in texts))
