"""A machine in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .assembly import Assembly
from .columns import Rule
from .digits import digits
from .theorems import column_rank

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .columns import Columns
    from .machine import DecisionMachine


def summary(machine: DecisionMachine | Assembly) -> dict[str, Any]:
    """Sizes, depth, rank, columns and output of a machine, ready for JSON; an assembly's parts.

    Examples
    --------
    >>> import decision_machines as dm
    >>> found = summary(dm.figure_one())
    >>> found["tests"], found["distinct tests"], found["rank"]
    (5, 5, 5)
    """
    if isinstance(machine, Assembly):
        return _parts(machine)
    depth = machine.structure.leaf_depth
    leaves = np.diff(machine.trees.leaf_start)
    columns, output = machine.columns, machine.output
    rules = {rule.name.lower(): int(np.count_nonzero(columns.rule == rule)) for rule in Rule}
    return {
        "source": machine.source,
        "trees": machine.n_trees,
        "leaves": machine.n_leaves,
        "leaves per tree": _range(leaves),
        "tests": machine.n_tests,
        "distinct tests": distinct_tests(machine),
        "depth": _range(depth),
        "rank": int(column_rank(machine).sum()),
        "oblique": machine.is_oblique,
        "linear leaves": machine.linear is not None,
        "features": machine.n_features,
        "feature names": None if columns.names is None else list(columns.names),
        "features read as labels": _named(columns, columns.categories),
        "features read as ranges": _named(columns, columns.edges),
        "columns": len(columns),
        "column rules": {name: n for name, n in rules.items() if n},
        "column dtype": columns.dtype.name,
        "outputs": machine.n_outputs,
        "values": f"{machine.V.dtype.name} {machine.V.shape[0]} × {machine.V.shape[1]}",
        "sum": _sum(machine),
        "link": output.link + (str(output.link_params) if output.link_params else ""),
        "classes": None if output.classes is None else [c.tolist() for c in output.classes],
        "bytes": machine.nbytes,
        "entries of B": int(depth.sum(dtype=np.int64)),
    }


def _named(columns: Columns, features: Iterable[int]) -> list[str] | None:
    return [columns.feature_name(f) for f in sorted(features)] or None


def _parts(assembly: Assembly) -> dict[str, Any]:
    """An assembly in figures: its rule and its members."""
    machines = assembly.machines
    return {
        "source": assembly.source,
        "rule": assembly.rule,
        "members": [str(member) for member in assembly.members],
        "machines": len(machines),
        "trees": sum(m.n_trees for m in machines),
        "leaves": sum(m.n_leaves for m in machines),
        "tests": sum(m.n_tests for m in machines),
        "classes": None if assembly.classes is None else assembly.classes.tolist(),
        "bytes": sum(m.nbytes for m in machines),
    }


def distinct_tests(machine: DecisionMachine) -> int:
    """How many tests differ in column, threshold or missing answer (in weights, if oblique)."""
    if machine.is_oblique:
        S = machine.S
        return len(
            {
                (S.indices[a:b].tobytes(), S.data[a:b].tobytes(), t, missing)
                for a, b, t, missing in zip(
                    S.indptr,
                    S.indptr[1:],
                    machine.t.tolist(),
                    machine.missing.tolist(),
                    strict=False,
                )
            }
        )
    order = np.lexsort((machine.missing, machine.t, machine.selection))
    same = np.ones(max(len(order) - 1, 0), bool)
    for array in (machine.missing, machine.t, machine.selection):
        same &= array[order][1:] == array[order][:-1]
    return len(order) - int(np.count_nonzero(same))


def _range(values: np.ndarray) -> list[float]:
    """Smallest, mean, largest."""
    if not len(values):
        return [0, 0, 0]
    return [int(values.min()), round(float(values.mean()), 1), int(values.max())]


def _sum(machine: DecisionMachine) -> str:
    output = machine.output
    words = [f"{output.aggregate} in {output.dtype.name}"]
    if np.any(output.base):
        words.append(f"base {'first' if output.base_first else 'last'}")
    if output.divisor != 1:
        words.append(f"divided by {digits(output.divisor, np.dtype(float))}")
    if output.scale != 1:
        words.append(f"times {digits(output.scale, np.dtype(float))}")
    return ", ".join(words)


def shown(name: str, value: Any) -> str:
    """An entry of the summary as people read it."""
    if value is None:
        return "–"
    if name == "bytes":
        return f"{value / 1e6:.2f} MB" if value >= 1e5 else f"{value} bytes"
    if name in ("depth", "leaves per tree"):
        low, mean, high = value
        return f"{low} to {high}, {mean} on average" if low != high else str(low)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:_}".replace("_", " ")
    if isinstance(value, dict):
        return ", ".join(f"{n} {k}" for k, n in value.items())
    if isinstance(value, list):
        shown = [str(v) for v in value[:12]]
        return ", ".join(shown) + (f" … ({len(value)})" if len(value) > 12 else "")
    return str(value)
