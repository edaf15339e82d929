"""The soft tree's native kernel against the same sum written plainly in torch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SHAPES, machines, make_children, make_machine

from decision_machines import _native
from decision_machines.errors import InputError

torch = pytest.importorskip("torch")

from decision_machines.relax.native_soft import (  # noqa: E402
    SoftStructure,
    soft_tree_sum,
    soft_tree_sum_native,
)
from decision_machines.relax.paths import Paths  # noqa: E402

TARGETS = _native.targets()
DTYPES = (torch.float32, torch.float64)
NEAR = {torch.float32: {"rtol": 2e-4, "atol": 2e-5}, torch.float64: {"rtol": 1e-10, "atol": 1e-11}}


def plain_sum(structure, z, t, slope, V):
    """Tree by tree, test by test, weights from the root down."""
    selection = torch.tensor(structure.selection)
    is_nan = torch.isnan(z)[:, selection]
    q = (torch.where(torch.isnan(z), 0.0, z)[:, selection] - t) * slope
    right, left = torch.sigmoid(q), torch.sigmoid(-q)
    goes_right = torch.tensor(structure.missing > 0).expand_as(q)
    right = torch.where(is_nan, goes_right.to(q.dtype), right)
    left = torch.where(is_nan, (~goes_right).to(q.dtype), left)
    total = z.new_zeros((len(z), structure.n_outputs)) + 0.0 * V.sum()
    for i, (first, last) in enumerate(
        zip(structure.test_start[:-1], structure.test_start[1:], strict=True)
    ):
        feed = int(structure.feeds[i])
        outputs = slice(None) if feed < 0 else slice(feed, feed + 1)
        P = {int(first): z.new_ones(len(z))}
        if first == last:
            P = {~int(first + i): z.new_ones(len(z))}
        for j in range(first, last):
            above = P.pop(j)
            P[int(structure.children[j, 0])] = above * left[:, j]
            P[int(structure.children[j, 1])] = above * right[:, j]
        part = torch.stack([P[~leaf] for leaf in range(first + i, last + i + 1)], dim=1)
        spread = z.new_zeros((len(z), structure.n_outputs))
        spread[:, outputs] = part @ V[first + i : last + i + 1]
        total = total + spread
    return total


def forest(leaves, *, n=3, k=1, narrow=False, seed=0, shapes=SHAPES):
    """A random structure with leaves[i] leaves in tree i."""
    rng = np.random.default_rng(seed)
    parts = [make_children(count, rng, str(rng.choice(shapes))) for count in leaves]
    test_start = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    leaf_start = np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64)
    children = [
        np.where(part >= 0, part + test, part - leaf)
        for part, test, leaf in zip(parts, test_start[:-1], leaf_start[:-1], strict=True)
    ]
    n_tests = int(test_start[-1])
    return SoftStructure(
        np.concatenate([np.empty((0, 2)), *children]).astype(np.int32),
        test_start,
        rng.integers(n, size=n_tests).astype(np.int32),
        rng.choice([-1, 1], size=n_tests).astype(np.int8),
        (rng.integers(k, size=len(leaves)) if narrow else np.full(len(leaves), -1)).astype(
            np.int32
        ),
        n,
        k,
    )


def numbers(structure, m, dtype, *, seed=0, scale=2.0, nan=0.1):
    """Random z, t, slope and V for a structure, as leaves of torch's graph."""
    rng = np.random.default_rng(seed)
    n_tests, narrow = len(structure.selection), bool(np.any(structure.feeds >= 0))
    z = rng.standard_normal((m, structure.n_columns))
    z[rng.random(z.shape) < nan] = np.nan
    values = (
        z,
        rng.standard_normal(n_tests),
        scale * rng.random(n_tests) + 0.2,
        rng.standard_normal((n_tests + len(structure.feeds), 1 if narrow else structure.n_outputs)),
    )
    return [torch.tensor(value, dtype=dtype, requires_grad=True) for value in values]


def gradients(call, inputs, seed=0):
    """The sum, and its gradient by each input under a random outer gradient."""
    out = call(*inputs)
    G = torch.tensor(np.random.default_rng(seed).standard_normal(out.shape), dtype=out.dtype)
    return [out.detach(), *torch.autograd.grad(out, inputs, G, allow_unused=True)]


