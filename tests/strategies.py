"""Random machines, the rows that try them hardest, and a plain walk to hold every engine to.

Everything here is written from the meaning of a machine and shares no code with the engines:

- `children_arrays`, `machines`: hypothesis strategies. Sizes and options are drawn by hypothesis,
  so they shrink; the contents come from a seeded NumPy generator, so that a large machine is cheap
  to draw. `make_children` and `make_machine` are the same without hypothesis.
- `probe_rows`: thresholds and their neighbours, NaN, infinities, zeros, denormals, categories.
- `walk_one`, `margin_one`, `walk_all`, `margins_of`: exit leaves and margins, by plain Python.
- `templates_of`: B of one tree, straight from the definition of a template.
"""

import math

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import decision_machines as dm

SHAPES = ("random", "balanced", "left", "right", "zigzag")
ORDERS = ("preorder", "breadth", "shuffled")

# A column that takes zero for missing takes this much for zero (1e-35 as a float32).
ZERO_THRESHOLD = float(np.float32(1e-35))

# Few, so that tests tie; values that float32 cannot tell apart, the smallest and the largest.
THRESHOLDS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 0.1, -0.1, 1e-36, -1e-36, 16777216.0, 1e-45, 1e30)

SPECIALS = (
    *(math.nan, math.inf, -math.inf, 0.0, -0.0),
    *(1e-36, -1e-36, 1e-35, 1e-45, -1e-45, 5e-324, -5e-324, 1e-310),
    *(2.0**24, 2.0**24 + 1, 2.0**24 + 2, -(2.0**24) - 1, 2.0**31, 2.0**53, 1e18, 1e300, -1e300),
)

CATEGORY_SPECIALS = (-1.0, -0.5, -0.0, 0.4, 0.999, 1.7, 2.0**24, 2.0**31, 2.0**32, 2.0**63, 1e18)


# -- trees ----------------------------------------------------------------------------------------


def make_children(n_leaves, rng, shape="random", order="shuffled"):
    """(J, 2) children of a tree of this many leaves: leaves left to right, tests parents first.

    `shape` says where each range of leaves is split, `order` which waiting test is numbered next.
    """
    children = np.empty((n_leaves - 1, 2), dtype=np.int32)
    waiting = [(0, n_leaves, 0, None)]  # first leaf, last leaf + 1, depth, (parent, side)
    n_tests = 0
    while waiting:
        at = {"preorder": -1, "breadth": 0, "shuffled": int(rng.integers(len(waiting)))}[order]
        first, last, depth, parent = waiting.pop(at)
        if last - first == 1:
            node = ~first
        else:
            node, n_tests = n_tests, n_tests + 1
            middle = _split(first, last, depth, shape, rng)
            waiting += [(middle, last, depth + 1, (node, 1)), (first, middle, depth + 1, (node, 0))]
        if parent is not None:
            children[parent] = node
    return children


def _split(first, last, depth, shape, rng):
    if shape == "zigzag":
        shape = ("left", "right")[depth % 2]
    if shape == "left":
        return last - 1
    if shape == "right":
        return first + 1
    if shape == "balanced":
        return (first + last) // 2
    return int(rng.integers(first + 1, last))


@st.composite
def children_arrays(draw, max_leaves=20, min_leaves=1):
    """Children of one random tree."""
    n_leaves = draw(st.integers(min_leaves, max_leaves))
    shape, order = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(ORDERS))
    return make_children(n_leaves, _rng(draw), shape, order)


def templates_of(children):
    """(L, J) templates of one tree: -1 where a leaf is left of a test, +1 right, 0 elsewhere.

    Paper: the template definition.
    """
    children = np.asarray(children).reshape(-1, 2)
    B = np.zeros((len(children) + 1, len(children)), dtype=np.int8)
    below = [None] * len(children)
    for test in reversed(range(len(children))):  # parents come first, so children are done
        sides = [[~node] if node < 0 else below[node] for node in children[test].tolist()]
        B[sides[0], test], B[sides[1], test] = -1, +1
        below[test] = sides[0] + sides[1]
    return B


# -- machines -------------------------------------------------------------------------------------


