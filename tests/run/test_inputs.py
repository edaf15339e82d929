"""What a user may pass as X, and what is refused, in three parts, by name."""

import datetime
import decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import machines, make_machine, margins_of, probe_rows, walk_all

import decision_machines as dm
from decision_machines.run.inputs.features import read_features

NAMES = ("age", "income", "height", "weight")
ROW = [2.0, 1.0, 2.0, 2.0]
METHODS = ("predict", "margin", "apply")


def named(names=NAMES, **columns):
    """Fig. 1 with feature names: tests on age, income, height, income, weight."""
    one = dm.figure_one()
    return dm.DecisionMachine(
        columns=dm.Columns(4, names=names, **columns),
        selection=one.selection,
        t=one.t,
        missing=one.missing,
        children=one.children,
        V=one.V,
        trees=one.trees,
        output=one.output,
    )


def unnamed(**columns):
    return named(None, **columns)


def refusal(machine, X, method="predict", **options):
    with pytest.raises(dm.InputError) as caught:
        getattr(machine, method)(X, **options)
    text = str(caught.value)
    doing, _, rest = text.partition(": ")
    found, _, remedy = rest.partition("\nWhat to do: ")
    assert doing.startswith("While ")
    assert len(found) > 5
    assert len(remedy) > 5
    return text


# -- arrays ---------------------------------------------------------------------------------------


def strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), -7.0)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def unaligned(X):
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(X.shape)
    view[...] = X
    assert not view.flags.aligned
    return view


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "rows backwards": lambda X: X[::-1].copy()[::-1],
    "both backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "strided": strided,
    "big-endian": lambda X: X.astype(">f8"),
    "big-endian Fortran": lambda X: np.asfortranarray(X.astype(">f8")),
    "read-only": read_only,
    "unaligned": unaligned,
    "long double": lambda X: X.astype(np.longdouble),
    "lists": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "list of rows": list,
    "matrix": lambda X: np.asmatrix(X),
    "memoryview": lambda X: memoryview(np.ascontiguousarray(X)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_the_layout_of_an_array_does_not_matter(layout, method):
    machine = make_machine([5, 1, 7], np.random.default_rng(0), n_features=4, n_outputs=2)
    X = probe_rows(machine, max_rows=40)
    found = getattr(machine, method)(LAYOUTS[layout](X))
    np.testing.assert_array_equal(found, getattr(machine, method)(X))


@pytest.mark.parametrize("engine", ["auto", "walk", "reference"])
@pytest.mark.parametrize("layout", ["Fortran", "both backwards", "big-endian", "strided"])
def test_no_engine_minds_the_layout(layout, engine):
    machine = make_machine([5, 1, 7], np.random.default_rng(1), n_features=4, dtype=np.float32)
    X = probe_rows(machine, max_rows=40)
    np.testing.assert_array_equal(
        machine.apply(LAYOUTS[layout](X), engine=engine), walk_all(machine, X)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [7, 8, 9, 15, 16, 17, 31])
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_features_side_by_side_are_read_as_features_apart(n_features, dtype, given):
    # Rows of a C array are read for eight features at a time, the last eight shifted to fit.
    machine = make_machine(
        [9] * 12, np.random.default_rng(n_features), n_features=n_features, dtype=dtype
    )
    with np.errstate(over="ignore"):
        rows = probe_rows(machine, max_rows=300).astype(given)
    padded = np.full((len(rows), n_features + 3), np.nan, dtype=given)
    padded[:, :n_features] = rows
    apart = machine.apply(np.asfortranarray(rows), engine="native")
    np.testing.assert_array_equal(apart, walk_all(machine, rows))
    for X in (np.ascontiguousarray(rows), padded[:, :n_features]):
        np.testing.assert_array_equal(machine.apply(X, engine="native"), apart)


def test_a_broadcast_row_is_read_as_many_rows():
    assert unnamed().predict(np.broadcast_to(np.array(ROW), (5, 4))).tolist() == [5.0] * 5


@given(machines(), st.sampled_from(["Fortran", "strided", "big-endian", "lists"]))
@settings(max_examples=25)
def test_any_machine_reads_any_layout(machine, layout):
    X = probe_rows(machine, max_rows=20)
    np.testing.assert_array_equal(machine.margin(LAYOUTS[layout](X)), margins_of(machine, X))


@pytest.mark.parametrize(
    "dtype",
    [
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float16, np.float32, np.float64, ">i4", ">f4", bool),
    ],
)
@pytest.mark.parametrize("columns", [np.float32, np.float64])
def test_numbers_of_every_dtype_are_read(dtype, columns):
    X = np.array([[2, 1, 2, 2], [0, 1, 0, 1], [1, 4, 3, 5], [1, 3, 0, 6]]).astype(dtype)
    machine = unnamed(dtype=columns)
    np.testing.assert_array_equal(machine.margin(X), margins_of(machine, X.astype(float)))


