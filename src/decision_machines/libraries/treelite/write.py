"""A machine as a Treelite model, made with Treelite's model builder.

Treelite compares and adds in one type. A machine that adds in float32 is a model of float32, to be
given float32 data; one that adds in float64 is a model of float64, to be given float64 data, with
thresholds that take the place of a cast to float32 where the machine has one. Base scores are trees
of one leaf, before the others or after them: Treelite's own pass through text and lose digits.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InexactWarning
from ...machine import Rule, links
from ..limits import Limits, flags, margins_only, memberships, missing_answers, require
from ..nodes import nodes_of
from ..write_thresholds import double_thresholds

if TYPE_CHECKING:
    from ...machine import DecisionMachine, Output
    from ..limits import Membership

WRITTEN = {
    links.IDENTITY: "identity",
    links.SIGMOID: "sigmoid",
    links.SOFTMAX: "softmax",
    links.EXPONENTIAL: "exponential",
    links.SIGNED_SQUARE: "signed_square",
}
"""Treelite's postprocessor for each family; all but the first are computed in its own way."""
REFUSED = {
    links.SOFTPLUS: "log(1 + exp) is not written as a postprocessor of Treelite",
    links.STEP: "a step at 0 is not written as a postprocessor of Treelite",
    links.ISOLATION: "Treelite divides depths by a constant of its own",
    links.ANOMALY: "Treelite's isolation forests are written with averages of its own",
    links.CLAMPED: "Treelite does not hold sums between 0 and 1",
    links.ADABOOST: "Treelite's softmax does not divide margins by the number of classes",
    links.OPPOSED: "Treelite links all outputs in one way",
    links.MEAN_AND_VARIANCE: "Treelite links all outputs in one way",
    links.SORTED: "Treelite does not sort the outputs of a row",
    links.INCREMENTS: "Treelite does not add one output to the next",
    links.STEPS: "Treelite has one postprocessor and no steps",
}
"""Why links of the other families are refused."""


def to_treelite(machine: DecisionMachine, *, margins: bool = False) -> Any:
    """A `treelite.Model`; see `DecisionMachine.to_treelite`."""
    machine = margins_only(machine) if margins else machine
    limits = Limits(machine, "a Treelite model")
    require("treelite", limits.doing)
    from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

    _check(machine, limits)
    output, k = machine.output, machine.n_outputs
    link, alpha = _link(output, limits)
    # Classes share a target, and so a softmax; what is not classified are targets of their own.
    by_class = link in ("softmax", "multiclass_ova", "identity_multiclass")
    has_base = bool(np.any(output.base))
    is_vector = not machine.is_narrow and k > 1
    n_ends = (1 if is_vector else k) if has_base else 0
    n_trees = machine.n_trees + n_ends
    shape = (1, k) if by_class else (k, 1)
    feeds = np.maximum(machine.trees.feeds, 0).tolist()
    ends = list(range(n_ends))
    fed = [*ends, *feeds] if output.base_first else [*feeds, *ends]
    fed = [-1] * n_trees if is_vector else fed
    averages = _averages(output, n_trees, limits)
    builder = ModelBuilder(
        threshold_type=output.dtype.name,
        leaf_output_type=output.dtype.name,
        metadata=Metadata(
            num_feature=machine.n_features,
            task_type="kMultiClf"
            if by_class
            else "kBinaryClf"
            if link == "sigmoid"
            else "kRegressor",
            average_tree_output=averages,
            num_target=1 if by_class else k,
            num_class=[k] if by_class else [1] * k,
            leaf_vector_shape=shape if is_vector else (1, 1),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=n_trees,
            target_id=[0] * n_trees if by_class else fed,
            class_id=fed if by_class else [0] * n_trees,
        ),
        postprocessor=PostProcessorFunc(name=link, sigmoid_alpha=alpha),
        base_scores=[0.0] * k,
    )
    bases = [output.base.tolist()] if is_vector else output.base.tolist()
    bases = bases if has_base else []
    if output.base_first:
        _build_leaves(bases, builder)
    _build(machine, builder)
    if not output.base_first:
        _build_leaves(bases, builder)
    if link != "identity" and link != "identity_multiclass":
        warnings.warn(
            "The Treelite model may differ from the machine in the last digits: the link "
            f"{output.link!r} is Treelite's (pred_margin=True gives equal margins).",
            InexactWarning,
            stacklevel=3,
        )
    return builder.commit()


