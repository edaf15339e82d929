"""A machine as a LightGBM Booster: made as its model text, and loaded by LightGBM.

Sums are float64 from 0 on. Base scores are trees of one leaf, before the others or after them, as
the machine adds them. A machine that casts x to float32 is written with thresholds in float64
halfway to the next float32: rounding keeps order, so the same x go left. Trees of several values
become one tree for each output, and outputs with fewer trees get trees of one leaf of 0.

LightGBM takes every |x| ≤ 1e-35 for 0, so a threshold within that range is refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ...machine.columns import ZERO
from ..limits import Limits, flags, margins_only, memberships, missing_answers, require
from ..rounds import rounds_of
from ..write_thresholds import double_thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine import DecisionMachine
    from ..limits import Membership

CATEGORICAL, DEFAULT_LEFT = 1, 2
ZERO_IS_MISSING, NAN_IS_MISSING = 1 << 2, 2 << 2
SPECIAL = set('",:[]{}')
"""What LightGBM refuses in the name of a feature, besides white space."""


def to_lightgbm(machine: DecisionMachine, *, margins: bool = False) -> Any:
    """A Booster; see `DecisionMachine.to_lightgbm`."""
    limits = Limits(machine, "a LightGBM model")
    lightgbm = require("lightgbm", limits.doing)
    return lightgbm.Booster(model_str=lightgbm_text(machine, margins=margins))


def lightgbm_text(machine: DecisionMachine, *, margins: bool = False) -> str:
    """The content of the model file."""
    machine = margins_only(machine) if margins else machine
    limits = Limits(machine, "a LightGBM model")
    sets = memberships(machine)
    _check(machine, limits, sets)
    k, n = machine.n_outputs, max(machine.n_features, 1)
    written = _Trees(machine, sets)
    iterations = rounds_of(machine, limits, base_is_tree=True)
    objective, averages = _objective(machine, limits, len(iterations))
    trees = [
        written.tree(*slot) if isinstance(slot, tuple) else _constant(slot)
        for iteration in iterations
        for slot in iteration
    ]
    trees = [f"Tree={i}\n{tree}\n\n" for i, tree in enumerate(trees)]
    names = machine.columns.names or tuple(f"Column_{i}" for i in range(n))
    labelled = set(machine.columns.member_features)
    infos = ["0:1" if feature in labelled else "[-inf:inf]" for feature in range(n)]
    header = [
        "tree",
        "version=v4",
        f"num_class={k}",
        f"num_tree_per_iteration={k}",
        "label_index=0",
        f"max_feature_idx={n - 1}",
        *([f"objective={objective}"] if objective else []),
        *(["average_output"] if averages else []),
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(infos)}",
        f"tree_sizes={' '.join(str(len(tree.encode())) for tree in trees)}",
    ]
    tables = machine.columns.table_categories
    labels = "null" if tables is None else json.dumps([list(labels) for labels in tables])
    return (
        "\n".join(header)
        + "\n\n"
        + "".join(trees)
        + "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\n"
        + f"pandas_categorical:{labels}\n"
    )


def _check(machine: DecisionMachine, limits: Limits, sets: dict[int, Membership]) -> None:
    columns = machine.columns
    limits.columns(tuple(rule for rule in Rule if rule != Rule.LOOK_UP))
    limits.plain_sum()
    if columns.categories or columns.encodes_arrays:
        limits.no_labels()
    if not np.all(np.isfinite(machine.V)):
        limits.refuse("V has a value that is not finite", "keep the machine with machine.save")
    for name in columns.names or ():
        if not name or set(name) & SPECIAL or name != "".join(name.split()):
            limits.refuse(
                f"columns.names has {name!r}, which LightGBM does not take for a name",
                "rename the features with dataclasses.replace",
            )
    if machine.n_features == 0:
        limits.refuse("it reads no features", "keep the machine with machine.save")
    is_single = columns.dtype == np.float32
    remedy = "use to_xgboost or to_onnx, or keep the machine with machine.save"
    rule = columns.rule[machine.selection]
    numeric = rule != Rule.MEMBER
    t = double_thresholds(machine)
    limits.where(
        numeric & (t < ZERO) & (t >= -ZERO) & ~(t == np.nextafter(-ZERO, -np.inf)),
        "has the threshold {t}: LightGBM takes every |x| up to 1e-35 for 0, and so cannot tell "
        "the x on its two sides apart",
        "if no x lies between 0 and 1e-35, move the threshold to np.float32(1e-35), or to just "
        "below -1e-35, with dataclasses.replace",
    )
    if is_single:
        limits.where(
            rule == Rule.ZERO_AS_NAN,
            "takes zeros for missing after a cast to float32, LightGBM before it",
            remedy,
        )
        limits.where(
            rule == Rule.MEMBER,
            "looks categories up after a cast to float32 (2.99999999 is category 3); LightGBM "
            "casts nothing",
            remedy,
        )
        if machine.linear is not None:
            limits.refuse("linear leaves over float32 features; LightGBM's are float64", remedy)
    if not sets:
        return
    assert columns.sets is not None
    limits.where(
        flags(machine, (j for j, m in sets.items() if m.outside != m.nan)),
        "sends NaN another way than categories outside its set; LightGBM sends both right",
        remedy,
    )
    limits.where(
        flags(machine, sets) & columns.sets.whole,
        "reads a set in which a fraction is not a category (columns.sets.whole); LightGBM cuts it "
        "off",
        remedy,
    )
    if not columns.sets.negative_fractions:
        limits.where(
            flags(machine, (j for j, m in sets.items() if 0 in _members(m))),
            "reads a set in which -0.5 is not a category (columns.sets.negative_fractions) and 0 "
            "is a member; LightGBM takes -0.5 for 0",
            remedy,
        )
    limits.where(
        flags(machine, (j for j, m in sets.items() if max(_members(m), default=0) >= 2**31 - 1)),
        "has a category beyond 32 bits",
        "number the categories from 0 on",
    )


def _members(m: Membership) -> np.ndarray:
    """The set as LightGBM keeps it: what does not go where all else goes."""
    return m.left if m.outside > 0 else m.right


def _objective(machine: DecisionMachine, limits: Limits, n_iterations: int) -> tuple[str, bool]:
    """The objective's line, and whether answers are averages."""
    output = machine.output
    link, averaged_over, numbers = output.without_average()
    divisor = output.divisor * averaged_over
    if output.divisor != 1 and link.name == output.link != "identity":
        limits.unknown_link()
    if divisor != 1 and divisor != n_iterations:
        limits.refuse(
            f"sums are divided by {divisor:g}; LightGBM divides by its {n_iterations} iterations",
            "use to_onnx, or keep the machine with machine.save",
        )
    if link.name not in WRITTEN or len(output.groups) > 2:
        limits.unknown_link()
    slope = numbers[0] if numbers else 1.0
    objective = WRITTEN[link.name](len(output), slope, output.classes is not None)
    if objective is None:
        limits.unknown_link()
    return objective, divisor != 1