def test_float16_keeps_its_nan_and_infinities():
    X = np.array([[np.nan, 1, 2, 2], [np.inf, 1, -np.inf, 2], [65504, 1, 3, 2]], dtype=np.float16)
    machine = unnamed()
    np.testing.assert_array_equal(machine.margin(X), margins_of(machine, X.astype(float)))


def test_whole_numbers_above_2_24_are_cast_as_numpy_casts_them():
    machine = dm.DecisionMachine(
        columns=dm.Columns(1, np.float32),
        selection=[0],
        t=np.array([2.0**24], dtype=np.float32),
        missing=[1],
        children=[[~0, ~1]],
        V=[[-1.0], [1.0]],
        trees=dm.Trees([0, 1]),
        output=dm.Output([0.0]),
    )
    X = np.array([[2**24], [2**24 + 1], [2**24 + 2], [2**53 + 1]])
    assert machine.predict(X).tolist() == [-1, -1, 1, 1]


def test_an_object_array_of_numbers_is_read_or_refused_in_words():
    X = np.array([ROW], dtype=object)
    try:
        found = unnamed().predict(X).tolist()
    except dm.InputError as refused:
        found = [5.0] if "What to do" in str(refused) else None
    assert found == [5.0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
def test_zero_rows_give_zero_answers(method, kind):
    machine = make_machine([3, 2], np.random.default_rng(3), n_features=4, n_outputs=2, rules=False)
    found = getattr(machine, method)(kind(np.empty((0, 4))))
    assert found.shape == (0, 2)


def test_zero_rows_of_one_output_are_flat():
    assert unnamed().predict(np.empty((0, 4))).shape == (0,)
    assert unnamed().margin(np.empty((0, 4))).shape == (0, 1)


def test_rows_are_answered_in_order_past_any_block_size():
    machine = make_machine([6, 4], np.random.default_rng(4), n_features=2, rules=False)
    X = np.random.default_rng(5).standard_normal((20_001, 2))
    whole = machine.margin(X)
    parts = [machine.margin(X[i : i + 6667]) for i in range(0, len(X), 6667)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(whole[::2000], margins_of(machine, X[::2000]))


def test_x_is_not_written_to():
    machine = make_machine([6, 4], np.random.default_rng(6), n_features=4)
    X = probe_rows(machine)
    before = X.copy()
    for method in METHODS:
        getattr(machine, method)(X)
    np.testing.assert_array_equal(X, before)


def test_a_missing_value_of_the_models_own_is_read_as_nan():
    machine = unnamed(missing_value=-999.0)
    X = np.array([[-999.0, 1, 2, 2], [np.nan, 1, 2, 2]])
    assert machine.predict(X).tolist() == [5.0, 5.0]
    assert unnamed().predict(X).tolist() == [1.0, 5.0]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_do_not_change_the_answer(n_threads):
    machine = make_machine([6, 4], np.random.default_rng(7), n_features=4, values="real")
    X = probe_rows(machine)
    np.testing.assert_array_equal(machine.margin(X, n_threads=n_threads), margins_of(machine, X))


# -- arrays that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", [0, 1, 3, 5])
def test_a_wrong_width_is_refused_with_both_widths(method, width):
    text = refusal(unnamed(), np.zeros((2, width)), method)
    assert str(width) in text
    assert "4" in text


@pytest.mark.parametrize("X", [ROW, np.zeros(4), np.zeros((1, 2, 4)), 3.0, np.float64(1)])
def test_what_is_not_two_dimensional_is_refused_with_its_shape(X):
    assert "dimension" in refusal(unnamed(), X)


def with_bad_entry(entry):
    X = np.array([ROW, ROW], dtype=object)
    X[1, 2] = entry
    return X


REFUSED = {
    "None": None,
    "text": "2 1 2 2",
    "bytes": b"2122",
    "a number as text": [["2", "1", "2", "2"]],
    "text among numbers": [[2, 1, 2, "two"]],
    "array of text": np.array([["2", "1", "2", "2"]]),
    "array of bytes": np.array([[b"2", b"1", b"2", b"2"]]),
    "object with text": with_bad_entry("two"),
    "object with a list": with_bad_entry([1, 2]),
    "object with a date": with_bad_entry(datetime.date(2020, 1, 1)),
    "object with a complex": with_bad_entry(1j),
    "object with a dict": with_bad_entry({}),
    "ragged lists": [[2, 1, 2, 2], [2, 1]],
    "ragged deep lists": [[2, 1, 2, [2]], [2, 1, 2, 2]],
    "dates": np.zeros((2, 4), dtype="datetime64[D]"),
    "durations": np.zeros((2, 4), dtype="timedelta64[s]"),
    "complex": np.zeros((2, 4), dtype=complex),
    "complex list": [[1j, 1, 2, 2]],
    "records": np.zeros(2, dtype=[(name, float) for name in NAMES]),
    "records in a column": np.zeros((2, 4), dtype=[("a", float)]),
    "masked": np.ma.masked_array(np.zeros((2, 4)), mask=[[0, 1, 0, 0], [0, 0, 0, 0]]),
    "a set": {1, 2, 3, 4},
    "a dict": {"a": 1},
    "a dict of columns": {name: [1.0] for name in NAMES},
    "a generator": (row for row in [ROW]),
    "an iterator": iter([ROW]),
    "a function": len,
    "a machine": dm.figure_one(),
    "an object": object(),
    "huge integers": [[10**400, 1, 2, 2]],
    "voids": np.zeros((2, 4), dtype="V8"),
    "an empty list": [],
    "NaT": [[np.datetime64("NaT", "D"), 1, 2, 2]],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_matrix_of_numbers_is_refused(kind):
    refusal(unnamed(), REFUSED[kind])


@pytest.mark.parametrize("method", [*METHODS, "predict_proba"])
@pytest.mark.parametrize("kind", ["None", "array of text", "ragged lists", "object with text"])
def test_every_method_refuses_alike(kind, method):
    refusal(unnamed(), REFUSED[kind], method)


@pytest.mark.parametrize("nothing", ["None", "NaN", "pandas.NA"])
@pytest.mark.parametrize("method", METHODS)
def test_nothing_among_numbers_is_missing_in_lists_and_object_arrays(nothing, method):
    if nothing == "pandas.NA":
        nothing = pytest.importorskip("pandas").NA
    else:
        nothing = None if nothing == "None" else np.nan
    missing = np.array([ROW, ROW], float)
    missing[1, 2] = np.nan
    given = with_bad_entry(nothing)
    expected = getattr(unnamed(), method)(missing)
    np.testing.assert_array_equal(getattr(unnamed(), method)(given), expected)
    np.testing.assert_array_equal(getattr(unnamed(), method)(given.tolist()), expected)


def test_objects_that_are_all_numbers_are_numbers():
    given = np.array([ROW, ROW], object)
    given[0] = [np.float32(2), np.int64(1), True, 2]
    expected = unnamed().predict(given.astype(float))
    np.testing.assert_array_equal(unnamed().predict(given), expected)


def test_decimals_are_read_or_refused_in_words():
    try:
        found = unnamed().predict([[decimal.Decimal(v) for v in (2, 1, 2, 2)]]).tolist()
    except dm.InputError as refused:
        found = [5.0] if "What to do" in str(refused) else None
    assert found == [5.0]


def test_a_masked_array_that_masks_nothing_is_read_or_refused_in_words():
    X = np.ma.masked_array(np.array([ROW]), mask=False)
    try:
        found = unnamed().predict(X).tolist()
    except dm.InputError as refused:
        found = [5.0] if "mask" in str(refused) else None
    assert found == [5.0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine", ["turbo", "", "REFERENCE", None, 3])
def test_an_unknown_engine_is_refused_by_name(method, engine):
    text = refusal(unnamed(), [ROW], method, engine=engine)
    assert repr(engine) in text
    assert "reference" in text


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, "two"])
def test_a_bad_number_of_threads_is_refused(n_threads):
    assert "n_threads" in refusal(unnamed(), [ROW], n_threads=n_threads)


# -- sparse matrices ------------------------------------------------------------------------------

SPARSE = [
    *(sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array, sp.bsr_array),
    *(sp.csr_matrix, sp.csc_matrix, sp.dia_array),
]


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("method", METHODS)
def test_entries_absent_from_a_sparse_row_are_zero(kind, method):
    machine = make_machine([6, 5, 1], np.random.default_rng(8), n_features=4, n_outputs=2)
    X = np.array([[0, 0, 0, 0], [1.5, 0, 0, -1], [0, 2, 0, 0], [0, 0, np.nan, 3], [-2, 1, 0.5, 0]])
    np.testing.assert_array_equal(getattr(machine, method)(kind(X)), getattr(machine, method)(X))


def test_entries_absent_from_a_sparse_row_are_missing_where_the_model_says_so():
    machine = unnamed(absent=np.nan)
    X = sp.csr_array(np.array([[0.0, 1, 2, 2]]))
    assert machine.predict(X).tolist() == [5.0]  # NaN answers +1 at the root
    assert unnamed().predict(X).tolist() == [1.0]


def test_a_zero_that_is_stored_is_zero_and_not_absent():
    X = sp.csr_array((np.array([0.0, 1, 2, 2]), ([0, 0, 0, 0], [0, 1, 2, 3])), shape=(1, 4))
    assert X.nnz == 4
    assert unnamed(absent=np.nan).predict(X).tolist() == [1.0]


def test_entries_stored_twice_in_a_sparse_matrix_add():
    X = sp.coo_array(([1.0, 1.0, 1.0, 2.0, 2.0], ([0] * 5, [0, 0, 1, 2, 3])), shape=(1, 4))
    assert unnamed().predict(X).tolist() == [5.0]
    X = sp.csr_array((np.array([1.0, 1, 1, 2, 2]), [0, 0, 1, 2, 3], [0, 5]), shape=(1, 4))
    assert unnamed().predict(X).tolist() == [5.0]


def test_sparse_rows_with_columns_out_of_order_are_read():
    X = sp.csr_array((np.array([2.0, 2, 1, 2]), [3, 0, 1, 2], [0, 4]), shape=(1, 4))
    assert unnamed().predict(X).tolist() == [5.0]


@pytest.mark.parametrize("dtype", [np.int64, np.float32, bool, np.int8])
def test_sparse_numbers_of_every_dtype_are_read(dtype):
    X = np.array([[2, 1, 2, 2], [0, 3, 0, 6]]).astype(dtype)
    np.testing.assert_array_equal(unnamed().predict(sp.csr_array(X)), unnamed().predict(X))


def test_sparse_matrices_of_the_wrong_width_or_kind_are_refused():
    assert "3" in refusal(unnamed(), sp.csr_array(np.ones((2, 3))))
    refusal(unnamed(), sp.csr_array(np.ones((2, 4), dtype=complex)))
    flat = sp.coo_array(np.ones(4))
    if flat.ndim == 1:
        refusal(unnamed(), flat)
    else:  # SciPy before 1.13 makes one row of it
        assert unnamed().predict(flat).tolist() == unnamed().predict(np.ones((1, 4))).tolist()


def test_sparse_matrices_with_many_rows_are_answered_in_order():
    machine = make_machine([6, 4], np.random.default_rng(9), n_features=5, rules=False)
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((20_000, 5)) * (rng.random((20_000, 5)) < 0.3))
    np.testing.assert_array_equal(machine.margin(X), machine.margin(X.toarray()))


# -- tables ---------------------------------------------------------------------------------------


def pandas_table(data):
    return pytest.importorskip("pandas").DataFrame(data)


def polars_table(data):
    return pytest.importorskip("polars").DataFrame(data)


def arrow_table(data):
    return pytest.importorskip("pyarrow").table(data)


def arrow_batch(data):
    return pytest.importorskip("pyarrow").RecordBatch.from_pydict(data)


TABLES = [pandas_table, polars_table, arrow_table, arrow_batch]
ROWS = np.array([[2.0, 1.0, 2.0, 2.0], [0.0, 3.0, 9.0, 1.0], [2.0, 9.0, 9.0, 9.0]])
DATA = {name: column.tolist() for name, column in zip(NAMES, ROWS.T, strict=True)}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_a_table_is_read_as_its_rows(table, method):
    found = getattr(named(), method)(table(DATA))
    np.testing.assert_array_equal(found, getattr(named(), method)(ROWS))


@pytest.mark.parametrize("table", TABLES)
def test_columns_of_a_table_are_matched_by_name(table):
    backwards = {name: DATA[name] for name in reversed(NAMES)}
    assert named().predict(table(backwards)).tolist() == [5.0, 2.0, 6.0]


@pytest.mark.parametrize("table", TABLES)
def test_columns_of_a_table_are_taken_in_order_where_the_model_has_no_names(table):
    assert unnamed().predict(table(DATA)).tolist() == [5.0, 2.0, 6.0]


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_column_is_refused_by_name(table):
    text = refusal(named(), table({name: DATA[name] for name in NAMES if name != "height"}))
    assert "height" in text
    assert "income" not in text


@pytest.mark.parametrize("table", TABLES)
def test_an_extra_column_is_refused_by_name(table):
    assert "shoe size" in refusal(named(), table({**DATA, "shoe size": [1.0, 2.0, 3.0]}))


@pytest.mark.parametrize("table", TABLES)
def test_a_misspelt_column_is_refused_with_both_names(table):
    data = {("Income" if name == "income" else name): DATA[name] for name in NAMES}
    text = refusal(named(), table(data))
    assert "income" in text
    assert "Income" in text


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_the_wrong_width_is_refused_where_the_model_has_no_names(table):
    text = refusal(unnamed(), table({name: DATA[name] for name in NAMES[:3]}))
    assert "3" in text
    assert "4" in text


def test_a_pandas_column_given_twice_is_refused_by_name():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.zeros((2, 5)), columns=[*NAMES, "age"])
    assert "age" in refusal(named(), table)
    table = pd.DataFrame(np.zeros((2, 4)), columns=["age", "age", "height", "weight"])
    assert "age" in refusal(named(), table)


