"""HistGradientBoosting of scikit-learn: float64, missing values, categories of every kind."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn_probes import assert_answers_as, leaf_ids, probes, same
from threadpoolctl import threadpool_limits

import decision_machines as dm

X, Y3 = make_classification(400, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
Y2 = np.array(["no", "yes"])[(Y3 > 0).astype(int)]
Y9 = np.digitize(X[:, 0] + X[:, 1], np.linspace(-2, 2, 8))
LABELS = {2: Y2, 3: Y3, 9: Y9}
YR = np.exp(X[:, 0] - X[:, 1] ** 2 / 4)
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
SMALL = {"max_iter": 8, "min_samples_leaf": 3, "max_leaf_nodes": 12, "random_state": 0}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small trees grow much slower with threads that wait for each other."""
    with threadpool_limits(1):
        yield


def nodes_reached(model, X):
    """(m, T) the node that each row ends in, by scikit-learn's own walk over its own input."""
    with config_context(assume_finite=True):
        seen = model._preprocess_X(X, reset=False)
    known, feature_map = model._bin_mapper.make_known_categories_bitsets()
    found = []
    for stage in model._predictors:
        for tree in stage:
            numbered = copy.deepcopy(tree)
            numbered.nodes["value"] = np.arange(len(tree.nodes))
            found.append(numbered.predict(seen, known, feature_map, n_threads=1))
    return np.column_stack(found).astype(int)


def hist_probes(model):
    nodes = np.concatenate([tree.nodes for stage in model._predictors for tree in stage])
    nodes = nodes[(nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 0)]
    order = np.arange(model.n_features_in_)
    if model.is_categorical_ is not None:
        order = np.concatenate(
            [np.flatnonzero(model.is_categorical_), np.flatnonzero(~model.is_categorical_)]
        )
    return probes(
        order[nodes["feature_idx"]], nodes["num_threshold"], model.n_features_in_, np.float64
    )


def check(model, rows):
    machine = dm.convert(model)
    assert_answers_as(machine, model, rows)
    assert np.array_equal(leaf_ids(machine, rows), nodes_reached(model, rows))
    return machine


@pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("n_classes", LABELS)
def test_classifiers_are_read_to_the_bit(n_classes, data):
    model = HistGradientBoostingClassifier(**SMALL).fit(data, LABELS[n_classes])
    rows = hist_probes(model)
    machine = check(model, rows)
    with np.errstate(over="ignore"):
        check(model, rows.astype(np.float32))
    # Thresholds stay in float64.
    assert machine.columns.dtype == np.float64


@pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "gamma", "poisson", "quantile"]
)
def test_regressors_are_read_to_the_bit(loss, data):
    model = HistGradientBoostingRegressor(loss=loss, quantile=0.3, **SMALL).fit(data, YR)
    machine = check(model, hist_probes(model))
    assert same(machine.margin(data), model._raw_predict(data).copy(order="C"))


def test_a_gap_alone_may_part_the_rows():
    x = np.array([[np.nan]] * 30 + [[1.0]] * 30)
    model = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5).fit(x, np.isnan(x[:, 0]))
    machine = check(model, np.array([[np.nan], [1.0], [np.inf], [-np.inf], [1e308]]))
    assert np.isinf(machine.t).all()


def test_constraints_early_stopping_and_warm_starts_leave_nothing_to_know():
    model = HistGradientBoostingClassifier(
        max_iter=30,
        monotonic_cst=[1, 0, -1, 0, 0],
        interaction_cst=[{0, 1}, {2, 3, 4}],
        early_stopping=True,
        scoring="roc_auc",
        n_iter_no_change=2,
        l2_regularization=1.0,
        warm_start=True,
        random_state=0,
    ).fit(X, Y2)
    model.set_params(max_iter=model.n_iter_ + 3, early_stopping=False).fit(X, Y2)
    check(model, hist_probes(model))


def test_a_margin_of_zero_is_the_first_class():
    model = HistGradientBoostingClassifier(max_iter=1).fit(np.zeros((40, 1)), np.arange(40) % 2)
    assert model.decision_function([[0.0]]) == 0
    check(model, np.zeros((1, 1)))


# ---------------------------------------------------------------- categories

CODES = {
    "small": np.arange(9.0),
    "negative": np.arange(9.0) - 4,
    "fractions": np.arange(9) * 0.5 - 1,
    "huge": 10.0 ** np.arange(9),
    "above 255": np.arange(9.0) * 100,
}
STRANGE = [-1, -0.5, -0.0, 0.5, 1.5, 1.999, 7.5, 255, 256, 257, 1e6, 2.0**31, 1e300, -1e300]
STRANGE += [np.inf, -np.inf, np.nan, np.nextafter(2.0, 3), 0.1]


def categorical(codes, seed=0):
    """X whose columns 1 and 3 are categories, and a target that depends on their order."""
    rng = np.random.default_rng(seed)
    x = X.copy()
    which = rng.integers(len(codes), size=(len(x), 2))
    x[:, [1, 3]] = np.asarray(codes)[which]
    y = (rng.permutation(len(codes))[which].sum(axis=1) + x[:, 0] * 2) > len(codes) - 1
    return x, y