def make_machine(
    leaves,
    rng,
    *,
    shapes=SHAPES,
    orders=ORDERS,
    n_features=3,
    dtype=np.float64,
    rules=True,
    n_outputs=1,
    narrow=False,
    values="whole",
    values_dtype=np.float64,
    output_dtype=np.float64,
    oblique=False,
    plain_output=False,
    negative_fractions=None,
    names=None,
):
    """A random machine with `leaves[i]` leaves in tree i.

    `values`: "whole" draws small whole numbers (all sums are exact), "real" draws any.
    `rules`: columns of every `Rule`; otherwise column i is feature i as it is.
    `plain_output`: base 0, no division, no scale.
    `negative_fractions`: of the category sets; drawn where None.
    """
    narrow = narrow and len(leaves) > 0  # a forest without trees feeds nothing
    n_tests = sum(leaves) - len(leaves)
    columns = _columns(rng, n_features, np.dtype(dtype), rules, names, negative_fractions)
    children = [
        make_children(count, rng, str(rng.choice(shapes)), str(rng.choice(orders)))
        for count in leaves
    ]
    test_start = np.concatenate([[0], np.cumsum([len(c) for c in children])]).astype(np.int64)
    leaf_start = np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64)
    children = [
        np.where(c >= 0, c + test, c - leaf)
        for c, test, leaf in zip(children, test_start, leaf_start, strict=False)
    ]
    selection = rng.integers(len(columns.feature), size=n_tests)
    t = _thresholds(rng, n_tests, columns.dtype)
    t = np.where(columns.rule[selection] == dm.Rule.MEMBER, columns.dtype.type(0.5), t)
    if oblique:
        selection = _weights(rng, n_tests, len(columns.feature), columns.dtype)
    draw_values = _whole_numbers(rng) if values == "whole" else rng.standard_normal
    dyadic, any_divisor = (1.0, 2.0, 4.0), (1.0, 3.0, 10.0, 2.0)
    plain = (1.0,)
    divisors = plain if plain_output else dyadic if values == "whole" else any_divisor
    scales = plain if plain_output else (1.0, 0.5) if values == "whole" else (1.0, 0.3)
    base = np.zeros(n_outputs) if plain_output else draw_values(n_outputs)
    return dm.DecisionMachine(
        columns=columns,
        selection=selection,
        t=t,
        missing=rng.choice([-1, 1], size=n_tests),
        children=np.concatenate([np.empty((0, 2), dtype=np.int32), *children]),
        V=draw_values((sum(leaves), 1 if narrow else n_outputs)).astype(values_dtype),
        trees=dm.Trees(
            test_start=test_start,
            feeds=rng.integers(n_outputs, size=len(leaves)) if narrow else None,
        ),
        output=dm.Output(
            base=base.astype(output_dtype),
            dtype=output_dtype,
            base_first=bool(rng.integers(2)),
            divisor=float(rng.choice(divisors)),
            scale=float(rng.choice(scales)),
        ),
    )


def _whole_numbers(rng):
    return lambda size: rng.integers(-8, 9, size=size)


def _columns(rng, n_features, dtype, rules, names, negative_fractions):
    if not rules:
        return dm.Columns(n_features, dtype, names=names)
    n = int(rng.integers(1, 2 * n_features + 1))
    rule = rng.integers(4, size=n)
    start, members, answer = [0], [], []
    n_sets = int(np.sum(rule == dm.Rule.MEMBER))
    if negative_fractions is None:
        negative_fractions = bool(rng.integers(2))
    for _ in range(n_sets):
        found = np.flatnonzero(rng.random(12) < 0.4)
        members += found.tolist()
        answer += rng.choice([-1, 0, 1], size=len(found)).tolist()
        start.append(len(members))
    sets = dm.CategorySets(
        start=np.array(start),
        members=np.array(members, dtype=np.int64),
        answer=np.array(answer, dtype=np.int8),
        outside=rng.choice([-1, 0, 1], size=n_sets),
        negative_fractions=negative_fractions,
    )
    feature = rng.integers(n_features, size=n)
    return dm.Columns(n_features, dtype, feature, rule, names, sets if n_sets else None)


def _thresholds(rng, n_tests, dtype):
    """Half of them from a short list, so that tests share thresholds and columns tie."""
    drawn = np.where(
        rng.random(n_tests) < 0.5,
        rng.choice(THRESHOLDS, size=n_tests),
        np.round(rng.standard_normal(n_tests), int(rng.integers(1, 9))),
    )
    return drawn.astype(dtype)