def zeros_for_none(found, inputs):
    """Gradients of torch where unused ones are zeros."""
    return [
        found[0],
        *(torch.zeros_like(x) if g is None else g for g, x in zip(found[1:], inputs, strict=True)),
    ]


def assert_same_sums(structure, inputs, **options):
    dtype = inputs[0].dtype
    ours = gradients(lambda *x: soft_tree_sum_native(structure, *x, **options), inputs)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    plain = zeros_for_none(gradients(lambda *x: plain_sum(structure, *x), exact), exact)
    for mine, reference in zip(ours, plain, strict=True):
        size = float(reference.abs().max()) if reference.numel() else 0.0
        near = NEAR[dtype]
        torch.testing.assert_close(
            mine.double(), reference, rtol=near["rtol"], atol=near["atol"] * max(1.0, size)
        )


@pytest.fixture(params=TARGETS)
def target(request, monkeypatch):
    monkeypatch.setenv("DECISION_MACHINES_TARGET", request.param)
    return request.param


# -- the function alone ---------------------------------------------------------------------------


def ulps(found, exact, dtype):
    return np.abs(found.astype(np.longdouble) - exact) / np.spacing(exact.astype(dtype)).astype(
        np.longdouble
    )


@pytest.mark.parametrize(("dtype", "limit", "most"), [("float32", 87, 2), ("float64", 708, 2)])
def test_exp_is_within_two_units_in_the_last_place(target, dtype, limit, most):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-limit, limit, 200_003), rng.uniform(-1, 1, 100_000), [0.0, limit, -limit]]
    ).astype(dtype)
    out = np.empty_like(x)
    getattr(_native, f"soft_exp{dtype[-2:]}")(target, x, out)
    assert ulps(out, np.exp(x.astype(np.longdouble)), dtype).max() <= most


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 87), ("float64", 708)])
def test_both_gates_are_accurate_however_small(target, dtype, limit):
    rng = np.random.default_rng(1)
    q = np.concatenate([rng.uniform(-limit, limit, 100_001), rng.uniform(-3, 3, 50_000)])
    q = q.astype(dtype)
    left, right = np.empty_like(q), np.empty_like(q)
    getattr(_native, f"soft_gates{dtype[-2:]}")(target, q, left, right)
    wide = q.astype(np.longdouble)
    assert ulps(right, 1 / (1 + np.exp(-wide)), dtype).max() <= 4
    assert ulps(left, 1 / (1 + np.exp(wide)), dtype).max() <= 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gates_of_anything_are_probabilities(target, dtype):
    q = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 88, -88, 709, -709, 0, -0.0], dtype)
    left, right = np.empty_like(q), np.empty_like(q)
    getattr(_native, f"soft_gates{dtype[-2:]}")(target, q, left, right)
    assert np.all((left >= 0) & (left <= 1) & (right >= 0) & (right <= 1))
    assert np.allclose(left + right, 1)
    hard = np.array([right[0], right[2], left[1], left[3]])
    assert np.all(np.abs(hard - 1) <= np.finfo(dtype).eps)


# -- the sum and its gradients --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize(
    ("k", "narrow"), [(1, False), (1, True), (3, True), (3, False), (9, False)]
)
def test_every_target_gives_the_plain_sum_and_its_gradients(target, dtype, k, narrow):
    structure = forest([1, 2, 7, 33, 1, 16], n=4, k=k, narrow=narrow, seed=k)
    for m in (1, 65, 300):
        assert_same_sums(structure, numbers(structure, m, dtype, seed=m))


@given(
    leaves=st.lists(st.integers(1, 20), max_size=5),
    k=st.integers(1, 4),
    narrow=st.booleans(),
    m=st.integers(0, 150),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**32 - 1),
)
def test_ragged_forests_give_the_plain_sum_and_its_gradients(leaves, k, narrow, m, dtype, seed):
    structure = forest(leaves, k=k, narrow=narrow, seed=seed)
    assert_same_sums(structure, numbers(structure, m, dtype, seed=seed))


@given(machine=machines())
def test_a_machines_structure_is_taken_as_it_is(machine):
    structure = SoftStructure.of(machine)
    inputs = numbers(structure, 20, torch.float64, seed=1)
    assert_same_sums(structure, inputs)