def test_an_arrow_column_given_twice_is_refused_by_name():
    pa = pytest.importorskip("pyarrow")
    column = pa.array([1.0])
    assert "age" in refusal(named(), pa.Table.from_arrays([column] * 5, names=[*NAMES, "age"]))


@pytest.mark.parametrize("table", [polars_table, arrow_table, arrow_batch])
def test_nulls_of_a_table_are_nan(table):
    data = {**DATA, "age": [None, 0.0, None]}
    X = ROWS.copy()
    X[[0, 2], 0] = np.nan
    assert named().predict(table(data)).tolist() == named().predict(X).tolist() == [5.0, 2.0, 6.0]


@pytest.mark.parametrize("table", [polars_table, arrow_table, arrow_batch])
def test_nulls_among_whole_numbers_and_booleans_are_nan(table):
    data = {"age": [1, None], "income": [4, None], "height": [True, None], "weight": [5, 5]}
    X = [[1, 4, 1, 5], [np.nan, np.nan, np.nan, 5]]
    np.testing.assert_array_equal(named().predict(table(data)), named().predict(X))


@pytest.mark.parametrize("fill", [0, np.nan])
def test_sparse_columns_of_pandas_are_read_as_the_libraries_read_them(fill):
    pd = pytest.importorskip("pandas")
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (80, 4)).astype(float)
    X[rng.uniform(size=X.shape) < 0.4] = fill
    table = pd.DataFrame(X, columns=NAMES)
    sparse = table.astype({name: pd.SparseDtype(float, fill) for name in NAMES[:3]})
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 1
    for model in (
        xgboost.XGBClassifier(n_estimators=3, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, min_child_samples=2, verbose=-1),
    ):
        model.fit(table, y)
        machine = dm.convert(model)
        np.testing.assert_array_equal(machine.predict_proba(sparse), model.predict_proba(sparse))
        np.testing.assert_array_equal(machine.features(sparse), machine.features(table))


