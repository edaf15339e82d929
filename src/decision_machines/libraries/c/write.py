"""A machine as one C99 header: tables, and a small kernel that reads them.

Margins and exit leaves are the machine's, to the bit. Responses call the exponential of the C
library, as LightGBM, XGBoost and CatBoost do; NumPy has one of its own, which scikit-learn's models
use, so that their probabilities may differ in the last place. The kernel does not grow with
the model: only the tables do.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...files.atomic import write_atomically
from ...machine import Rule
from ...machine.columns import ZERO
from ...machine.label_words import labels_of
from ...machine.links import STEPS
from ..limits import Limits, margins_only
from .answers import answers, has_link
from .integers import integer_parts
from .slots import slots_of
from .text import array, comment, number, source, table, text

if TYPE_CHECKING:
    import os

    from ...machine import DecisionMachine

KIND = "C"
AGGREGATES = {"sum": "SUM", "min": "LEAST", "max": "MOST", "median": "MEDIAN"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def to_c(
    machine: DecisionMachine,
    path: str | os.PathLike[str],
    *,
    margins: bool = False,
    integers: bool = False,
    prefix: str = "dm",
) -> Path:
    """Write the header; see `DecisionMachine.to_c`."""
    content = c_text(machine, margins=margins, integers=integers, prefix=prefix)
    write_atomically(path, [content.encode("ascii")])
    return Path(path)


def c_content(machine: DecisionMachine, suffix: str, *, margins: bool = False) -> bytes:
    """The bytes of the header, for `dm convert`."""
    return c_text(machine, margins=margins).encode("ascii")


def c_text(
    machine: DecisionMachine, *, margins: bool = False, integers: bool = False, prefix: str = "dm"
) -> str:
    """The text of the header."""
    if not NAME.match(prefix):
        raise InputError(
            f"writing a machine as {KIND}",
            f"prefix={prefix!r:.60}",
            "give a name of ASCII letters, digits and _ that does not begin with a digit",
        )
    machine = margins_only(machine) if margins or integers else machine
    _check(machine)
    parts = _Parts(machine)
    reading = (parts.sizes(), parts.columns(), parts.codes(), source("read.h"))
    written = "\n".join(
        integer_parts(machine, parts.head(), reading, parts.labels())
        if integers
        else (
            parts.head(),
            *reading,
            parts.tests(),
            parts.leaves(),
            source("kernel.h"),
            answers(machine),
            parts.labels(),
            "#endif",
            "",
        )
    )
    if prefix == "dm":
        return written
    return re.sub(
        r"\b(dm|DM)_", lambda m: f"{prefix.upper() if m[1] == 'DM' else prefix}_", written
    )


def _check(machine: DecisionMachine) -> None:
    limits = Limits(machine, KIND)
    columns = machine.columns
    if np.any(columns.rule == Rule.LOOK_UP):
        limits.refuse(
            "columns.look_ups: statistics of combinations of features, whose tables C would hold "
            "by hash",
            "train CatBoost with max_ctr_complexity=1, or keep the machine in our own file",
        )
    if machine.output.link_steps or machine.output.without_average()[0].family is STEPS:
        limits.unknown_link("steps of an ONNX graph may be any function")
    link = machine.output.without_average()[0].name
    if not has_link(link):
        limits.unknown_link("the header has no function for it")
    if link.startswith("catboost_") and machine.output.dtype != np.float64:
        limits.unknown_link("CatBoost's exponential takes sums of float64")


@dataclass(frozen=True)
class _Parts:
    """The parts of the header, in the order in which they stand there."""

    machine: DecisionMachine

    def head(self) -> str:
        machine = self.machine
        names = [machine.columns.feature_name(f) for f in range(machine.n_features)]
        listed = "\n".join(f"     x[{i}]  {comment(name)}" for i, name in enumerate(names[:200]))
        more = f"\n     ... {len(names)} in all" if len(names) > 200 else ""
        return (
            f"/* {comment(repr(machine))}\n"
            "   A model as tables and one small kernel, written by decision-machines. C99; needs "
            "libm alone.\n\n"
            "   int dm_margin(const double *x, double *out)         the raw scores\n"
            "   int dm_predict(const double *x, double *out)        the prediction\n"
            "   int dm_predict_proba(const double *x, double *out)  probabilities, where there are "
            "classes\n"
            "   int dm_apply(const double *x, int32_t *leaf)        the exit leaf of every tree\n"
            "   size_t dm_margin_batch(const double *x, size_t n, double *out)\n"
            "   They give 0, or the number (from 1) of the feature (of the batch: the row) that "
            "is refused.\n\n"
            f"   A row is DM_N_FEATURES numbers; NaN is missing:\n{listed}{more} */\n"
            "#ifndef DM_MODEL_H\n#define DM_MODEL_H\n"
            "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
            "#include <string.h>\n"
            "#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0\n"
            '#error "This compiler computes in more digits than it is told: on x86 add '
            '-msse2 -mfpmath=sse"\n#endif\n'
            "#ifdef __FAST_MATH__\n"
            '#error "With -ffast-math missing values and sums are not what the model says"\n'
            "#endif\n"
        )

    def sizes(self) -> str:
        machine, output, columns = self.machine, self.machine.output, self.machine.columns
        slots = self._slots
        single, sums = columns.dtype == np.float32, output.dtype == np.float32
        is_sum = output.aggregate == "sum"
        found = {
            "N_FEATURES": machine.n_features,
            "N_OUTPUTS": machine.n_outputs,
            "N_TREES": machine.n_trees,
            "N_SLOTS": len(slots.column),
            "N_SETS": 0 if columns.sets is None else len(columns.sets),
            "WIDTH": machine.V.shape[1],
            "NARROW": int(machine.is_narrow),
            "OBLIQUE": int(machine.is_oblique),
            "LINEAR": int(machine.linear is not None),
            "SUM": 0,
            "LEAST": 1,
            "MOST": 2,
            "MEDIAN": 3,
            "AGGREGATE": f"DM_{AGGREGATES[output.aggregate]}",
            "DIVIDES": int(output.divisor != 1.0),
            "DIVISOR": number(output.dtype.type(output.divisor), sums),
            "SCALES": int(output.scale != 1.0),
            "SCALE": number(output.dtype.type(output.scale), sums),
            "BASE_LAST": int(not (is_sum and output.base_first)),
            "MISSING_VALUE": number(columns.dtype.type(columns.missing_value), single),
            "ZERO": number(ZERO, single),
            "CHECKED": int(columns.accepted is not None),
        }
        types = {
            "column": "float" if single else "double",
            "sum": "float" if sums else "double",
        }
        return "".join(f"#define DM_{name} {value}\n" for name, value in found.items()) + "".join(
            f"typedef {kind} dm_{name};\n" for name, kind in types.items()
        )

    @functools.cached_property
    def _slots(self) -> Any:
        return slots_of(self.machine)

    def columns(self) -> str:
        """Slots, and the sets of categories."""
        columns, slots = self.machine.columns, self._slots
        which = np.cumsum(columns.rule == Rule.MEMBER) - 1
        rows = [
            f"{{{columns.feature[c]},{which[c] if columns.rule[c] == Rule.MEMBER else 0},"
            f"{columns.rule[c]},{left}}}"
            for c, left in zip(slots.column.tolist(), slots.missing_left.tolist(), strict=True)
        ]
        found = (
            "typedef struct { int32_t feature, set; uint8_t rule, missing_left; } dm_slot;\n"
            + table("dm_slots", "dm_slot", rows or ["{0,0,0,0}"])
        )
        return found + (self._sets() if columns.sets is not None else "")

    def _sets(self) -> str:
        """The members of every set, and the answer to each."""
        sets = self.machine.columns.sets
        assert sets is not None
        return (
            array("dm_set_start", sets.start)
            + array("dm_member_of_set", sets.members.astype(np.int64), "int64_t")
            + array("dm_member_answer", sets.answer)
            + array("dm_set_outside", sets.outside)
            + f"#define DM_LOWEST_CATEGORY {-1 if sets.negative_fractions else 0}\n"
            + f"#define DM_WHOLE_CATEGORIES {int(sets.whole)}\n"
            + source("sets.h")
        )

    def tests(self) -> str:
        machine, slots = self.machine, self._slots
        trees = machine.trees
        first_test = trees.test_start[trees.of_test][:, None]
        first_leaf = trees.leaf_start[trees.of_test][:, None]
        # Counted within the tree: small numbers, small tables.
        children = np.where(
            machine.children >= 0, machine.children - first_test, machine.children + first_leaf
        )
        single = machine.columns.dtype == np.float32
        slot = np.zeros(machine.n_tests, np.int64) if machine.is_oblique else slots.of_test
        rows = [
            f"{{{number(t, single)},{s},{{{left},{right}}}}}"
            for t, s, (left, right) in zip(
                machine.t.tolist(), slot.tolist(), children.tolist(), strict=True
            )
        ]
        small = not children.size or (children.min() >= -(1 << 15) and children.max() < 1 << 15)
        child, at = (
            "int16_t" if small else "int32_t",
            ("uint16_t" if len(slots.column) < 1 << 16 else "uint32_t"),
        )
        found = (
            f"typedef struct {{ dm_column t; {at} slot; {child} child[2]; }} dm_node;\n"
            + table("dm_nodes", "dm_node", rows or ["{0,0,{-1,-1}}"])
            + array("dm_test_start", trees.test_start, "int32_t")
            + array("dm_least_depth", _least_depths(machine), "uint16_t")
        )
        if not machine.is_oblique:
            return found
        S = machine.S
        return found + (
            array("dm_term_start", S.indptr, "uint32_t")
            + array("dm_term_slot", S.indices)
            + array("dm_term_weight", S.data.astype(machine.columns.dtype))
            + array("dm_missing_right", (machine.missing > 0).astype(np.uint8))
        )

    def leaves(self) -> str:
        machine, output, linear = self.machine, self.machine.output, self.machine.linear
        start = np.zeros(len(output), output.dtype)
        if output.aggregate == "sum" and output.base_first:
            start = output.base
        elif output.aggregate in ("min", "max") and machine.n_trees:
            start = np.full_like(start, np.inf if output.aggregate == "min" else -np.inf)
        found = (
            array("dm_values", machine.V)
            + array("dm_start", start)
            + array("dm_base", output.base)
            + array("dm_feeds", np.maximum(machine.trees.feeds, 0))
        )
        if output.aggregate == "median":
            weights = np.ones(machine.n_trees) if output.weights is None else output.weights
            found += array("dm_tree_weight", weights)
        if linear is None:
            return found
        kind = np.result_type(linear.intercept, linear.coefficient)
        return found + (
            f"typedef {'float' if kind == np.float32 else 'double'} dm_linear;\n"
            + array("dm_intercept", linear.intercept)
            + array("dm_linear_start", linear.start, "uint32_t")
            + array("dm_linear_feature", linear.feature)
            + array("dm_coefficient", linear.coefficient)
        )

    def codes(self) -> str:
        """Numbers that are read as ranges, and what the source refuses."""
        columns = self.machine.columns
        found = ""
        if columns.edges:
            bounds = [columns.edges.get(f, ()) for f in range(columns.n_features)]
            found += array("dm_edges", np.concatenate([np.array(b, np.float64) for b in bounds]))
            found += array("dm_edge_start", np.cumsum([0] + [len(b) for b in bounds]), "int32_t")
            found += array("dm_is_range", [int(f in columns.edges) for f in range(len(bounds))])
        found += f"#define DM_RANGES {int(bool(columns.edges))}\n" + source("codes.h")
        accepted = columns.accepted
        if accepted is None:
            return found
        free = [f in columns.categories for f in range(columns.n_features)]
        pairs = [(f, c) for f, codes in accepted.refused.items() for c in codes]
        return found + (
            f"#define DM_N_REFUSED {len(pairs)}\n"
            + array("dm_low", np.where(free, -np.inf, accepted.low))
            + array("dm_high", np.where(free, np.inf, accepted.high))
            + array("dm_may_be_missing", accepted.missing.astype(np.uint8))
            + array("dm_refused_feature", np.array([f for f, _ in pairs], np.int64))
            + array("dm_refused_code", np.array([c for _, c in pairs], np.int64))
        )

    def labels(self) -> str:
        """Labels and their codes, for `dm_label` and `dm_label_number`."""
        columns = self.machine.columns
        if columns.label_hash:
            return ""
        known = [
            (f, label, code)
            for f in range(columns.n_features)
            if f not in columns.edges
            for code, label in enumerate(labels_of(columns, f) or ())
        ]
        texts = [
            f"{{{f},{code},{text(label)}}}"
            for f, label, code in known
            if isinstance(label, str) and "\0" not in label
        ]
        numbers = [
            f"{{{f},{code},{number(label, single=False)}}}"
            for f, label, code in known
            if isinstance(label, (int, float)) and label == float(label)
        ]
        unknown = "NAN" if columns.table_categories is not None else "-1"
        found = f"#define DM_UNKNOWN_LABEL {unknown}\n" if texts or numbers else ""
        if texts:
            kind = "struct { int32_t feature, code; const char *text; }"
            found += f"#define DM_N_LABELS {len(texts)}\n" + table("dm_labels", kind, texts)
            found += source("text_labels.h")
        if numbers:
            kind = "struct { int32_t feature, code; double label; }"
            found += f"#define DM_N_NUMBER_LABELS {len(numbers)}\n"
            found += table("dm_number_labels", kind, numbers) + source("number_labels.h")
        return found


WAYS = 8
"""How many trees the kernel walks at a time (DM_WAYS)."""


def _least_depths(machine: DecisionMachine) -> np.ndarray:
    """For each WAYS trees, how many steps no row can do without in any of them."""
    depth, start = machine.structure.leaf_depth, machine.trees.leaf_start
    least = [int(depth[a:b].min()) for a, b in itertools.pairwise(start)]
    whole = len(least) // WAYS
    return np.array([min(least[i * WAYS : (i + 1) * WAYS]) for i in range(whole)], np.int64)