def _sigmoid_objective(k: int, slope: float, classifies: bool) -> str:
    if k > 1:
        return f"multiclassova num_class:{k} sigmoid:{slope!r}"
    return f"binary sigmoid:{slope!r}" if classifies or slope != 1 else "cross_entropy"


def _of_one_output(objective: str) -> Callable[[int, float, bool], str | None]:
    return lambda k, slope, classifies: objective if k == 1 else None


WRITTEN: dict[str, Callable[[int, float, bool], str | None]] = {
    "identity": lambda k, slope, classifies: "regression" if k == 1 else "",
    "expit": _sigmoid_objective,
    "lightgbm_softmax": lambda k, slope, classifies: f"multiclass num_class:{k}" if k > 1 else None,
    "lightgbm_exp": _of_one_output("poisson"),
    "lightgbm_softplus": _of_one_output("cross_entropy_lambda"),
    "signed_square": _of_one_output("regression sqrt"),
}
"""For each link that LightGBM computes itself: from the number of outputs, the slope of a sigmoid
and whether there are classes to the objective's line; None where LightGBM has no objective. All
other links differ from LightGBM's in the last bit, and are refused."""


class _Trees:
    """The trees as texts; splits and leaves keep the source's numbers where these are numbers."""

    def __init__(self, machine: DecisionMachine, sets: dict[int, Membership]) -> None:
        self.machine, self.sets = machine, sets
        trees = machine.trees
        self.split = _numbers(trees.test_ids, trees.test_start, first_is_zero=True)
        self.leaf = _numbers(trees.leaf_ids, trees.leaf_start)
        swap = flags(machine, (j for j, m in sets.items() if m.outside < 0))
        children = np.where(swap[:, None], machine.children[:, ::-1], machine.children)
        self.children = children
        rule = machine.columns.rule[machine.selection]
        default = np.where(missing_answers(machine) < 0, DEFAULT_LEFT, 0)
        self.decision = np.where(
            rule == Rule.MEMBER,
            CATEGORICAL,
            default + np.where(rule == Rule.ZERO_AS_NAN, ZERO_IS_MISSING, NAN_IS_MISSING),
        )
        self.t = double_thresholds(machine)
        self.feature = machine.columns.feature[machine.selection]
        self.V = machine.V.astype(np.float64)

    def tree(self, i: int, column: int) -> str:
        """The fields of tree i, its leaves' values taken from one column of V."""
        machine = self.machine
        tests, leaves = machine.trees.tests(i), machine.trees.leaves(i)
        value = np.empty(leaves.stop - leaves.start)
        value[self.leaf[leaves]] = self.V[leaves, column]
        n = tests.stop - tests.start
        order = np.empty(n, np.int64)
        order[self.split[tests]] = np.arange(tests.start, tests.stop)
        children = self.children[order]
        child = np.where(
            children >= 0,
            self.split[np.maximum(children, 0)] if n else 0,
            ~self.leaf[np.maximum(~children, 0)] if n else 0,
        )
        members = [_members(self.sets[j]) for j in order.tolist() if j in self.sets]
        t = self.t[order].copy()
        t[self.decision[order] == CATEGORICAL] = np.arange(len(members))
        words = [_words(which) for which in members]
        fields = [f"num_leaves={n + 1}", f"num_cat={len(members)}"]
        zeros = " ".join("0" * n)
        if n:
            fields += [
                f"split_feature={_whole(self.feature[order])}",
                f"split_gain={zeros}",
                f"threshold={_real(t)}",
                f"decision_type={_whole(self.decision[order])}",
                f"left_child={_whole(child[:, 0])}",
                f"right_child={_whole(child[:, 1])}",
            ]
        fields.append(f"leaf_value={_real(value)}")
        if n:
            fields += [
                f"leaf_weight={' '.join('0' * (n + 1))}",
                f"leaf_count={' '.join('0' * (n + 1))}",
                *(f"internal_{name}={zeros}" for name in ("value", "weight", "count")),
            ]
        if members:
            fields.append(f"cat_boundaries={_whole(np.cumsum([0, *map(len, words)]))}")
            fields.append(f"cat_threshold={_whole(np.concatenate(words))}")
        return "\n".join([*fields, *self._linear(leaves), "shrinkage=1", ""])

    def _linear(self, leaves: slice) -> list[str]:
        linear = self.machine.linear
        if linear is None:
            return ["is_linear=0"]
        order = np.empty(leaves.stop - leaves.start, np.int64)
        order[self.leaf[leaves]] = np.arange(leaves.start, leaves.stop)
        spans = [slice(int(linear.start[j]), int(linear.start[j + 1])) for j in order]
        return [
            "is_linear=1",
            f"leaf_const={_real(linear.intercept[order, 0])}",
            f"num_features={_whole([s.stop - s.start for s in spans])}",
            "leaf_features=" + " ".join(_whole(linear.feature[s]) + " " for s in spans),
            "leaf_coeff=" + " ".join(_real(linear.coefficient[s, 0]) + " " for s in spans),
        ]