def test_an_estimator_learns_from_sparse_columns_as_from_dense_ones():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).integers(0, 2, (40, 2))
    table = pd.DataFrame(X, columns=["a", "b"])
    sparse = table.astype(pd.SparseDtype(int, 0))
    learn = dm.DecisionMachineClassifier(max_leaves=4, n_iterations=2)
    y = X[:, 0] ^ X[:, 1]
    expected = learn.fit(table, y).predict_proba(table)
    np.testing.assert_array_equal(learn.fit(sparse, y).predict_proba(sparse), expected)


def test_nulls_of_pandas_own_types_are_nan():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {
            "age": pd.array([1, None], dtype="Int64"),
            "income": pd.array([4.0, None], dtype="Float64"),
            "height": pd.array([True, None], dtype="boolean"),
            "weight": [5, 5],
        }
    )
    X = [[1, 4, 1, 5], [np.nan, np.nan, np.nan, 5]]
    np.testing.assert_array_equal(named().predict(table), named().predict(X))


def test_pandas_columns_of_arrow_types_are_read():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({name: pd.array([1, None], dtype="int64[pyarrow]") for name in NAMES})
    X = np.array([[1.0] * 4, [np.nan] * 4])
    np.testing.assert_array_equal(named().predict(table), named().predict(X))