@pytest.mark.parametrize("skip", [0.0, 1e-2])
@pytest.mark.parametrize(("k", "narrow"), [(1, False), (2, True), (2, False)])
def test_gradcheck_in_every_input(k, narrow, skip):
    structure = forest([1, 6, 9], k=k, narrow=narrow, seed=3)
    inputs = numbers(structure, 6, torch.float64, seed=4, nan=0.0)
    assert torch.autograd.gradcheck(
        lambda *x: soft_tree_sum_native(structure, *x, skip=skip), inputs
    )


def test_gradcheck_where_columns_are_missing():
    structure = forest([8, 5], seed=5)
    z, *rest = numbers(structure, 6, torch.float64, seed=6, nan=0.4)
    z = z.detach()
    assert torch.isnan(z).any()
    assert torch.autograd.gradcheck(lambda *x: soft_tree_sum_native(structure, z, *x), rest)


def test_a_tree_of_one_leaf_is_its_value():
    structure = forest([1, 1], k=2, narrow=False)
    z, t, slope, V = numbers(structure, 5, torch.float64)
    out = soft_tree_sum_native(structure, z, t, slope, V)
    assert torch.equal(out, (V[0] + V[1]).expand(5, 2))
    out.sum().backward()
    assert torch.equal(V.grad, torch.full_like(V, 5.0))
    assert torch.equal(z.grad, torch.zeros_like(z))


def test_a_forest_without_trees_is_zero():
    structure = forest([], k=2)
    assert torch.equal(
        soft_tree_sum_native(structure, *numbers(structure, 4, torch.float32)), torch.zeros(4, 2)
    )


@pytest.mark.parametrize("shape", ["left", "right", "zigzag"])
@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_chains_of_depth_200(shape, dtype):
    structure = forest([201], shapes=[shape], seed=7)
    assert_same_sums(structure, numbers(structure, 70, dtype, seed=8))


def test_narrow_values_are_wide_ones_with_zeros():
    narrow = forest([5, 9, 3], k=3, narrow=True, seed=9)
    wide = SoftStructure(**{**vars(narrow), "feeds": np.full(3, -1, np.int32)})
    z, t, slope, V = numbers(narrow, 40, torch.float64, seed=10)
    tree = np.repeat(np.arange(3), [5, 9, 3])
    W = torch.zeros(17, 3, dtype=torch.float64)
    W[np.arange(17), narrow.feeds[tree]] = V.detach()[:, 0]
    torch.testing.assert_close(
        soft_tree_sum_native(narrow, z, t, slope, V), soft_tree_sum_native(wide, z, t, slope, W)
    )


# -- extremes -------------------------------------------------------------------------------------

EXTREMES = (1e30, -1e30, 3e38, -3e38, float("inf"), float("-inf"), float("nan"), 1e-40, 0.0, 1.0)


@pytest.mark.parametrize("skip", [0.0, 1e-3])
@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_extreme_columns_give_finite_sums_and_gradients(target, dtype, skip):
    structure = forest([1, 2, 30, 17], n=len(EXTREMES), k=2, seed=11)
    z, t, slope, V = numbers(structure, 100, dtype, seed=12)
    rng = np.random.default_rng(13)
    with torch.no_grad():
        z[:] = torch.tensor(rng.choice(EXTREMES, size=z.shape), dtype=dtype)
        t[::3] = torch.tensor(rng.choice([1e30, -1e30, 3e38, np.inf, -np.inf], len(t[::3])))
        slope[::4] = torch.tensor(rng.choice([1e30, 0.0, 1e-30, np.inf], len(slope[::4])))
    call = lambda *x: soft_tree_sum_native(structure, *x, skip=skip)  # noqa: E731
    for found in gradients(call, [z, t, slope, V]):
        assert torch.isfinite(found).all()


def test_endless_slopes_walk_as_the_machine_does():
    structure = forest([16, 9], seed=14)
    z, t, _, V = (x.detach() for x in numbers(structure, 200, torch.float64, seed=15))
    hard = soft_tree_sum_native(structure, z, t, torch.full_like(t, float("inf")), V)
    for row, found in zip(z, hard, strict=True):
        total = 0.0
        for i, node in enumerate(structure.test_start[:-1].tolist()):
            while node >= 0:
                x = row[structure.selection[node]]
                right = structure.missing[node] > 0 if torch.isnan(x) else bool(x > t[node])
                node = int(structure.children[node, int(right)])
            total += float(V[~node, 0])
            assert i < len(structure.feeds)
        assert abs(float(found[0]) - total) < 1e-12