def _check(machine: DecisionMachine, limits: Limits) -> None:
    limits.columns((Rule.VALUE, Rule.NAN_AS_ZERO, Rule.MEMBER))
    limits.no_labels()
    limits.constant_leaves()
    limits.plain_sum()
    columns, output = machine.columns, machine.output
    if columns.dtype == np.float64 and output.dtype == np.float32:
        limits.refuse(
            "columns.dtype is float64 and output.dtype float32; Treelite has one type for both",
            "use to_onnx, or keep the machine with machine.save",
        )
    if output.scale != 1:
        limits.refuse(
            f"output.scale is {output.scale:g}: Treelite does not multiply its sums",
            "fold it into V with dataclasses.replace, if other last digits will do",
        )
    if np.any(output.base) and output.divisor != 1:
        limits.refuse(
            f"output.divisor is {output.divisor:g} beside base scores",
            "use to_onnx, or keep the machine with machine.save",
        )
    sets = memberships(machine)
    if not sets:
        return
    assert columns.sets is not None
    remedy = "use to_onnx, or keep the machine with machine.save"
    if columns.dtype != output.dtype:
        limits.where(
            flags(machine, sets),
            "looks categories up after a cast to float32, which a model of float64 does not do",
            remedy,
        )
    limits.where(
        flags(machine, sets) & columns.sets.whole,
        "reads a set in which a fraction is not a category (columns.sets.whole); Treelite cuts it "
        "off",
        remedy,
    )
    if columns.sets.negative_fractions:
        limits.where(
            flags(machine, (j for j, m in sets.items() if 0 in _members(m))),
            "reads a set of which 0 is a member and -0.5 category 0; Treelite knows no category "
            "below 0",
            remedy,
        )


def _members(m: Membership) -> np.ndarray:
    return m.right if m.outside < 0 else m.left


def _link(output: Output, limits: Limits) -> tuple[str, float]:
    """Treelite's postprocessor and the slope of its sigmoid."""
    known, k = links.LINKS[output.link], len(output)
    if known.is_averaged:
        limits.unknown_link("Treelite's margins are averages too")
    if known.family in REFUSED:
        limits.unknown_link(REFUSED[known.family])
    link = WRITTEN[known.family]
    if len(output.groups) > 2 or (link == "softmax" and k == 1):
        limits.unknown_link()
    alpha = 1.0
    if link == "sigmoid":
        alpha = output.link_numbers[0] if output.link_numbers else 1.0
        link = "sigmoid" if k == 1 else "multiclass_ova"
    if k > 1 and link in ("exponential", "signed_square"):
        limits.unknown_link()
    if link == "identity" and k > 1 and output.classes is not None:
        link = "identity_multiclass"
    return link, alpha


def _averages(output: Output, n_trees: int, limits: Limits) -> bool:
    if output.divisor == 1:
        return False
    if output.divisor != n_trees:
        limits.refuse(
            f"sums are divided by {output.divisor:g}; Treelite divides by its {n_trees} trees",
            "use to_onnx, or keep the machine with machine.save",
        )
    return True


def _build_leaves(values: list[Any], builder: Any) -> None:
    """A tree of one leaf for each value."""
    for value in values:
        builder.start_tree()
        builder.start_node(0)
        builder.leaf(value)
        builder.end_node()
        builder.end_tree()


def _build(machine: DecisionMachine, builder: Any) -> None:
    """Give the builder every node of every tree."""
    nodes = nodes_of(machine)
    sets = memberships(machine)
    is_double = machine.output.dtype == np.float64
    t = (double_thresholds(machine) if is_double else machine.t).tolist()
    feature = machine.columns.feature[machine.selection].tolist()
    goes_left = (missing_answers(machine) < 0).tolist()
    values = machine.V.astype(machine.output.dtype).tolist()
    left, right = nodes.left.tolist(), nodes.right.tolist()
    test, leaf = nodes.test.tolist(), nodes.leaf.tolist()
    for i in range(machine.n_trees):
        builder.start_tree()
        span = nodes.tree(i)
        for node in range(span.start, span.stop):
            builder.start_node(node - span.start)
            j = test[node]
            if j < 0:
                value = values[leaf[node]]
                builder.leaf(value if len(value) > 1 else value[0])
            else:
                below = {
                    "default_left": goes_left[j],
                    "left_child_key": left[node],
                    "right_child_key": right[node],
                }
                if j in sets:
                    builder.categorical_test(
                        feature[j],
                        category_list=_members(sets[j]).tolist(),
                        category_list_right_child=sets[j].outside < 0,
                        **below,
                    )
                else:
                    builder.numerical_test(feature[j], t[j], opname="<=", **below)
            builder.end_node()
        builder.end_tree()