@pytest.mark.parametrize("table", TABLES)
def test_a_column_of_nulls_alone_is_nan(table):
    data = {**DATA, "age": [None, None, None]}
    X = ROWS.copy()
    X[:, 0] = np.nan
    try:
        found = named().predict(table(data)).tolist()
    except dm.InputError as refused:
        found = named().predict(X).tolist() if "age" in str(refused) else None
    assert found == named().predict(X).tolist()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "column",
    [
        ["a", "b", "c"],
        ["1", "2", "3"],
        [datetime.date(2020, 1, 1)] * 3,
        [datetime.datetime(2020, 1, 1)] * 3,
        [datetime.timedelta(1)] * 3,
        [[1], [2], [3]],
        [b"a", b"b", b"c"],
        [{"a": 1}] * 3,
    ],
    ids=["text", "number as text", "date", "datetime", "duration", "list", "bytes", "struct"],
)
def test_a_column_that_is_not_of_numbers_is_refused_by_name(table, column):
    assert "height" in refusal(named(), table({**DATA, "height": column}))
    assert "height" in refusal(unnamed(), table({**DATA, "height": column}))


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_whole_numbers_is_read(table):
    data = {name: [int(v) for v in DATA[name]] for name in NAMES}
    assert named().predict(table(data)).tolist() == [5.0, 2.0, 6.0]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_booleans_is_read(table):
    data = {name: [True, False, True] for name in NAMES}
    X = np.array([[True] * 4, [False] * 4, [True] * 4])
    np.testing.assert_array_equal(named().predict(table(data)), named().predict(X))


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows_gives_no_answers(table):
    empty = {name: np.empty(0) for name in NAMES}
    assert named().predict(table(empty)).shape == (0,)
    assert named().apply(table(empty)).shape == (0, 1)


