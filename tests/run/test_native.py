"""Every kernel on every target equals the plain descent, bit for bit, whatever the rows are."""

import os
import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_checks import KERNELS, TARGETS, check, expected, many, run, same_bits
from strategies import SHAPES, machines, make_machine, probe_rows

import decision_machines as dm
from decision_machines.run.engines import native


@settings(max_examples=60, deadline=None)
@given(machines(max_trees=6, max_leaves=24), st.sampled_from([np.float64, np.float32]))
def test_every_kernel_on_every_target_equals_the_plain_descent(machine, dtype):
    with np.errstate(over="ignore"):
        X = probe_rows(machine, max_rows=60).astype(dtype)
    check(machine, X)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_of_every_size_are_exact(target, dtype):
    rng = np.random.default_rng(5)
    sizes = [1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 129, 255, 256, 257, 300, 1000]
    machine = make_machine(
        sizes, rng, dtype=dtype, n_features=6, values="real", values_dtype=dtype, output_dtype=dtype
    )
    check(machine, many(probe_rows(machine), 700), [target])


@pytest.mark.parametrize("shape", ["balanced", "left", "right", "zigzag", "random"])
@pytest.mark.parametrize("n_leaves", [64, 300])
def test_trees_of_every_shape_are_exact(shape, n_leaves):
    rng = np.random.default_rng(7)
    machine = make_machine([n_leaves] * 3, rng, shapes=(shape,), values="real")
    check(machine, many(probe_rows(machine), 400), [TARGETS[0], TARGETS[-1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_features", "sizes"),
    [
        (3, [64] * 40),  # several bytes to a column
        (30, [64, 1, 2, 3, 33, 31, 1, 1, 5, 9, 64, 17]),
        (80, [64] * 12),
        (110, [40] * 30),
    ],
)
def test_packs_of_every_width_are_exact(n_features, sizes, dtype):
    rng = np.random.default_rng(61)
    machine = make_machine(
        sizes, rng, dtype=dtype, n_features=n_features, values="real", output_dtype=dtype
    )
    machine = replace(machine, t=rng.standard_normal(machine.n_tests).astype(machine.t.dtype))
    X = rng.standard_normal((60, n_features)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 0] = machine.t[rng.integers(machine.n_tests, size=len(X))]
    for target in TARGETS:
        plan = native.compile_plan(machine, target=target, kernel="pack")
        assert target != "v4_vbmi" or set(plan.describe().kernels) == {"pack"}
    check(machine, X, kernels=["pack"])
    check(machine, X.astype(np.float32), kernels=["pack"])


def test_nan_takes_one_code_where_one_serves_all_tests_of_a_column():
    """Tests below 0 send NaN right and the others left, as a source does that reads NaN as 0."""
    rng = np.random.default_rng(67)
    machine = make_machine([40] * 5, rng, n_features=3, rules=False, values="real")
    t = rng.standard_normal(machine.n_tests)
    machine = replace(machine, t=t, missing=np.where(t >= 0, -1, 1))
    X = rng.standard_normal((400, 3))
    X[rng.random(X.shape) < 0.3] = np.nan
    check(machine, X)


def test_a_tree_of_more_than_65536_leaves_is_exact():
    rng = np.random.default_rng(9)
    machine = make_machine(
        [70_000], rng, shapes=("random",), orders=("preorder",), n_features=2, rules=False
    )
    t = np.sort(rng.standard_normal(machine.n_tests))
    machine = replace(machine, t=t)
    X = np.concatenate([rng.standard_normal((300, 2)), t[:200].reshape(-1, 2), [[np.nan, np.inf]]])
    check(machine, X, [TARGETS[-1]], ["auto", "deep", "raw"])


def test_a_column_of_more_than_65535_thresholds_in_one_tree_is_exact():
    n = 66_000
    rng = np.random.default_rng(3)
    machine = make_machine(
        [n], rng, shapes=("balanced",), orders=("preorder",), n_features=1, rules=False
    )
    machine = replace(machine, t=np.arange(n - 1) - 3e4)
    X = np.concatenate([rng.uniform(-4e4, 4e4, (300, 1)), [[np.nan], [np.inf], [-np.inf]]])
    check(machine, X, [TARGETS[-1]], ["auto"])


def test_many_trees_of_many_thresholds_are_coded_in_sections():
    rng = np.random.default_rng(11)
    machine = make_machine(
        [30_000] * 3, rng, shapes=("balanced",), orders=("preorder",), n_features=1, rules=False
    )
    machine = replace(machine, t=rng.standard_normal(machine.n_tests))
    plan = native.compile_plan(machine, target=TARGETS[-1])
    assert plan.describe().n_sections > 1
    check(machine, rng.standard_normal((200, 1)), [TARGETS[-1]], ["auto"])


@pytest.mark.parametrize(
    "n_rows",
    [
        0,
        1,
        2,
        15,
        16,
        17,
        23,
        24,
        25,
        63,
        64,
        65,
        103,
        104,
        127,
        128,
        129,
        1023,
        1024,
        1025,
        2047,
        2049,
        4097,
    ],
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_tails_of_every_length_are_exact(n_rows, kernel):
    rng = np.random.default_rng(13)
    machine = make_machine([30, 1, 64, 200], rng, values="real", n_outputs=2, narrow=True)
    X = many(probe_rows(machine), 4097)
    margins, leaves = expected(machine, X)
    for target in (TARGETS[0], TARGETS[-1]):
        plan = native.compile_plan(machine, target=target, kernel=kernel)
        assert same_bits(run(plan, machine, X[:n_rows]), margins[:n_rows])
        assert same_bits(run(plan, machine, X[:n_rows], leaves=True), leaves[:n_rows])


@settings(max_examples=20, deadline=None)
@given(machines(max_trees=4, max_leaves=80, oblique=False), st.integers(1, 5))
def test_the_number_of_threads_changes_no_bit(machine, n_threads):
    X = many(probe_rows(machine, max_rows=80), 2600)
    margins, leaves = expected(machine, X)
    assert same_bits(machine.margin(X, n_threads=n_threads), margins)
    assert np.array_equal(machine.apply(X, n_threads=n_threads), leaves)


@pytest.mark.parametrize("aggregate", ["min", "max", "median", "sum"])
def test_every_aggregate_equals_the_plain_descent(aggregate):
    rng = np.random.default_rng(17)
    machine = make_machine([20, 9, 70, 1], rng, values="real")
    machine = replace(machine, output=replace(machine.output, aggregate=aggregate))
    X = many(probe_rows(machine), 500)
    assert same_bits(machine.margin(X), machine.margin(X, engine="walk"))
    assert same_bits(machine.margin(X[:3]), machine.margin(X[:3], engine="walk"))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_leaves_equal_the_plain_descent(k, dtype):
    rng = np.random.default_rng(19)
    machine = make_machine([20, 9, 1], rng, values="real", n_outputs=k, n_features=4, dtype=dtype)
    sizes = rng.integers(0, 4, machine.n_leaves)
    linear = dm.LinearLeaves(
        rng.standard_normal((machine.n_leaves, k)),
        np.concatenate([[0], np.cumsum(sizes)]),
        rng.integers(4, size=sizes.sum()),
        rng.standard_normal((sizes.sum(), k)),
    )
    machine = replace(machine, linear=linear)
    X = many(probe_rows(machine), 300)
    with np.errstate(all="ignore"):
        for n in (300, 5):
            wanted = machine.margin(X[:n], engine="walk")
            found = machine.margin(X[:n])
            assert np.array_equal(np.isnan(wanted), np.isnan(found))
            assert same_bits(np.nan_to_num(found), np.nan_to_num(wanted))


@pytest.mark.parametrize(
    "dtype",
    ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f8", ">i4", "g"],
)
@pytest.mark.parametrize("columns_dtype", [np.float32, np.float64])
def test_arrays_of_every_dtype_order_and_stride_are_read(dtype, columns_dtype):
    rng = np.random.default_rng(23)
    machine = make_machine([30, 64], rng, n_features=5, dtype=columns_dtype, values="real")
    base = np.round(3 * rng.standard_normal((200, 10)))
    if np.dtype(dtype).kind in "u?":
        base = np.abs(base)
    if np.dtype(dtype).itemsize == 8 and np.dtype(dtype).kind in "iu":
        base[::3] += 2.0**24 + 1
    base = base.astype(dtype)
    for X in (
        np.ascontiguousarray(base[:, :5]),
        np.asfortranarray(base[:, :5]),
        base[:, ::2],
        base[::-1, 4::-1],
        base[::2, 1:6],
    ):
        X.flags.writeable = False
        for n in (len(X), 3):
            wanted = expected(machine, X[:n])
            assert same_bits(machine.margin(X[:n]), wanted[0])
            assert np.array_equal(machine.apply(X[:n]), wanted[1])


@pytest.mark.parametrize("integers_as", [np.float32, np.float64])
def test_integers_pass_through_the_dtype_that_the_source_uses(integers_as):
    rng = np.random.default_rng(29)
    machine = make_machine([40] * 3, rng, rules=False, n_features=2)
    machine = replace(machine, columns=dm.Columns(2, integers_as=integers_as))
    machine = replace(machine, t=rng.choice([2.0**24, 2.0**24 + 1, 2.0**24 + 2], machine.n_tests))
    X = rng.integers(2**24 - 1, 2**24 + 4, (100, 2))
    assert np.array_equal(machine.apply(X), machine.apply(X, engine="walk"))
    assert np.array_equal(machine.apply(X[:2]), machine.apply(X[:2], engine="walk"))


@pytest.mark.parametrize("absent", [0.0, np.nan])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_sparse_rows_equal_dense_ones(absent, form, dtype):
    rng = np.random.default_rng(31)
    machine = make_machine([30, 64, 500], rng, n_features=20, values="real")
    machine = replace(machine, columns=replace(machine.columns, absent=absent, missing_value=2.0))
    X = sp.coo_array(rng.random((1500, 20)) * (rng.random((1500, 20)) < 0.2))
    X.data = np.round(3 * X.data).astype(dtype)
    X = X.astype(dtype).asformat(form)
    for part in (X, X.tocsr()[:5], X.tocsr()[:0]):
        assert same_bits(machine.margin(part), machine.margin(part, engine="walk"))
        assert np.array_equal(machine.apply(part), machine.apply(part, engine="walk"))


def test_duplicates_of_a_sparse_entry_are_summed_and_the_input_is_left_alone():
    machine = make_machine([30, 64], np.random.default_rng(37), n_features=3)
    X = sp.csr_array(
        (np.array([1.0, 1.0, 2.0]), np.array([0, 0, 2]), np.array([0, 2, 3])), shape=(2, 3)
    )
    assert same_bits(machine.margin(X), machine.margin(X.toarray()))
    assert X.nnz == 3


def test_a_missing_value_is_read_as_nan():
    rng = np.random.default_rng(41)
    for dtype in (np.float32, np.float64):
        machine = make_machine([30, 64], rng, n_features=3, dtype=dtype)
        machine = replace(machine, columns=replace(machine.columns, missing_value=0.1))
        X = rng.choice([0.1, 0.2, -1.0, np.float32(0.1)], (200, 3))
        for x in (X, X.astype(np.float32), X[:3]):
            assert np.array_equal(machine.apply(x), machine.apply(x, engine="walk"))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_are_read_column_by_column(library):
    pytest.importorskip(library)
    rng = np.random.default_rng(43)
    names = ("a", "b", "c", "d", "e")
    machine = make_machine([30, 64, 300], rng, n_features=5, values="real", names=names)
    parts = {
        "e": rng.standard_normal(1100),
        "a": rng.standard_normal(1100).astype(np.float32),
        "c": rng.integers(-3, 4, 1100),
        "b": rng.random(1100) < 0.5,
        "d": rng.integers(0, 9, 1100).astype(np.uint8),
    }
    X = np.stack([parts[name].astype(np.float64) for name in names], axis=1)
    if library == "pandas":
        import pandas

        table = pandas.DataFrame(parts)
    elif library == "polars":
        import polars

        table = polars.DataFrame(parts)
    else:
        import pyarrow

        table = pyarrow.table(parts)
    assert same_bits(machine.margin(table), machine.margin(X, engine="walk"))
    assert same_bits(machine.margin(table[:3]), machine.margin(X[:3], engine="walk"))


def test_many_python_threads_predict_at_once():
    rng = np.random.default_rng(47)
    machine = make_machine([64] * 20 + [400] * 3, rng, n_features=5, values="real")
    X = many(probe_rows(machine), 3000)
    wanted = machine.margin(X, engine="walk")
    wrong = []

    def work(seed):
        own = np.random.default_rng(seed)
        for _ in range(10):
            start = int(own.integers(0, 2999))
            stop = int(own.integers(start, 3001))
            found = machine.margin(X[start:stop], n_threads=int(own.integers(1, 4)))
            if not same_bits(found, wanted[start:stop]):
                wrong.append((start, stop))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_child_predicts():
    rng = np.random.default_rng(53)
    machine = make_machine([64] * 10, rng, n_features=5, values="real")
    X = many(probe_rows(machine), 5000)
    wanted = machine.margin(X, n_threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if same_bits(machine.margin(X, n_threads=2), wanted) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_plan_is_compiled_once_and_left_out_of_copies():
    import copy
    import pickle

    machine = dm.figure_one()
    machine.predict([[2, 1, 2, 2]])
    plan = machine._prepared.compiled(machine).plan
    machine.predict([[2, 1, 2, 2]])
    assert machine._prepared.compiled(machine).plan is plan
    for other in (
        pickle.loads(pickle.dumps(machine)),
        copy.copy(machine),
        copy.deepcopy(machine),
        replace(machine),
    ):
        assert other._prepared is not machine._prepared
        assert other._prepared.compiled(other).plan is not plan
        assert other.equals(machine)


def test_symmetric_trees_need_no_selects():
    depth, n = 5, 31
    children = [(2 * j + 1, 2 * j + 2) for j in range(n)]
    children = [[c if c < n else ~(c - n) for c in pair] for pair in children]
    level = np.floor(np.log2(np.arange(n) + 1)).astype(int)
    machine = dm.DecisionMachine(
        columns=dm.Columns(depth, np.float32),
        selection=level,
        t=np.linspace(-1, 1, depth, dtype=np.float32)[level],
        missing=np.ones(n),
        children=np.array(children),
        V=np.random.default_rng(0).standard_normal((32, 1)),
        trees=dm.Trees([0, n]),
        output=dm.Output([0.0]),
    )
    for target in TARGETS:
        assert native.compile_plan(machine, target=target).describe().n_selects == 0
    check(machine, many(probe_rows(machine), 300))


@settings(max_examples=40, deadline=None)
@given(
    machines(max_trees=4, max_leaves=40, oblique=True), st.sampled_from([np.float64, np.float32])
)
def test_oblique_machines_equal_the_plain_descent(machine, dtype):
    with np.errstate(all="ignore"):
        X = probe_rows(machine, max_rows=60).astype(dtype)
        check(machine, X, kernels=["auto"])
        check(machine, X[:1], kernels=["auto"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 3, 16, 37, 100])
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_weighted_sums_have_the_bits_of_terms_added_one_by_one(n_features, dtype, density):
    """Weights with full mantissas: any other order of the terms would round otherwise."""
    rng = np.random.default_rng(71)
    machine = make_machine([31, 1, 8, 60], rng, oblique=True, n_features=n_features, dtype=dtype)
    n_columns = len(machine.columns)
    S = rng.standard_normal((machine.n_tests, n_columns))
    S[rng.random(S.shape) >= density] = 0
    X = rng.standard_normal((150, n_features)).astype(dtype)
    X[rng.random(X.shape) < 0.02] = np.nan
    X[rng.random(X.shape) < 0.01] = np.inf
    z = machine.columns.read(X)
    q = np.zeros(machine.n_tests, dtype)
    row = rng.integers(len(X), size=machine.n_tests)
    for column in range(n_columns):  # thresholds that some row's sum equals
        with np.errstate(all="ignore"):
            term = S.astype(dtype)[:, column] * z[row, column]
            q = np.where(S[:, column] == 0, q, q + term)
    machine = replace(
        machine, selection=sp.csr_array(S.astype(dtype)), t=np.where(np.isfinite(q), q, 0)
    )
    with np.errstate(all="ignore"):
        check(machine, X, kernels=["auto"])
        check(machine, np.asfortranarray(X)[:7], kernels=["auto"])
        check(machine, X[3:4], kernels=["auto"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_engines_round_each_product_of_an_oblique_test_before_they_add_it(dtype, monkeypatch):
    """On some processors SciPy's own product does not: here it fuses both, as it does there."""

    def fused(S, z):  # terms of float32 and float64 are exact in pairs of 64 bits
        S = sp.csr_array(S.T)
        wide = np.longdouble if dtype == np.float64 else np.float64
        q = np.zeros((len(z), S.shape[0]), dtype)
        for j in range(S.shape[0]):
            for at in range(S.indptr[j], S.indptr[j + 1]):
                product = z[:, S.indices[at]].astype(wide) * wide(S.data[at])
                q[:, j] = (q[:, j].astype(wide) + product).astype(dtype)
        return q

    rng = np.random.default_rng(79)
    machine = make_machine(
        [40, 9], rng, oblique=True, n_features=6, dtype=dtype, rules=False, values="real"
    )
    X = rng.standard_normal((200, 6)).astype(dtype)
    S = rng.standard_normal((machine.n_tests, 6)).astype(dtype)
    rounded = np.zeros((len(X), machine.n_tests), dtype)
    for column in range(6):
        rounded += X[:, [column]] * S[:, column]
    unlike = fused(sp.csr_array(S).T, X) > rounded
    row = np.argmax(unlike, axis=0)  # a tie for the rounded sum, beyond it for the fused one
    machine = replace(
        machine, selection=sp.csr_array(S), t=rounded[row, np.arange(machine.n_tests)]
    )
    assert np.all(unlike[row, np.arange(machine.n_tests)])
    for kind in (sp.csr_array, sp.csc_array):
        monkeypatch.setattr(kind, "__rmatmul__", fused)
    wanted = machine.apply(X, engine="reference")
    for engine in ("auto", "native", "walk"):
        assert np.array_equal(machine.apply(X, engine=engine), wanted)
        assert same_bits(machine.margin(X, engine=engine), machine.margin(X, engine="reference"))


def test_oblique_machines_are_run_natively_with_any_output_and_input():
    rng = np.random.default_rng(73)
    for aggregate in ("sum", "min", "max"):
        machine = make_machine([40, 9], rng, oblique=True, n_outputs=3, values="real", n_features=5)
        machine = replace(machine, output=replace(machine.output, aggregate=aggregate))
        assert native.describe_plan(machine)["trees by kernel"] == {"oblique": 2}
        X = np.round(3 * rng.standard_normal((1500, 5)))
        for x in (X, X[:1], X[::-2], X.astype(np.int32), X[:0], sp.csr_array(X)):
            assert same_bits(machine.margin(x), machine.margin(x, engine="walk"))
            assert np.array_equal(machine.apply(x), machine.apply(x, engine="walk"))
        assert same_bits(machine.margin(X, n_threads=3), machine.margin(X, n_threads=1))


def test_weighted_medians_are_left_to_the_walk():
    machine = make_machine([9, 5], np.random.default_rng(59))
    machine = replace(machine, output=replace(machine.output, aggregate="median"))
    assert native.refusal(machine) is not None
    X = many(probe_rows(machine), 50)
    assert same_bits(machine.margin(X), machine.margin(X, engine="walk"))


def linear_of_two_dtypes():
    rng = np.random.default_rng(61)
    machine = make_machine([9, 5], rng, values="real")
    n = machine.n_leaves
    linear = dm.LinearLeaves(
        rng.standard_normal((n, 1)).astype(np.float32),
        np.arange(n + 1),
        rng.integers(3, size=n),
        rng.standard_normal((n, 1)),
    )
    return replace(machine, linear=linear)


def weighted_median():
    machine = make_machine([9, 5], np.random.default_rng(59))
    return replace(machine, output=replace(machine.output, aggregate="median"))


@pytest.mark.parametrize(
    ("make", "cause"), [(weighted_median, "median"), (linear_of_two_dtypes, "coefficients")]
)
def test_the_native_engine_says_why_it_cannot_run_a_machine(make, cause):
    machine = make()
    X = probe_rows(machine)[:3]
    asked = (machine.margin, machine.apply, machine.predict, machine.response)
    for ask in asked:
        with pytest.raises(dm.InputError, match=cause) as error:
            ask(X, engine="native")
        assert "engine='auto'" in error.value.remedy
        assert same_bits(ask(X), ask(X, engine="walk"))


@pytest.mark.parametrize("kind", ["array", "one row", "sparse", "table", "labels"])
def test_the_native_engine_runs_every_kind_of_input(kind, monkeypatch):
    from decision_machines.run.engines import walk as plain

    machine = make_machine([20, 7], np.random.default_rng(3), n_features=4)
    X = np.round(2 * np.random.default_rng(4).standard_normal((40, 4)))
    if kind == "labels":
        columns = replace(machine.columns, categories={2: tuple(range(-9, 10))})
        machine = replace(machine, columns=columns)
    if kind == "table":
        import narwhals  # noqa: F401

        pandas = pytest.importorskip("pandas")
        given = pandas.DataFrame(X)
    else:
        given = {"sparse": sp.csr_array(X), "one row": X[:1]}.get(kind, X)
    wanted = machine.margin(given, engine="walk"), machine.apply(given, engine="walk")
    monkeypatch.delattr(plain, "exit_leaves")
    assert same_bits(machine.margin(given, engine="native"), wanted[0])
    assert np.array_equal(machine.apply(given, engine="native"), wanted[1])


@pytest.mark.parametrize("n_features", [5, 20, 50, 100, 130])
def test_records_are_exact_for_any_number_of_columns_and_rows(n_features):
    """Tables of every size, rows with and without NaN, and more columns than records take."""
    rng = np.random.default_rng(n_features)
    machine = make_machine(
        [700, 1, 33, 90], rng, values="real", n_features=n_features, n_outputs=3, rules=False
    )
    X = rng.standard_normal((1030, n_features))
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    for rows in (X, holes, np.asfortranarray(holes.astype(np.float32))):
        for n in (1, 3, 17, 64, 65, 1030):
            check(machine, rows[:n], kernels=["record"])


def test_records_follow_trees_of_every_shape_to_every_leaf():
    """Long paths are cut into many records."""
    for shape in SHAPES:
        rng = np.random.default_rng(8)
        machine = make_machine([500, 3], rng, shapes=[shape], rules=False, n_features=4)
        X = probe_rows(machine)
        check(machine, X, kernels=["record"])


@pytest.mark.parametrize("n_features", [5, 31, 50, 127, 200, 300])
def test_twigs_are_exact_for_any_number_of_columns_and_rows(n_features):
    """Rows of every width, tails of every length, and more planes than a byte counts."""
    rng = np.random.default_rng(n_features)
    machine = make_machine(
        [700, 1, 33, 140], rng, values="real", n_features=n_features, n_outputs=3, rules=False,
        shapes=["balanced"],
    )  # fmt: skip
    X = rng.standard_normal((1033, n_features))
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    for rows in (X, np.asfortranarray(holes.astype(np.float32))):
        for n in (0, 1, 7, 8, 9, 64, 65, 1023, 1024, 1033):
            check(machine, rows[:n], kernels=["twig"])
    on = {t: native.compile_plan(machine, target=t, kernel="twig").describe() for t in TARGETS}
    if n_features <= 50 and "v3" in on:
        assert [kernel == "twig" for kernel in on["v3"].kernels] == [True, False, False, True]


@pytest.mark.parametrize("n_outputs", [1, 2, 15])
@pytest.mark.parametrize("n_values", [2, 256, 257])
def test_deep_trees_add_few_values_as_they_add_many(n_values, n_outputs):
    """Values that a byte tells apart stand in a table; -0 and 0 are two of them."""
    rng = np.random.default_rng(n_values)
    sizes = [400, 300, *[130] * 9]
    machine = make_machine(sizes, rng, rules=False, n_features=6, n_outputs=n_outputs)
    width = machine.V.shape[1]
    values = np.arange(float(width * n_values)).reshape(-1, width)
    V = values[rng.permutation(machine.n_leaves) % n_values]
    machine = replace(machine, V=np.where(V == 0, rng.choice([0.0, -0.0], V.shape), V))
    X = rng.standard_normal((1100, 6))
    for n in (1, 10, 65, 1100):
        check(machine, X[:n], kernels=["record", "twig"])


def test_twigs_follow_trees_of_every_shape_to_every_leaf():
    """Also where a subtree below the top has too many leaves: those trees go another way."""
    for shape in SHAPES:
        rng = np.random.default_rng(8)
        machine = make_machine([900, 3], rng, shapes=[shape], rules=False, n_features=4)
        check(machine, probe_rows(machine), kernels=["twig"])


def test_crowded_thresholds_are_ranked_as_even_ones_are():
    """Buckets, the search tree where they crowd, and neighbours that are equal as floats."""
    rng = np.random.default_rng(3)
    even = np.linspace(-3, 3, 900)
    crowded = np.r_[np.linspace(0, 1e-3, 898), 1e30, -1e30]
    close = 1.0 + np.arange(900) * 2.0**-52
    for t in (even, crowded, close):
        machine = make_machine([901], rng, rules=False, n_features=1)
        machine = replace(machine, t=rng.permutation(t))
        near = np.r_[t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf)]
        X = np.r_[near, np.inf, -np.inf, np.nan][:, None]
        check(machine, X)
        check(machine, X.astype(np.float32))


def test_a_deep_forest_takes_at_most_16_bytes_a_node_after_calls_of_few_rows_too():
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + rng.normal(size=4000) > 0
    machine = dm.convert(RandomForestClassifier(20, random_state=0).fit(X, y))
    many = machine.margin(X[:2000])
    np.testing.assert_array_equal(machine.margin(X[:10]), many[:10])
    plan = machine._prepared.compiled(machine).plan.describe()
    nodes = machine.n_tests + machine.n_leaves
    assert 0 < plan.n_bytes + plan.n_few_bytes <= 16 * nodes