def _weights(rng, n_tests, n_columns, dtype):
    """Weights of oblique tests, powers of two: a product is exact, only the sum can round."""
    weights = rng.choice([1.0, -1.0, 0.5, 2.0], size=(n_tests, n_columns))
    stored = rng.random((n_tests, n_columns)) < 0.6
    stored[np.arange(n_tests), rng.integers(n_columns, size=n_tests)] = True
    return sp.csr_array(np.where(stored, weights, 0.0).astype(dtype))


@st.composite
def machines(
    draw,
    max_trees=5,
    max_leaves=16,
    min_trees=0,
    min_leaves=1,
    *,
    n_features=None,
    dtype=None,
    rules=None,
    n_outputs=None,
    narrow=None,
    values=None,
    oblique=False,
    plain_output=False,
    negative_fractions=None,
):
    """Random forests: ragged, with one-leaf trees, sometimes empty. What is None is drawn.

    Narrow machines feed one output per tree, wide ones all outputs. Values are whole numbers or
    reals, in float32 or float64, summed in either.
    """
    leaves = draw(
        st.lists(st.integers(min_leaves, max_leaves), min_size=min_trees, max_size=max_trees)
    )

    def choose(given, *options):
        return given if given is not None else draw(st.sampled_from(options))

    floats = (np.float64, np.float32)
    return make_machine(
        leaves,
        n_features=choose(n_features, 3, 1, 5),
        dtype=choose(dtype, *floats),
        rules=choose(rules, False, True),
        n_outputs=choose(n_outputs, 1, 2, 3),
        narrow=choose(narrow, False, True),
        values=choose(values, "whole", "real"),
        values_dtype=choose(None, *floats),
        output_dtype=choose(None, *floats),
        oblique=oblique,
        plain_output=plain_output,
        negative_fractions=negative_fractions,
        rng=_rng(draw),
    )


def _rng(draw):
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


# -- rows -----------------------------------------------------------------------------------------


def probe_rows(machine, max_rows=300, seed=0):
    """(m, n_features) float64 rows that try every threshold, category and odd number.

    Every feature has a list of probes: the thresholds of the tests that read it, the next value
    below and above in the columns' dtype, float64 values a hair from them, category probes and
    `SPECIALS`. Each probe stands in some row (while there are at most `max_rows`), the other
    features of that row are drawn from their own probes and from plain random numbers.
    """
    rng = np.random.default_rng(seed)
    pools = [_probes(machine, feature) for feature in range(machine.n_features)]
    m = min(max_rows, max((len(pool) for pool in pools), default=1))
    X = np.empty((2 * m, machine.n_features))
    for feature, pool in enumerate(pools):
        X[:m, feature] = rng.permutation(np.resize(rng.permutation(pool), m))
        X[m:, feature] = rng.choice(pool, size=m)
    plain = np.round(3 * rng.standard_normal(X.shape), 1)
    return np.concatenate([np.where(rng.random(X.shape) < 0.5, X, plain)[m:], X[:m]])


def _probes(machine, feature):
    columns = machine.columns
    reads = columns.feature == feature
    member = columns.rule == dm.Rule.MEMBER
    S = machine.S.tocsr()
    t = machine.t[np.unique(S.nonzero()[0][np.isin(S.nonzero()[1], np.flatnonzero(reads))])]
    with np.errstate(over="ignore", under="ignore"):
        below, above = (np.nextafter(t, t.dtype.type(end)) for end in (-np.inf, np.inf))
        hair = [np.nextafter(t.astype(np.float64), end) for end in (-np.inf, np.inf)]
        middle = [(t.astype(np.float64) + side) / 2 for side in (below, above)]
    probes = [t, below, above, *hair, *middle, SPECIALS]
    for which in np.flatnonzero(reads[member]):
        found = columns.sets.members[columns.sets.start[which] : columns.sets.start[which + 1]]
        probes += [found, found + 0.5, found + 1.0, -found - 0.5, CATEGORY_SPECIALS]
    probes = np.concatenate([np.asarray(part, dtype=np.float64) for part in probes])
    return np.concatenate([np.unique(probes), [-0.0]])


# -- the plain walk -------------------------------------------------------------------------------