def _numbers(ids: np.ndarray | None, start: np.ndarray, first_is_zero: bool = False) -> np.ndarray:
    """For each test or leaf its number within its tree: the source's, or else its position."""
    sizes = np.diff(start)
    position: np.ndarray = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
    if ids is None or not len(ids):
        return position
    tree = np.repeat(np.arange(len(sizes)), sizes)
    if np.any((ids < 0) | (ids >= sizes[tree])):
        return position
    taken = np.zeros(start[-1], bool)
    taken[start[tree] + ids] = True
    roots_first = not first_is_zero or np.all(ids[start[:-1][sizes > 0]] == 0)
    return ids.astype(np.int64) if np.all(taken) and roots_first else position


def _words(members: np.ndarray) -> np.ndarray:
    """A set as the bits of 32-bit words."""
    words = np.zeros(int(members.max(initial=0)) // 32 + 1, np.uint32)
    np.bitwise_or.at(words, members // 32, (1 << (members % 32)).astype(np.uint32))
    return words


def _constant(value: float) -> str:
    return f"num_leaves=1\nnum_cat=0\nleaf_value={value!r}\nis_linear=0\nshrinkage=1\n"


def _whole(values: Any) -> str:
    return " ".join(map(str, np.asarray(values, np.int64).tolist()))


def _real(values: np.ndarray) -> str:
    """Numbers with the fewest digits that tell float64 numbers apart."""
    return " ".join(map(repr, np.asarray(values, np.float64).tolist()))


def lightgbm_content(machine: DecisionMachine, suffix: str, *, margins: bool = False) -> bytes:
    """The bytes of a model text's file."""
    return lightgbm_text(machine, margins=margins).encode()