def test_the_same_infinity_is_a_tie(target):
    structure = forest([2], n=1)
    z, V = torch.tensor([[np.inf], [1.0]]), torch.tensor([[1.0], [3.0]])
    t, slope = torch.tensor([np.inf]), torch.tensor([5.0])
    out = soft_tree_sum_native(structure, z, t, slope, V)
    assert out.tolist() == [[2.0], [1.0]]


def test_missing_columns_pass_no_gradient():
    structure = forest([12], n=2, seed=16)
    z, t, slope, V = numbers(structure, 50, torch.float64, seed=17, nan=0.3)
    soft_tree_sum_native(structure, z, t, slope, V).sum().backward()
    assert torch.all(z.grad[torch.isnan(z)] == 0)
    assert torch.any(z.grad[~torch.isnan(z)] != 0)


# -- skipping -------------------------------------------------------------------------------------


def cosine(a, b):
    return float((a * b).sum() / (a.norm() * b.norm()))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("scale", [4.0, 20.0])
def test_skipping_light_paths_keeps_the_gradient(target, scale, k):
    structure = forest([64] * 10, n=10, k=k, seed=18, shapes=["random", "balanced"])
    inputs = numbers(structure, 256, torch.float64, seed=19, scale=scale)
    exact = gradients(lambda *x: soft_tree_sum_native(structure, *x), inputs)
    near = gradients(lambda *x: soft_tree_sum_native(structure, *x, skip=1e-3), inputs)
    assert not torch.equal(exact[0], near[0])
    torch.testing.assert_close(near[0], exact[0], rtol=0, atol=0.1)
    for a, b in zip(exact[1:], near[1:], strict=True):
        assert cosine(a, b) > 0.9999


def test_a_subtree_of_equal_values_may_be_skipped_for_nothing():
    structure = forest([40, 30], seed=20)
    z, t, slope, V = numbers(structure, 80, torch.float64, seed=21, scale=30.0)
    V = torch.full_like(V, 2.5)
    out = soft_tree_sum_native(structure, z, t, slope, V, skip=0.05)
    torch.testing.assert_close(out, torch.full_like(out, 5.0))


def test_a_row_errs_by_less_than_skip_for_each_path_cut():
    structure = forest([200], seed=22)
    z, t, slope, V = (x.detach() for x in numbers(structure, 90, torch.float64, seed=23, scale=9.0))
    spread = float(V.max() - V.min())
    exact = soft_tree_sum_native(structure, z, t, slope, V)
    for skip in (1e-2, 1e-4, 1e-6):
        near = soft_tree_sum_native(structure, z, t, slope, V, skip=skip)
        assert 0 < float((near - exact).abs().max()) < skip * spread * 199


# -- threads, shapes, dtypes ----------------------------------------------------------------------


@pytest.mark.parametrize("skip", [0.0, 1e-3])
@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_any_number_of_threads_gives_the_same_bits(dtype, skip):
    structure = forest([64] * 8, n=6, k=2, narrow=True, seed=24)
    inputs = numbers(structure, 1500, dtype, seed=25)
    one, *others = (
        gradients(
            lambda *x, n=n: soft_tree_sum_native(structure, *x, skip=skip, n_threads=n), inputs
        )
        for n in (1, 2, 3, 7)
    )
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_leading_dimensions_are_kept():
    structure = forest([9], k=2, seed=26)
    z, t, slope, V = (x.detach() for x in numbers(structure, 24, torch.float32, seed=27))
    flat = soft_tree_sum_native(structure, z, t, slope, V)
    assert torch.equal(
        soft_tree_sum_native(structure, z.reshape(2, 3, 4, 3), t, slope, V),
        flat.reshape(2, 3, 4, 2),
    )
    assert soft_tree_sum_native(structure, z[0], t, slope, V).shape == (2,)


def test_strided_tensors_are_read_as_they_are():
    structure = forest([9, 4], seed=28)
    z, t, slope, V = (x.detach() for x in numbers(structure, 30, torch.float32, seed=29))
    strided = z.t().contiguous().t()
    assert not strided.is_contiguous()
    assert torch.equal(
        soft_tree_sum_native(structure, strided, t, slope, V),
        soft_tree_sum_native(structure, z, t, slope, V),
    )


