"""Laws of folding: equal to the pipeline to the bit, refused where it refuses."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import ensemble, feature_selection, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import decision_machines as dm
from decision_machines.libraries.sklearn.pipelines.floats import Ordered, between

sys.path.insert(0, str(Path(__file__).parent))
from people import LABELS, NUMBERS, agree_or_both_refuse, bins, odd_rows, people

X, Y = people(200)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_keys_keep_the_order_of_numbers(a, b):
    numbers = Ordered(np.dtype(np.float64))
    keys = numbers.keys(np.array([a, b]))
    assert (a < b) == (keys[0] < keys[1])
    assert np.array_equal(numbers.values(keys), [a, b])


@given(st.integers(-(2**62), 2**62), st.integers(2, 2**62), st.integers(1, 20))
def test_keys_between_two_are_between_them(low, width, n):
    found = between(np.array([low]), np.array([low + width]), n)[0]
    assert np.all(np.diff(found) >= 0)
    assert low < found[0]
    assert found[-1] < low + width


NUMERIC_STEPS = [
    lambda: preprocessing.StandardScaler(),
    lambda: preprocessing.MinMaxScaler(feature_range=(-3, 7)),
    lambda: preprocessing.MinMaxScaler(clip=True),
    lambda: preprocessing.MaxAbsScaler(),
    lambda: preprocessing.RobustScaler(unit_variance=True),
    lambda: preprocessing.QuantileTransformer(n_quantiles=20),
    lambda: preprocessing.PowerTransformer(),
    lambda: preprocessing.FunctionTransformer(np.cbrt),
    lambda: preprocessing.FunctionTransformer(np.negative),
    lambda: preprocessing.FunctionTransformer(np.square),
    lambda: preprocessing.FunctionTransformer(),
    lambda: preprocessing.Binarizer(threshold=0.5),
    lambda: bins(3, "ordinal"),
    lambda: bins(3, "onehot-dense"),
    lambda: SimpleImputer(strategy="mean", add_indicator=True),
    lambda: make_union(SimpleImputer(strategy="constant", fill_value=3.0), MissingIndicator()),
    lambda: SimpleImputer(missing_values=0.0, strategy="median"),
    lambda: SimpleImputer(strategy="most_frequent", keep_empty_features=True),
    lambda: MissingIndicator(features="all"),
    lambda: preprocessing.QuantileTransformer(n_quantiles=9, output_distribution="normal"),
    lambda: preprocessing.PowerTransformer(standardize=False),
    lambda: preprocessing.FunctionTransformer(np.abs),
    lambda: preprocessing.FunctionTransformer(np.log1p, validate=True),
    lambda: preprocessing.FunctionTransformer(np.floor),
    lambda: preprocessing.KBinsDiscretizer(4, encode="onehot", strategy="uniform"),
    lambda: make_union(preprocessing.MaxAbsScaler(), preprocessing.KBinsDiscretizer(2)),
    lambda: feature_selection.VarianceThreshold(),
    lambda: feature_selection.SelectPercentile(percentile=60),
    lambda: "passthrough",
]
LABEL_STEPS = [
    lambda: preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    lambda: preprocessing.OneHotEncoder(min_frequency=0.3, handle_unknown="infrequent_if_exist"),
    lambda: preprocessing.OneHotEncoder(drop="first"),
    lambda: preprocessing.OrdinalEncoder(),
    lambda: preprocessing.OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-5
    ),
    lambda: preprocessing.TargetEncoder(cv=2, random_state=0),
    lambda: make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"),
        preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=9),
    ),
    lambda: preprocessing.OneHotEncoder(drop="if_binary", max_categories=2),
    lambda: preprocessing.OneHotEncoder(max_categories=2, handle_unknown="warn"),
    lambda: preprocessing.OrdinalEncoder(
        min_frequency=25, handle_unknown="use_encoded_value", unknown_value=np.nan
    ),
    lambda: make_pipeline(
        SimpleImputer(missing_values=None, strategy="most_frequent"),
        preprocessing.OneHotEncoder(handle_unknown="ignore"),
    ),
    lambda: make_pipeline(
        SimpleImputer(missing_values="b", strategy="constant", fill_value="none"),
        preprocessing.TargetEncoder(cv=2, random_state=0),
    ),
    lambda: make_pipeline(
        SimpleImputer(strategy="most_frequent", add_indicator=True),
        preprocessing.OneHotEncoder(handle_unknown="ignore"),
    ),
    lambda: make_pipeline(
        preprocessing.OneHotEncoder(handle_unknown="ignore"),
        feature_selection.SelectKBest(k=2),
        preprocessing.StandardScaler(with_mean=False),
    ),
]
MODELS = [
    lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    lambda: ensemble.RandomForestClassifier(2, max_depth=6, random_state=0),
    lambda: ensemble.HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2),
    lambda: ensemble.GradientBoostingClassifier(n_estimators=2, random_state=0),
]


@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_random_pipelines_over_random_tables_agree(data):
    seed = data.draw(st.integers(0, 2**16), "seed")
    rng = np.random.default_rng(seed)
    n = 60
    scale = data.draw(st.sampled_from([1e-3, 1.0, 1e6]), "scale")
    table = pd.DataFrame(
        {
            "u": rng.normal(0, scale, n),
            "v": rng.integers(0, 4, n) * scale,
            "w": rng.choice(["a", "b", "c"], n),
        }
    )
    if data.draw(st.booleans(), "gaps"):
        table.loc[rng.random(n) < 0.2, "u"] = np.nan
        gap = data.draw(st.sampled_from([np.nan, None]), "gap")
        table["w"] = [gap if rng.random() < 0.2 else v for v in table["w"]]
        table["w"] = table["w"].astype(object)
    y = (table["u"].fillna(0) / scale + (table["w"] == "a") + rng.normal(0, 0.3, n) > 0.5) * 1
    steps = data.draw(st.lists(st.sampled_from(NUMERIC_STEPS), min_size=1, max_size=3), "steps")
    labels = data.draw(st.sampled_from(LABEL_STEPS), "labels")
    number_encoder = data.draw(st.booleans(), "v as a category")
    parts = [("n", make_pipeline(*(step() for step in steps)), ["u"]), ("l", labels(), ["w"])]
    if number_encoder:
        parts.append(("v", data.draw(st.sampled_from(LABEL_STEPS[:2]), "of v")(), ["v"]))
    rest = data.draw(st.sampled_from(["drop", "passthrough"]), "rest")
    pipe = make_pipeline(
        ColumnTransformer(parts, remainder=rest, sparse_threshold=0),
        data.draw(st.sampled_from(MODELS), "model")(),
    )
    try:
        pipe.fit(table, y)
    except (ValueError, TypeError):
        return  # steps that refuse what the steps before them give
    machine = dm.convert(pipe)
    assert np.array_equal(machine.predict_proba(table), pipe.predict_proba(table))
    rows = table.iloc[:12].copy()
    rows["u"] = data.draw(st.lists(st.floats(), min_size=12, max_size=12), "u")
    rows["v"] = data.draw(
        st.lists(st.floats() | st.sampled_from([0.0, scale, 2 * scale]), min_size=12, max_size=12)
    )
    some = st.sampled_from(["a", "b", "c", "z", "", None, float("nan"), 1, 2.5, True])
    rows["w"] = pd.Series(
        data.draw(st.lists(some, min_size=12, max_size=12), "w"), index=rows.index, dtype=object
    )
    agree_or_both_refuse(machine, pipe, rows, ["predict_proba"])


@pytest.mark.parametrize("mark", [np.nan, 0.0])
@pytest.mark.parametrize("error_on_new", [True, False])
@pytest.mark.parametrize("had_gaps", [True, False])
def test_a_gap_where_there_was_none_is_refused_as_its_indicator_does(mark, error_on_new, had_gaps):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    if had_gaps:
        X[::3, 0] = mark
    indicator = MissingIndicator(missing_values=mark, error_on_new=error_on_new)
    union = make_union(SimpleImputer(missing_values=mark), indicator)
    pipe = make_pipeline(union, DecisionTreeClassifier(random_state=0)).fit(X, X[:, 1] > 0)
    rows = np.array([[1.0, 2.0], [mark, 2.0], [1.0, mark], [mark, mark], [-1.0, -2.0]])
    agree_or_both_refuse(dm.convert(pipe), pipe, rows)


def usual():
    return ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(), preprocessing.StandardScaler()), NUMBERS),
            (
                "l",
                make_pipeline(
                    SimpleImputer(strategy="most_frequent"),
                    preprocessing.OneHotEncoder(handle_unknown="ignore"),
                ),
                LABELS,
            ),
        ]
    )


def forest():
    return ensemble.RandomForestClassifier(3, max_depth=6, random_state=0)


def test_every_row_of_odd_values_agrees_or_is_refused_by_both():
    pipe = make_pipeline(usual(), forest()).fit(X, Y)
    assert agree_or_both_refuse(dm.convert(pipe), pipe, odd_rows(X)) > 80


def test_float32_columns_are_refused_unless_they_are_asked_for():
    single = X.astype(dict.fromkeys(("age", "income", "balance"), np.float32))
    single["children"] = single["children"].astype(np.int16)
    pipe = make_pipeline(usual(), forest()).fit(X, Y)
    with pytest.raises(dm.InputError, match="float32"):
        dm.convert(pipe).predict(single)
    machine = dm.convert(pipe, single)
    assert np.array_equal(machine.predict_proba(single), pipe.predict_proba(single))
    with pytest.raises(dm.InputError, match="float64"):
        machine.predict(X)
    assert dm.certify(machine, pipe)


def test_thresholds_lie_where_float32_arithmetic_has_them():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(300, 1)) * 1e3 + 7).astype(np.float32)
    pipe = make_pipeline(preprocessing.StandardScaler(), DecisionTreeRegressor(random_state=0)).fit(
        x, np.sin(x[:, 0])
    )
    machine = dm.convert(pipe, x)
    t = machine.t.astype(np.float32)
    t = t[np.isfinite(t)]
    at = np.concatenate([t, np.nextafter(t, np.float32(np.inf)), np.nextafter(t, -t)])[:, None]
    assert np.array_equal(machine.predict(at), pipe.predict(at))


def test_tables_may_have_further_columns_and_lack_what_is_dropped():
    pipe = make_pipeline(
        ColumnTransformer([("s", preprocessing.StandardScaler(), ["income"])]), forest()
    ).fit(X, Y)
    machine = dm.convert(pipe)
    for table in (X.assign(more=1), X[["income"]], X[["city", "income"]]):
        assert np.array_equal(machine.predict_proba(table), pipe.predict_proba(table))
    with pytest.raises(dm.InputError, match="income"):
        machine.predict(X.drop(columns="income"))


def test_a_pipeline_on_arrays_reads_arrays():
    x = X[NUMBERS].to_numpy()
    pipe = make_pipeline(SimpleImputer(), preprocessing.RobustScaler(), forest()).fit(x, Y)
    machine = dm.convert(pipe)
    assert np.array_equal(machine.predict_proba(x), pipe.predict_proba(x))
    whole = np.round(np.nan_to_num(x)).astype(np.int64)
    assert np.array_equal(machine.predict_proba(whole), pipe.predict_proba(whole))
    objects = X.to_numpy(object)
    mixed = make_pipeline(
        ColumnTransformer(
            [("n", SimpleImputer(), [0, 1, 2, 3]), ("l", preprocessing.OrdinalEncoder(), [4])]
        ),
        forest(),
    ).fit(objects, Y)
    assert np.array_equal(dm.convert(mixed).predict(objects), mixed.predict(objects))


def doubled_below_zero(x):
    return np.where(np.asarray(x) < 0, 2 * np.asarray(x), np.asarray(x))


def wave(x):
    return np.sin(np.asarray(x) / 5000)


def bump(x):
    """Rising, but for a narrow dent that no training row lies in."""
    x = np.asarray(x, np.float64)
    return np.where((x > 20000) & (x < 20400), -1e6, x)


def test_an_unknown_function_is_refused_and_folds_where_it_is_declared_monotone():
    step = preprocessing.FunctionTransformer(doubled_below_zero)
    pipe = make_pipeline(ColumnTransformer([("own", step, ["balance"])]), forest()).fit(X, Y)
    with pytest.raises(dm.UnsupportedModelError, match="'own'"):
        dm.convert(pipe)
    for declared in (["own"], [doubled_below_zero], [preprocessing.FunctionTransformer]):
        machine = dm.convert(pipe, monotone=declared)
        assert np.array_equal(machine.predict_proba(X), pipe.predict_proba(X))
    assert dm.certify(machine, pipe)


@pytest.mark.parametrize("back", [10, 120, 250])
@pytest.mark.parametrize("forth", [1, 101, 240])
def test_what_rounding_undoes_is_found_however_the_search_meets_it(back, forth):
    """A function that rises, falls back `forth` numbers later and rises for good."""
    numbers = Ordered(np.dtype(np.float64))
    last = int(numbers.keys(np.array([0.7]))[0])

    def wavers(x):
        k = numbers.keys(np.asarray(x)) - last
        return np.where((k > 0) | ((k <= -back) & (k > -back - forth)), 1.0, 0.0)

    x = np.linspace(-3, 3, 40)[:, None]
    model = make_pipeline(preprocessing.FunctionTransformer(wavers), DecisionTreeClassifier())
    model.fit(x, x[:, 0] > 0.7)
    machine = dm.convert(model, monotone=[wavers])
    near = numbers.values(last + np.arange(-back - forth - 9, 10))[:, None]
    rows = np.concatenate([x, near])
    assert np.array_equal(machine.predict(rows), model.predict(rows))
    assert len(np.unique(model.predict(near))) == 2


def test_a_false_claim_of_monotony_is_found_out():
    step = preprocessing.FunctionTransformer(wave)
    pipe = make_pipeline(ColumnTransformer([("own", step, ["balance"])]), forest()).fit(X, Y)
    with pytest.raises(dm.UnsupportedModelError, match="monotone is not"):
        dm.convert(pipe, monotone=["own"])
    step = preprocessing.FunctionTransformer(bump)
    narrow = make_pipeline(
        ColumnTransformer([("own", step, ["balance"])]),
        DecisionTreeRegressor(max_depth=7, random_state=0),
    )
    inside = (X["balance"] > 20000) & (X["balance"] < 20400)
    narrow.fit(X[~inside], X["balance"][~inside])
    try:
        machine = dm.convert(narrow, monotone=["own"])
    except dm.UnsupportedModelError:
        return
    assert not dm.certify(machine, narrow, pd.DataFrame(X.assign(balance=20200.0)))


def test_certificates_go_through_the_whole_pipeline():
    pipe = make_pipeline(usual(), forest()).fit(X, Y)
    machine = dm.convert(pipe)
    proof = dm.certify(machine, pipe, odd_rows(X)[:0])
    assert proof.holds
    assert proof.tests == machine.n_tests
    other = make_pipeline(usual(), forest().set_params(random_state=1)).fit(X, Y)
    assert not dm.certify(machine, other)


def test_a_machine_says_what_was_folded_and_what_it_reads():
    pipe = make_pipeline(usual(), forest()).fit(X, Y)
    machine = dm.convert(pipe)
    for step in ("SimpleImputer", "StandardScaler", "OneHotEncoder", "RandomForestClassifier"):
        assert step in machine.source
    assert machine.columns.names == tuple(X.columns)
    assert set(machine.columns.categories[4]) == {"clerk", "nurse", "smith", "king"}


def test_ranges_are_words_where_a_step_is_not_monotone():
    step = preprocessing.OneHotEncoder(handle_unknown="ignore")
    pipe = make_pipeline(
        ColumnTransformer([("c", step, ["children"])]),
        DecisionTreeClassifier(max_depth=2, random_state=0),
    ).fit(X, Y)
    machine = dm.convert(pipe)
    assert 3 in machine.columns.edges
    said = str(machine.rules())
    assert "≤" in said
    assert "children" in said
