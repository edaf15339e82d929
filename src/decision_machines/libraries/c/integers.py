"""A header whose answers are computed in whole numbers alone, for processors without an FPU.

Tests compare codes: a slot's code is the number of its thresholds below the value, so that exit
leaves are the machine's own. Leaf values are whole numbers of 32 bits over a power of two, added
in 64 bits. Values of which every bit fits are added without any error; others are rounded once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...machine import Rule
from ...machine.trees import ALL_OUTPUTS
from ..limits import Limits
from ..write_thresholds import double_thresholds
from .slots import Slots, slots_of
from .text import array, source, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...machine import DecisionMachine

MOST_BITS = 40
"""After the point."""
NEVER = 0xFFFF
"""A code above all thresholds: missing, where it goes right."""


def integer_parts(
    machine: DecisionMachine, head: str, reading: Sequence[str], labels: str
) -> tuple[str, ...]:
    """The parts of the header, in their order."""
    _check(machine)
    slots = slots_of(machine)
    t, starts, ranks = _ranks(machine, slots)
    return (
        _begin(head),
        f"#define DM_NEVER {NEVER}\n"
        "#ifndef DM_INTEGER_ONLY\n"
        "/* Floating point is here alone: rows of numbers as codes. */",
        *reading,
        array("dm_threshold", t),
        array("dm_threshold_start", starts, "int32_t"),
        source("code_numbers.h"),
        labels,
        "#else",
        f"#define DM_N_FEATURES {machine.n_features}\n"
        f"#define DM_N_OUTPUTS {machine.n_outputs}\n"
        f"#define DM_N_TREES {machine.n_trees}\n"
        f"#define DM_N_SLOTS {len(slots.column)}\n"
        f"#define DM_NARROW {int(machine.is_narrow)}\n"
        f"#define DM_WIDTH {machine.V.shape[1]}\n"
        "#endif",
        _whole_numbers(machine, slots),
        _tests(machine, slots, ranks),
        _values(machine),
        source("integers.h"),
        "#endif",
        "",
    )


def _begin(head: str) -> str:
    """The comment, and what is included: nothing that needs floating point unless asked for."""
    comment, guard = head.split("#ifndef DM_MODEL_H")
    listed = comment[comment.index("   A row is DM_N_FEATURES") :]
    float_part = guard[guard.index("#if defined(FLT_EVAL_METHOD)") :]
    return (
        comment.split("\n")[0] + "\n"
        "   A model in whole numbers, written by decision-machines. C99.\n\n"
        "   int dm_code_numbers(const double *x, uint16_t *code)   DM_N_SLOTS codes of a row\n"
        "   void dm_code_integers(const int32_t *x, uint16_t *code)  the same of whole numbers,\n"
        "                                                   where the model reads numbers alone\n"
        "   void dm_apply(const uint16_t *code, int32_t *leaf)  the exit leaf of every tree\n"
        "   void dm_margin(const uint16_t *code, int64_t *out)  margins times 2^DM_SHIFT\n"
        "   int dm_best(const uint16_t *code)                   the largest output's place; of\n"
        "                                                   one output, whether it is above 0\n\n"
        "   With DM_INTEGER_ONLY defined, nothing here needs floating point, and\n"
        "   dm_code_numbers is left out. Exit leaves are the model's own. DM_EXACT is 1 where\n"
        "   leaf values are held to the last bit, so that sums have no error at all; otherwise\n"
        "   each of a margin's DM_N_TREES + 1 terms is rounded, to 1 / 2^DM_SHIFT.\n\n"
        + listed
        + "#ifndef DM_MODEL_H\n"
        "#define DM_MODEL_H\n#include <stddef.h>\n#include <stdint.h>\n"
        "#ifndef DM_INTEGER_ONLY\n#include <float.h>\n#include <math.h>\n#include <string.h>\n"
        + float_part
        + "#endif"
    )


def _check(machine: DecisionMachine) -> None:
    limits = Limits(machine, "C of whole numbers")
    limits.constant_leaves()
    if machine.is_oblique:
        limits.refuse("its tests weigh several columns (S is not one-hot)", "use integers=False")
    if machine.output.aggregate != "sum":
        limits.refuse(f"output.aggregate is {machine.output.aggregate!r}", "use integers=False")
    if not (np.isfinite(machine.V).all() and np.isfinite(machine.output.base).all()):
        limits.refuse("a leaf value or base that is not finite", "use integers=False")


def _ranks(machine: DecisionMachine, slots: Slots) -> tuple[np.ndarray, list[int], np.ndarray]:
    """All slots' thresholds, where each slot's start, and the rank of every test's threshold."""
    ranks, parts, starts = np.zeros(machine.n_tests, np.int64), [], [0]
    for slot in range(len(slots.column)):
        tests = np.flatnonzero(slots.of_test == slot)
        found, ranks[tests] = np.unique(machine.t[tests], return_inverse=True)
        if len(found) >= NEVER:
            Limits(machine, "C of whole numbers").refuse(
                f"{len(found)} thresholds of one column, whose codes do not fit 16 bits",
                "use integers=False",
            )
        parts.append(found)
        starts.append(starts[-1] + len(found))
    t = np.concatenate(parts) if parts else np.zeros(0, machine.columns.dtype)
    return t, starts, ranks