def test_mixed_dtypes_go_to_the_widest_and_halves_to_float32():
    structure = forest([9], seed=30)
    z, t, slope, V = (x.detach() for x in numbers(structure, 8, torch.float32, seed=31))
    assert soft_tree_sum_native(structure, z, t, slope, V.double()).dtype == torch.float64
    z, t, slope, V = (x.bfloat16() for x in (z, t, slope, V))
    half = soft_tree_sum_native(structure, z, t, slope, V)
    assert half.dtype == torch.bfloat16
    single = soft_tree_sum_native(structure, z.float(), t.float(), slope.float(), V.float())
    assert torch.equal(half, single.bfloat16())


def test_only_what_is_asked_for_is_given():
    structure = forest([9], seed=32)
    z, t, slope, V = numbers(structure, 8, torch.float32, seed=33)
    z, slope = z.detach(), slope.detach()
    soft_tree_sum_native(structure, z, t, slope, V).sum().backward()
    assert z.grad is None
    assert slope.grad is None
    assert t.grad is not None
    assert V.grad is not None


def test_the_structure_can_be_pickled():
    structure = forest([9, 4], seed=34)
    inputs = [x.detach() for x in numbers(structure, 8, torch.float32, seed=35)]
    before = soft_tree_sum_native(structure, *inputs)
    again = pickle.loads(pickle.dumps(structure))
    assert torch.equal(soft_tree_sum_native(again, *inputs), before)


# -- from q ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_the_sum_from_q_is_the_sum_from_z(dtype):
    machine = make_machine([20, 1, 7], np.random.default_rng(36), rules=False, n_outputs=2)
    structure, paths = SoftStructure.of(machine), Paths.of(machine)
    z, t, slope, V = numbers(structure, 70, dtype, seed=37, nan=0.0)
    q = ((z[:, structure.selection.copy()] - t) * slope).detach()
    plain = gradients(lambda V: plain_sum(structure, z, t, slope, V), [V])
    by_test = q.t().contiguous().t()
    assert not by_test.is_contiguous()
    for query in (q.requires_grad_(), by_test.requires_grad_()):
        found = gradients(lambda q, V: soft_tree_sum(q, paths, V), [query, V])
        torch.testing.assert_close(found[0], plain[0], **NEAR[dtype])
        torch.testing.assert_close(found[2], plain[1], **NEAR[dtype])
        if dtype == torch.float64:
            assert torch.autograd.gradcheck(lambda q: soft_tree_sum(q, paths, V), query[:5])


def test_wide_inputs_are_laid_out_in_groups():
    structure = forest([300, 200, 250, 3], n=2000, seed=38)
    assert_same_sums(structure, numbers(structure, 40, torch.float64, seed=39))
    shared = forest([600, 500], n=700, seed=40)
    assert_same_sums(shared, numbers(shared, 20, torch.float64, seed=41))


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"z": torch.zeros(4, 2)}, "z of shape"),
        ({"t": torch.zeros(3)}, "t of shape"),
        ({"slope": torch.zeros(3)}, "slope of shape"),
        ({"V": torch.zeros(9, 2)}, "V of shape"),
        ({"t": torch.full((8,), float("nan"))}, "t holds NaN"),
        ({"slope": torch.full((8,), float("nan"))}, "slope holds NaN"),
        ({"skip": 1.0}, "skip = 1.0"),
        ({"skip": -0.1}, "skip = -0.1"),
        ({"V": torch.zeros(9, 1, device="meta")}, "tensors on cpu, meta"),
    ],
)
def test_bad_arguments_are_refused_in_words(change, words):
    structure = forest([9], seed=38)
    names = ("z", "t", "slope", "V")
    good = dict(zip(names, numbers(structure, 4, torch.float32), strict=True))
    with pytest.raises(InputError, match=words):
        soft_tree_sum_native(structure, **{**good, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"children": np.array([[1, -1], [0, -2]], np.int32)},
        {"children": np.array([[-1, -2], [-1, -3]], np.int32)},
        {"children": np.array([[1, -1], [-2, -9]], np.int32)},
        {"selection": np.array([0, 5], np.int32)},
        {"selection": np.array([0, -1], np.int32)},
        {"missing": np.array([0, 1], np.int8)},
        {"feeds": np.array([3], np.int32)},
        {"test_start": np.array([0, 1])},
        {"test_start": np.array([1, 2])},
    ],
)
def test_arrays_that_are_no_forest_are_refused(change):
    good = forest([3], seed=39)
    with pytest.raises(InputError, match="preparing a soft tree"):
        SoftStructure(**{**vars(good), **change}).plan  # noqa: B018