def test_a_chunked_arrow_table_is_read_whole():
    pa = pytest.importorskip("pyarrow")
    table = pa.concat_tables([pa.table(DATA)] * 3)
    assert named().predict(table).tolist() == [5.0, 2.0, 6.0] * 3
    assert named().predict(table.slice(2, 3)).tolist() == [6.0, 5.0, 2.0]


def test_a_sliced_arrow_table_with_nulls_is_read_from_its_offset():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({**DATA, "age": [2.0, None, 0.0]}).slice(1)
    X = ROWS[1:].copy()
    X[:, 0] = [np.nan, 0.0]
    np.testing.assert_array_equal(named().predict(table), named().predict(X))


def test_a_pandas_table_with_an_index_of_its_own_is_read_by_position():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(DATA, index=[9, 3, 7])
    assert named().predict(table).tolist() == [5.0, 2.0, 6.0]
    assert named().predict(table[::-1]).tolist() == [6.0, 2.0, 5.0]


def test_a_pandas_table_with_numbered_columns_is_read_by_a_machine_without_names():
    pd = pytest.importorskip("pandas")
    assert unnamed().predict(pd.DataFrame(ROWS)).tolist() == [5.0, 2.0, 6.0]


def test_an_array_is_read_in_order_by_a_machine_with_names():
    assert named().predict(ROWS).tolist() == [5.0, 2.0, 6.0]


