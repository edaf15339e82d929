"""Every input that a small machine can tell apart, from the meaning of a machine alone.

`values_of` lists, for one feature, a value from every region that its tests distinguish: each
threshold, the next number above it, the ends of the line, categories and their neighbours, zero,
NaN. A tree answers all other values as it answers one of these, so trying the product of the lists
is trying everything. Nothing here is shared with the explain room.
"""

import itertools

import numpy as np
from strategies import ZERO_THRESHOLD

import decision_machines as dm


def values_of(machine, feature, *, missing=True, infinite=True):
    """Values of a feature that stand for all of its values."""
    columns, dtype = machine.columns, machine.columns.dtype
    up, down = dtype.type(np.inf), dtype.type(-np.inf)
    found = [dtype.type(0)]
    for column in np.flatnonzero(columns.feature == feature).tolist():
        if columns.rule[column] == dm.Rule.MEMBER:
            which = int(np.sum(columns.rule[:column] == dm.Rule.MEMBER))
            members = columns.sets.members[
                columns.sets.start[which] : columns.sets.start[which + 1]
            ]
            whole = [dtype.type(k) for k in members] + [dtype.type(k + 1) for k in members]
            found += whole + [dtype.type(v) for v in (-1, -0.5, 0, 0.5, 1e9, 3e9)]
        else:
            t = machine.t[machine.selection == column]
            found += [*t, *np.nextafter(t, up)]
        if columns.rule[column] == dm.Rule.ZERO_AS_NAN:
            z = dtype.type(ZERO_THRESHOLD)
            found += [z, -z, np.nextafter(z, up), np.nextafter(-z, down)]
    if infinite:
        found += [up, down]
    found = sorted({float(v) for v in found if infinite or np.isfinite(v)})
    return found + [float("nan")] * missing


def every_input(machine, **options):
    """(m, n_features) rows that stand for all inputs of a machine of few tests."""
    pools = [values_of(machine, f, **options) for f in range(machine.n_features)]
    return np.array(list(itertools.product(*pools))).reshape(-1, machine.n_features)