@pytest.mark.parametrize("with_gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("codes", CODES)
def test_categories_in_an_array_pass_through_the_models_encoder(codes, with_gaps):
    x, y = categorical(CODES[codes])
    if with_gaps:
        x[::7, 1] = np.nan
        x[::5, 0] = np.nan
    model = HistGradientBoostingClassifier(categorical_features=[1, 3], **SMALL).fit(x, y)
    assert any(tree.nodes["is_categorical"].any() for s in model._predictors for tree in s)
    rows = [x, hist_probes(model)]
    for value in [*CODES[codes], *STRANGE]:
        for feature in (1, 3):
            row = x[:20].copy()
            row[:, feature] = value
            rows.append(row)
    rows = np.concatenate(rows)
    check(model, rows)
    with np.errstate(over="ignore"):
        check(model, rows.astype(np.float32))
    check(model, np.round(rows[np.isfinite(rows).all(axis=1) & (np.abs(rows) < 1e9).all(axis=1)]))


def test_categories_in_an_array_of_integers():
    x, y = categorical(CODES["above 255"])
    x = np.round(x * 10).astype(np.int64)
    model = HistGradientBoostingClassifier(categorical_features=[3, 1], **SMALL).fit(x, y)
    check(model, x)
    check(model, x.astype(np.int32))
    check(model, x.astype(np.float64))


def test_columns_are_numbered_as_the_user_passes_them():
    x, y = categorical(CODES["small"])
    model = HistGradientBoostingClassifier(categorical_features=[1, 3], **SMALL).fit(x, y)
    machine = dm.convert(model)
    read = set(machine.columns.feature[machine.selection].tolist())
    assert read <= set(range(5))
    member = machine.columns.feature[machine.columns.rule == dm.Rule.MEMBER]
    assert set(member.tolist()) <= {1, 3}


def test_unknown_labels_and_gaps_go_the_same_way():
    x, y = categorical(CODES["small"])
    model = HistGradientBoostingClassifier(categorical_features=[1, 3], **SMALL).fit(x, y)
    machine = dm.convert(model)
    unknown, gap = x.copy(), x.copy()
    unknown[:, 1], gap[:, 1] = 77.0, np.nan
    assert np.array_equal(machine.apply(unknown), machine.apply(gap))


WORDS = np.array(["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis"], object)


def table_of(x, words=True):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(x, columns=list("abcde"))
    for name in "bd":
        labels = WORDS[table[name].astype(int)] if words else table[name].astype(int)
        table[name] = pandas.Categorical(labels)
    return table


@pytest.mark.parametrize("words", [True, False], ids=["words", "integers"])
def test_categorical_columns_of_a_table_are_read_from_their_dtype(words):
    pandas = pytest.importorskip("pandas")
    x, y = categorical(CODES["small"])
    table = table_of(x, words)
    table.loc[::9, "b"] = None
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", **SMALL)
    model.fit(table, y)
    assert model.is_categorical_.tolist() == [False, True, False, True, False]
    machine = check(model, table)
    assert machine.columns.names == tuple("abcde")
    # A table whose labels stand in another order, with one that the model does not know.
    other = table.iloc[:60].copy()
    labels = other["d"].astype(object)
    labels.iloc[::4] = "zebra" if words else 99
    other["d"] = pandas.Categorical(labels)
    check(model, other)


def test_polars_tables_answer_as_pandas_tables_do():
    polars = pytest.importorskip("polars")
    x, y = categorical(CODES["small"])
    table = table_of(x)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", **SMALL)
    model.fit(table, y)
    columns = {n: table[n].astype(object).tolist() if n in "bd" else table[n] for n in "edcba"}
    machine = dm.convert(model)
    assert same(machine.margin(polars.DataFrame(columns)), machine.margin(table))
    assert same(machine.margin(table)[:, 0], model.decision_function(table))


def test_arrays_of_objects_may_hold_words():
    x, y = categorical(CODES["small"])
    mixed = x.astype(object)
    for feature in (1, 3):
        mixed[:, feature] = WORDS[x[:, feature].astype(int)]
    mixed[::11, 3] = None
    mixed[::13, 1] = np.nan
    model = HistGradientBoostingClassifier(categorical_features=[1, 3], **SMALL).fit(mixed, y)
    # To the encoder None is a label like any other, and NaN a gap.
    assert None in model._preprocessor.named_transformers_["encoder"].categories_[1]
    rows = mixed.copy()
    rows[::3, 1] = "zebra"
    rows[1::3, 3] = np.nan
    rows[2::3, 1] = None
    for data in (mixed, rows):
        assert_answers_as(dm.convert(model), model, data)
        assert np.array_equal(leaf_ids(dm.convert(model), data), nodes_reached(model, data))


def test_words_where_numbers_belong_are_refused():
    x, y = categorical(CODES["small"])
    model = HistGradientBoostingClassifier(categorical_features=[1, 3], **SMALL).fit(x, y)
    wrong = x.astype(object)
    wrong[0, 0] = "text"
    with pytest.raises(dm.InputError, match="text"):
        dm.convert(model).predict(wrong)
    with pytest.raises(dm.InputError, match="4 columns"):
        dm.convert(model).predict(x[:, :4])


def test_a_model_from_before_encoders_is_refused():
    x, y = categorical(CODES["small"])
    model = HistGradientBoostingClassifier(categorical_features=[1, 3], **SMALL).fit(x, y)
    model._preprocessor = None
    with pytest.raises(dm.UnsupportedModelError, match=r"1\.4"):
        dm.convert(model)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(20, 120),
    n_labels=st.integers(1, 40),
    n_classes=st.integers(2, 9),
    with_gaps=st.booleans(),
)
def test_any_model_with_categories_is_read_to_the_bit(seed, n, n_labels, n_classes, with_gaps):
    rng = np.random.default_rng(seed)
    x = np.round(rng.standard_normal((n, 3)), 1)
    x[:, 1] = rng.choice(rng.standard_normal(n_labels), n)
    if with_gaps:
        x[rng.random(x.shape) < 0.2] = np.nan
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n))[:n]
    model = HistGradientBoostingClassifier(
        max_iter=3, min_samples_leaf=2, categorical_features=[1], random_state=0
    ).fit(x, y)
    rows = np.concatenate([x, hist_probes(model), rng.choice(x[:, 1], (50, 3))])
    check(model, rows)