@pytest.mark.parametrize("table", TABLES)
def test_float32_columns_of_a_table_are_read_to_the_bit(table):
    machine = make_machine([8, 8], np.random.default_rng(10), n_features=4, dtype=np.float32)
    with np.errstate(over="ignore", under="ignore"):
        X = probe_rows(machine, max_rows=60).astype(np.float32)
    data = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(NAMES)}
    np.testing.assert_array_equal(machine.apply(table(data)), walk_all(machine, X))


@pytest.mark.parametrize("table", TABLES)
def test_float64_columns_of_a_table_are_read_to_the_bit(table):
    machine = make_machine([8, 8], np.random.default_rng(11), n_features=4)
    X = probe_rows(machine, max_rows=60)
    data = {name: np.ascontiguousarray(X[:, i]) for i, name in enumerate(NAMES)}
    np.testing.assert_array_equal(machine.apply(table(data)), walk_all(machine, X))


def test_labels_of_a_category_are_read_by_their_position():
    """A feature with `categories`: the label's position is x, an unknown label -1, none NaN."""
    pd = pytest.importorskip("pandas")
    sets = dm.CategorySets([0, 1], [1], [-1], [1])
    machine = dm.DecisionMachine(
        columns=dm.Columns(
            1,
            rule=[dm.Rule.MEMBER],
            names=("colour",),
            sets=sets,
            categories={0: ("red", "green")},
        ),
        selection=[0],
        t=[0.5],
        missing=[1],
        children=[[~0, ~1]],
        V=[[-1.0], [1.0]],
        trees=dm.Trees([0, 1]),
        output=dm.Output([0.0]),
    )
    table = pd.DataFrame({"colour": pd.Categorical(["green", "red", "green", None, "blue"])})
    assert machine.predict(table).tolist() == [-1, 1, -1, 1, 1]
    table = pd.DataFrame({"colour": ["green", "red", "blue"]})
    assert machine.predict(table).tolist() == [-1, 1, 1]


def test_a_series_is_no_table():
    pd = pytest.importorskip("pandas")
    refusal(unnamed(), pd.Series(ROW))


def test_a_polars_lazy_frame_is_read_or_refused_in_words():
    pl = pytest.importorskip("polars")
    try:
        found = named().predict(pl.DataFrame(DATA).lazy()).tolist()
    except dm.InputError as refused:
        found = [5.0, 2.0, 6.0] if "What to do" in str(refused) else None
    assert found == [5.0, 2.0, 6.0]


def test_torch_tensors_are_read_or_refused_in_words():
    torch = pytest.importorskip("torch")
    X = torch.tensor(ROWS, requires_grad=True)
    for tensor in (X.detach(), X):
        try:
            found = np.asarray(unnamed().predict(tensor)).tolist()
        except dm.InputError as refused:
            found = [5.0, 2.0, 6.0] if "What to do" in str(refused) else None
        assert found == [5.0, 2.0, 6.0]


@pytest.mark.parametrize("X", [None, 3, "text", object()])
def test_what_is_not_rows_is_refused_by_machines_with_labels_too(X):
    columns = dm.Columns(2, np.float64, categories={0: ("x", "y")}, encodes_arrays=True)
    with pytest.raises(dm.InputError, match="reading X"):
        read_features(X, columns)