def column_value(machine, column, x):
    """z of one column for one row x: cast, then the column's rule."""
    columns = machine.columns
    with np.errstate(over="ignore", under="ignore"):
        value = columns.dtype.type(x[columns.feature[column]])
    rule = columns.rule[column]
    if rule == dm.Rule.NAN_AS_ZERO:
        return columns.dtype.type(0) if np.isnan(value) else value
    if rule == dm.Rule.ZERO_AS_NAN:
        return columns.dtype.type(np.nan) if abs(float(value)) <= ZERO_THRESHOLD else value
    if rule == dm.Rule.MEMBER:
        which = int(np.sum(columns.rule[:column] == dm.Rule.MEMBER))
        return columns.dtype.type(_member(columns.sets, which, float(value)))
    return value


def _member(sets, which, value):
    """0, 1 or NaN: whether a category is in a set."""
    if math.isnan(value):
        return math.nan
    answer = int(sets.outside[which])
    lowest = -1.0 if sets.negative_fractions else -0.0
    is_category = math.isfinite(value) and (value > lowest or value == 0)
    if is_category:
        for i in range(sets.start[which], sets.start[which + 1]):
            if int(sets.members[i]) == math.trunc(value):
                answer = int(sets.answer[i])
    return {-1: 0.0, +1: 1.0, 0: math.nan}[answer]


def goes_left(machine, test, z):
    """Whether a row goes left at a test: z ≤ t, or the missing answer where z is NaN.

    An oblique test weighs the columns it stores, in their order.
    """
    if machine.is_oblique:
        S = machine.S
        row = slice(S.indptr[test], S.indptr[test + 1])
        zero = machine.columns.dtype.type(0)
        with np.errstate(all="ignore"):
            terms = [w * z[i] for w, i in zip(S.data[row], S.indices[row], strict=True)]
            value = sum(terms, start=zero)
    else:
        value = z[machine.selection[test]]
    if np.isnan(value):
        return machine.missing[test] == -1
    return bool(value <= machine.t[test])


def walk_one(machine, x):
    """Exit leaf of every tree for one row x, counted from 0 within the tree."""
    z = [column_value(machine, column, x) for column in range(len(machine.columns.feature))]

    def descend(node):
        if node < 0:
            return ~node
        return descend(int(machine.children[node, 0 if goes_left(machine, node, z) else 1]))

    exits = []
    first_leaf = 0
    for tree in range(machine.n_trees):
        first_test, end_test = machine.trees.test_start[tree : tree + 2].tolist()
        root = first_test if end_test > first_test else ~first_leaf
        exits.append(descend(root) - first_leaf)
        first_leaf += end_test - first_test + 1
    return exits


def margin_one(machine, exits):
    """(k,) margin of a row whose exit leaves are known: a sum in the output's dtype, in order."""
    output, dtype = machine.output, machine.output.dtype.type
    with np.errstate(all="ignore"):
        total = [dtype(b) if output.base_first else dtype(0) for b in output.base]
        first_leaf = 0
        for tree, leaf in enumerate(exits):
            value = machine.V[first_leaf + leaf]
            feeds = int(machine.trees.feeds[tree])
            for output_index in range(len(total)) if feeds < 0 else [feeds]:
                added = value[output_index if len(value) > 1 else 0]
                total[output_index] = dtype(total[output_index] + dtype(added))
            first_leaf += (
                int(machine.trees.test_start[tree + 1] - machine.trees.test_start[tree]) + 1
            )
        if output.divisor != 1:
            total = [dtype(v / dtype(output.divisor)) for v in total]
        if output.scale != 1:
            total = [dtype(v * dtype(output.scale)) for v in total]
        if not output.base_first:
            total = [dtype(v + dtype(b)) for v, b in zip(total, output.base, strict=True)]
    return np.array(total, dtype=dtype)


def walk_all(machine, X):
    """(m, n_trees) exit leaves of rows, by `walk_one`."""
    exits = [walk_one(machine, x) for x in np.asarray(X)]
    return np.array(exits, dtype=np.int64).reshape(len(X), machine.n_trees)


def margins_of(machine, X):
    """(m, k) margins of rows, by `walk_one` and `margin_one`."""
    margins = [margin_one(machine, walk_one(machine, x)) for x in np.asarray(X)]
    return np.array(margins, dtype=machine.output.dtype).reshape(len(X), machine.n_outputs)