def _whole_numbers(machine: DecisionMachine, slots: Slots) -> str:
    """Thresholds for features that are whole numbers: x ≤ t where x ≤ floor(t)."""
    columns = machine.columns
    rules = columns.rule[slots.column]
    is_plain = not columns.edges and columns.accepted is None and not columns.categories
    if not is_plain or np.any((rules != Rule.VALUE) & (rules != Rule.NAN_AS_ZERO)):
        return "#define DM_WHOLE_NUMBERS 0\n"
    if not np.isnan(columns.missing_value):
        return "#define DM_WHOLE_NUMBERS 0\n"
    known = np.iinfo(np.int32)
    t, parts, starts = double_thresholds(machine), [], [0]
    for slot in range(len(slots.column)):
        found = np.unique(t[slots.of_test == slot])
        # Below all numbers of 32 bits is one number lower: 64 bits hold it.
        parts += np.floor(np.clip(found, known.min - 1.0, known.max + 0.0)).astype(int).tolist()
        starts.append(len(parts))
    return (
        "#define DM_WHOLE_NUMBERS 1\n"
        + array("dm_slot_feature", columns.feature[slots.column])
        + array("dm_whole_threshold", np.array(parts, np.int64), "int64_t")
        + array("dm_whole_start", starts, "int32_t")
    )


def _tests(machine: DecisionMachine, slots: Slots, ranks: np.ndarray) -> str:
    trees = machine.trees
    first_test = trees.test_start[trees.of_test][:, None]
    first_leaf = trees.leaf_start[trees.of_test][:, None]
    children = np.where(
        machine.children >= 0, machine.children - first_test, machine.children + first_leaf
    )
    rows = [
        f"{{{slot},{rank},{{{left},{right}}}}}"
        for slot, rank, (left, right) in zip(
            slots.of_test.tolist(), ranks.tolist(), children.tolist(), strict=True
        )
    ]
    small = not children.size or np.abs(children).max() < 1 << 15
    at = "uint16_t" if len(slots.column) < 1 << 16 else "uint32_t"
    child = "int16_t" if small else "int32_t"
    return (
        f"typedef struct {{ {at} slot; uint16_t rank; {child} child[2]; }} dm_node;\n"
        + table("dm_nodes", "dm_node", rows or ["{0,0,{-1,-1}}"])
        + array("dm_test_start", trees.test_start, "int32_t")
    )


def _values(machine: DecisionMachine) -> str:
    """Leaf values and the base over a power of two: the smallest that is exact, else the largest.

    What divides or scales the sum is in them.
    """
    output = machine.output
    factor = output.scale / output.divisor
    V, base = machine.V.astype(np.float64) * factor, output.base.astype(np.float64)
    base = base * factor if output.base_first else base
    every = np.concatenate([V.ravel(), base.ravel()])
    largest = float(np.abs(every).max(initial=0.0))
    fits = 30 - math.frexp(largest)[1] if largest else 0
    shift = min(MOST_BITS, fits)
    exact = [s for s in range(max(0, shift) + 1) if _is_whole(np.ldexp(every, s))]
    # Divided or scaled values are not the machine's own.
    is_exact = bool(exact) and factor == 1.0 and shift >= 0
    shift = exact[0] if is_exact else shift
    return (
        f"#define DM_SHIFT {shift}\n#define DM_EXACT {int(is_exact)}\n"
        + array("dm_values", _fixed(V, shift), "int32_t")
        + array("dm_start", _fixed(base, shift), "int32_t")
        + array("dm_feeds", np.where(machine.trees.feeds == ALL_OUTPUTS, 0, machine.trees.feeds))
    )


def _is_whole(values: np.ndarray) -> bool:
    return bool(np.all(values == np.rint(values)) and np.abs(values).max(initial=0) < 2**31)


def _fixed(values: np.ndarray, shift: int) -> Any:
    return np.rint(np.ldexp(values, shift)).astype(np.int64)
