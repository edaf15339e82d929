"""LightGBM's models are read to the bit: leaf indices and raw scores equal LightGBM's own."""

from __future__ import annotations

import itertools

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import decision_machines as dm
from decision_machines.libraries.lightgbm.read import (
    looks_like_lightgbm,
    read_lightgbm,
    read_lightgbm_text,
)

N_FEATURES, CATEGORY = 4, 3
TINY = float(np.float32(1e-35))
SPECIAL = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 5e-324, -5e-324, 2.2e-308, 1e-45,
    *(s * f(TINY) for s in (1, -1) for f in (
        float, lambda x: np.nextafter(x, 0), lambda x: np.nextafter(x, 1))),
    2.0**24 + 1, -(2.0**24) - 1, 2.0**53, 1e300, -1e300, 1.7e308,
]  # fmt: skip
CATEGORIES = [
    -1.0, -0.5, -0.999, -1.0000001, 0.5, 2.9999, 31.0, 32.0, 63.5, 40.0, 1000.0, 2.0**31 - 1,
    2.0**31, 2.0**32 + 1, -(2.0**31), -1e18, 1e18, 1e300,
]  # fmt: skip

OBJECTIVES = {
    "regression": {},
    "regression_sqrt": {"objective": "regression", "reg_sqrt": True},
    "regression_l1": {},
    "regression_l1_sqrt": {"objective": "regression_l1", "reg_sqrt": True},
    "huber": {},
    "huber_sqrt": {"objective": "huber", "reg_sqrt": True},
    "fair": {},
    "quantile": {"alpha": 0.3},
    "mape": {},
    "poisson": {},
    "gamma": {},
    "tweedie": {"tweedie_variance_power": 1.3},
    "binary": {},
    "binary_sigmoid": {"objective": "binary", "sigmoid": 2.5},
    "multiclass": {"num_class": 3},
    "multiclassova": {"num_class": 3, "sigmoid": 0.7},
    "cross_entropy": {},
    "cross_entropy_lambda": {},
    "lambdarank": {},
    "rank_xendcg": {},
}
BOOSTING = {
    "gbdt": {},
    "dart": {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0.0},
    "goss": {"data_sample_strategy": "goss"},
    "rf": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
}
MISSING = ("nothing", "nan", "zero", "ignored nan")


def features(missing: str, n_rows: int = 240, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES)).round(2)
    X[:, 1] = rng.integers(-3, 4, n_rows)
    X[:, CATEGORY] = rng.integers(0, 40, n_rows)
    if missing in ("nan", "ignored nan"):
        X[rng.random(X.shape) < 0.1] = np.nan
    if missing == "zero":
        X[rng.random(X.shape) < 0.2] = 0.0
    return X


def target(X: np.ndarray, objective: str) -> np.ndarray:
    X = np.nan_to_num(X)
    y = X[:, 0] + np.abs(X[:, 1]) + (X[:, CATEGORY] % 3) - X[:, 2] * X[:, 0] + 0.1
    name = OBJECTIVES.get(objective, {}).get("objective", objective)
    if name == "binary":
        return (y > np.median(y)).astype(float)
    if name in ("multiclass", "multiclassova", "lambdarank", "rank_xendcg"):
        return np.digitize(y, np.quantile(y, [0.3, 0.7])).astype(float)
    if name.startswith("cross_entropy"):
        return (y - y.min()) / np.ptp(y)
    return y - y.min() + 0.01 if name in ("poisson", "gamma", "tweedie", "mape") else y


def train(objective="regression", missing="nan", categorical=True, n_trees=6, **params):
    X = features(missing)
    y = target(X, objective)
    params = {
        "verbosity": -1, "num_threads": 1, "num_leaves": 7, "min_data_in_leaf": 5, "seed": 1,
        "min_data_per_group": 5, "cat_smooth": 1, "objective": objective,
        "zero_as_missing": missing == "zero", "use_missing": missing != "ignored nan",
        **OBJECTIVES.get(objective, {}), **params,
    }  # fmt: skip
    group = [len(X) // 4] * 4 if "rank" in objective else None
    data = lgb.Dataset(
        X, y, group=group, categorical_feature=[CATEGORY] if categorical else [],
        params={"min_data_in_bin": 1, "verbosity": -1},
    )  # fmt: skip
    return lgb.train(params, data, n_trees)


def probes(machine: dm.DecisionMachine, n_base: int = 2) -> np.ndarray:
    """Rows that stand on, just below and just above every threshold, and at every odd value."""
    base = features("nan", n_base, seed=5)
    rows = [features("nan", 60, seed=6), features("zero", 30, seed=7), np.zeros((1, N_FEATURES))]
    mixed = np.empty((400, N_FEATURES))
    rng = np.random.default_rng(8)
    for feature in range(N_FEATURES):
        on = machine.columns.feature[machine.selection] == feature
        t = np.unique(machine.t[on])
        values = [t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf), SPECIAL]
        if feature == CATEGORY:
            values += [CATEGORIES, np.arange(-2.0, 70)]
        values = np.concatenate(values)
        mixed[:, feature] = rng.choice(values, len(mixed))
        block = np.repeat(base, len(values), axis=0)
        block[:, feature] = np.tile(values, n_base)
        rows.append(block)
    specials = np.array(list(itertools.product([np.nan, 0.0, -0.0, 1e-36, np.inf], repeat=4)))
    return np.concatenate([*rows, mixed, specials])


def leaves(machine: dm.DecisionMachine, X) -> np.ndarray:
    """Exit leaves under LightGBM's own numbers."""
    return machine.trees.leaf_ids[machine.apply(X) + machine.trees.leaf_start[:-1]]


def assert_same(booster, X, machine=None, ulp: int = 0) -> None:
    machine = read_lightgbm(booster) if machine is None else machine
    raw = booster.predict(X, raw_score=True).reshape(machine.margin(X).shape)
    assert np.array_equal(leaves(machine, X), booster.predict(X, pred_leaf=True))
    assert np.array_equal(machine.margin(X), raw, equal_nan=True)
    assert_close(machine.predict(X), booster.predict(X), ulp)


def assert_close(found: np.ndarray, expected: np.ndarray, ulp: int = 0) -> None:
    assert found.shape == expected.shape
    odd = ~np.isfinite(expected)
    assert np.array_equal(found[odd], expected[odd], equal_nan=True)
    np.testing.assert_array_max_ulp(found[~odd], expected[~odd], maxulp=ulp)


def in_every_dtype(X: np.ndarray):
    with np.errstate(over="ignore", invalid="ignore"):
        yield X
        yield np.asfortranarray(X)
        yield X.astype(np.float32)
        whole = np.nan_to_num(X, nan=0, posinf=2**40, neginf=-(2**40)).clip(-(2**40), 2**40)
        yield whole.astype(np.int64)
        yield np.abs(whole).astype(np.uint16)


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_and_missing_rule_is_exact(objective, missing, categorical):
    booster = train(objective, missing, categorical, n_trees=3)
    machine = read_lightgbm(booster)
    # The one link without the C library's own functions.
    assert_same(booster, probes(machine), machine)


@pytest.mark.parametrize(
    ("linear", "missing"),
    # LightGBM itself refuses linear trees where zeros are missing.
    [x for x in itertools.product([False, True], MISSING) if x != (True, "zero")],
)
@pytest.mark.parametrize("boosting", BOOSTING)
def test_every_boosting_kind_is_exact_for_every_dtype(boosting, linear, missing):
    booster = train("regression", missing, linear_tree=linear, **BOOSTING[boosting])
    machine = read_lightgbm(booster)
    assert (machine.linear is not None) == linear
    for X in in_every_dtype(probes(machine, n_base=1)):
        assert_same(booster, X, machine, ulp=0)


@pytest.mark.parametrize("objective", ["binary_sigmoid", "multiclass", "multiclassova", "poisson"])
@pytest.mark.parametrize("boosting", ["rf", "dart"])
def test_averages_are_taken_after_the_raw_score_and_before_the_link(objective, boosting):
    booster = train(objective, **BOOSTING[boosting])
    assert_same(booster, probes(read_lightgbm(booster), n_base=1))


def test_linear_multiclass_trees_are_exact():
    booster = train("multiclass", linear_tree=True)
    assert_same(booster, probes(read_lightgbm(booster)))


def test_the_reference_equations_give_the_same_leaves_and_raw_scores():
    booster = train("multiclass", "zero")
    machine = read_lightgbm(booster)
    X = probes(machine, n_base=1)[::7]
    raw = booster.predict(X, raw_score=True)
    assert np.array_equal(machine.margin(X, engine="reference"), raw)


# ---------------------------------------------------------------- one node, by hand

HEADER = (
    "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=0\n"
    "{objective}feature_names=Column_0\nfeature_infos=[-1:1]\ntree_sizes={size}\n\n"
)
ONE_NODE = (
    "Tree=0\nnum_leaves=2\nnum_cat={n_cat}\nsplit_feature=0\nsplit_gain=1\nthreshold={t}\n"
    "decision_type={decision}\nleft_child=-1\nright_child=-2\nleaf_value={values}\n"
    "leaf_weight=1 1\nleaf_count=1 1\ninternal_value=0\ninternal_weight=0\ninternal_count=2\n"
    "{more}shrinkage=1\n\n\n"
)
TAIL = "end of trees\n\nfeature_importances:\n\npandas_categorical:null\n"


def one_node(t, decision, *, values="-1.5 2", objective="", more="is_linear=0\n", n_cat=0) -> str:
    tree = ONE_NODE.format(t=t, decision=decision, values=values, more=more, n_cat=n_cat)
    return HEADER.format(objective=objective, size=len(tree)) + tree + TAIL


def assert_text_same(text: str, X: np.ndarray) -> None:
    assert_same(lgb.Booster(model_str=text), X, read_lightgbm_text(text, "a text"))


@pytest.mark.parametrize("decision", [0, 2, 4, 6, 8, 10])
@pytest.mark.parametrize(
    "t",
    [
        "0",
        "-0",
        repr(TINY),
        repr(-TINY),
        "2e-36",
        "-2e-36",
        "1e-34",
        "-1e-34",
        "0.5",
        "-3",
        "inf",
        "-inf",
    ],
)
def test_values_that_lightgbm_takes_for_zero_are_zero_to_every_test(t, decision):
    X = np.array([*SPECIAL, 0.5, np.nextafter(0.5, 1), -3.0, 1e-34, -1e-34])[:, None]
    assert_text_same(one_node(t, decision), X)


@pytest.mark.parametrize("decision", [1, 3, 5, 9, 11])
@pytest.mark.parametrize("words", ["1", "5", "2147483648 1", "0 0 4294967295", "0"])
def test_category_sets_send_members_left_and_all_else_right(words, decision):
    more = f"cat_boundaries=0 {len(words.split())}\ncat_threshold={words}\nis_linear=0\n"
    text = one_node("0", decision, more=more, n_cat=1)
    X = np.array([*SPECIAL, *CATEGORIES, *np.arange(-2.0, 100.0), *np.arange(-2.0, 99.0, 0.3)])
    assert_text_same(text, X[:, None])


@pytest.mark.parametrize("option", ["", " sqrt"])
@pytest.mark.parametrize(
    "name", ["regression", "regression_l1", "huber", "fair", "quantile", "mape", "poisson",
             "gamma", "tweedie", "cross_entropy", "cross_entropy_lambda", "lambdarank", "custom"],
)  # fmt: skip
def test_options_of_an_objective_count_where_lightgbm_heeds_them(name, option):
    assert_text_same(one_node("0.5", 0, objective=f"objective={name}{option}\n"), np.eye(1) * 0.5)


def test_a_linear_leaf_falls_back_to_its_value_at_nan():
    more = (
        "is_linear=1\nleaf_const=0.1 0.7\nnum_features=1 0\nleaf_features=0   \n"
        "leaf_coeff=0.30000000000000004   \n"
    )
    assert_text_same(one_node("0.5", 10, more=more), np.array([*SPECIAL, 0.3, 0.1, 9.0])[:, None])


@pytest.mark.parametrize("sized", [True, False])
def test_texts_of_lightgbm_2_and_3_are_read(sized):
    text = one_node("0.5", 10, more="", objective="objective=binary sigmoid:2\n")
    text = text.replace("version=v4", "version=v2").replace("end of trees\n", "")
    text = text.replace("feature_importances:", "feature importances:")
    if not sized:
        text = "\n".join(line for line in text.split("\n") if not line.startswith("tree_sizes"))
    assert_text_same(text, np.array([*SPECIAL, 0.5])[:, None])


# ---------------------------------------------------------------- objects and labels


@pytest.mark.parametrize("labels", [["no", "yes"], [7, 3], [-2.0, 1.0], [True, False]])
def test_a_binary_classifier_answers_with_its_own_labels(labels):
    X = features("nan")
    y = np.array(labels)[target(X, "binary").astype(int)]
    model = lgb.LGBMClassifier(n_estimators=5, num_leaves=5, verbosity=-1, n_jobs=1).fit(X, y)
    machine = dm.convert(model)
    X = probes(machine, n_base=1)
    found = machine.predict(X)
    assert np.array_equal(found, model.predict(X))
    assert found.dtype == model.predict(X).dtype
    assert_close(machine.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(machine.margin(X)[:, 0], model.predict(X, raw_score=True))


@pytest.mark.parametrize("objective", [None, "multiclassova"])
def test_a_multiclass_classifier_answers_with_its_own_labels(objective):
    X = features("zero")
    y = np.array(["a", "bb", "ccc"])[target(X, "multiclass").astype(int)]
    model = lgb.LGBMClassifier(
        n_estimators=5, objective=objective, num_leaves=5, verbosity=-1, n_jobs=1
    ).fit(X, y)
    machine = dm.convert(model)
    X = probes(machine, n_base=1)
    assert np.array_equal(machine.predict(X), model.predict(X))
    assert_close(machine.predict_proba(X), model.predict_proba(X))


def test_many_classes_keep_their_probabilities_to_the_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = lgb.LGBMClassifier(n_estimators=2, num_leaves=4, verbosity=-1, n_jobs=1)
    model.fit(X, rng.integers(0, 25, 300))
    assert_close(dm.convert(model).predict_proba(X), model.predict_proba(X))


def test_a_classifier_of_one_class_answers_as_lightgbm_does():
    X = features("nan")
    model = lgb.LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1).fit(X, np.full(len(X), 5))
    machine = dm.convert(model)
    assert np.array_equal(machine.predict(X), model.predict(X))
    assert_close(machine.predict_proba(X), model.predict_proba(X))


def test_two_classes_under_a_multiclass_objective_are_read():
    X = features("nan")
    model = lgb.LGBMClassifier(
        n_estimators=3, objective="multiclass", num_class=2, verbosity=-1, n_jobs=1
    ).fit(X, target(X, "binary"))
    machine = dm.convert(model)
    assert np.array_equal(machine.predict(X), model.predict(X))
    assert_close(machine.predict_proba(X), model.predict_proba(X))


def test_a_booster_of_classes_predicts_probabilities():
    booster = train("binary")
    machine = dm.convert(booster)
    X = features("nan")
    assert machine.predict(X).shape == (len(X),)
    assert_close(machine.predict_proba(X)[:, 1], booster.predict(X))


def test_regressors_and_rankers_are_read():
    X = features("nan")
    for model in (
        lgb.LGBMRegressor(n_estimators=4, verbosity=-1, n_jobs=1).fit(X, target(X, "regression")),
        lgb.LGBMRanker(n_estimators=4, verbosity=-1, n_jobs=1).fit(
            X, target(X, "lambdarank"), group=[len(X)]
        ),
    ):
        machine = dm.convert(model)
        P = probes(machine, n_base=1)
        assert np.array_equal(machine.predict(P), model.predict(P))


def _squared_error(y, p):
    return p - y, np.ones_like(y)


def test_a_function_as_objective_leaves_raw_scores_as_the_answer():
    X = features("nan")
    for model in (
        lgb.LGBMRegressor(objective=_squared_error, n_estimators=4, verbosity=-1, n_jobs=1),
        lgb.LGBMClassifier(objective=_squared_error, n_estimators=4, verbosity=-1, n_jobs=1),
    ):
        model.fit(X, target(X, "binary"))
        assert np.array_equal(dm.convert(model).predict(X), model.predict(X))


@pytest.mark.parametrize("keeps_all", [False, True])
def test_early_stopping_reads_the_best_iteration_alone(keeps_all):
    X = features("nan")
    y = target(X, "regression") + np.random.default_rng(0).normal(size=len(X)) * 3
    data = lgb.Dataset(X[:120], y[:120])
    booster = lgb.train(
        {"verbosity": -1, "num_threads": 1, "learning_rate": 0.5},
        data,
        60,
        valid_sets=[lgb.Dataset(X[120:], y[120:], reference=data)],
        callbacks=[lgb.early_stopping(3, verbose=False)],
        keep_training_booster=keeps_all,
    )
    machine = dm.convert(booster)
    assert machine.n_trees == booster.best_iteration
    assert (machine.n_trees < booster.num_trees()) == keeps_all
    assert np.array_equal(machine.predict(X), booster.predict(X))


def test_trees_of_one_leaf_are_read():
    X = features("nan")
    booster = lgb.train(
        {"verbosity": -1, "num_threads": 1, "objective": "multiclass", "num_class": 3},
        lgb.Dataset(X, target(X, "binary")), 3,
    )  # fmt: skip
    assert (np.diff(read_lightgbm(booster).trees.leaf_start) == 1).any()
    assert_same(booster, X)


def test_continued_training_may_mix_missing_rules_in_one_feature():
    first = train("regression", "zero")
    X = features("nan")
    both = lgb.train(
        {"verbosity": -1, "num_threads": 1, "num_leaves": 7, "min_data_in_leaf": 5},
        lgb.Dataset(X, target(X, "regression"), categorical_feature=[CATEGORY]),
        4, init_model=first,
    )  # fmt: skip
    assert_same(both, probes(read_lightgbm(both)))


def test_object_text_bytes_and_file_give_one_machine(tmp_path):
    booster = train("multiclass", "zero", linear_tree=False)
    path = tmp_path / "model.txt"
    booster.save_model(path)
    machine = read_lightgbm(booster)
    text = booster.model_to_string()
    assert looks_like_lightgbm(path.read_bytes())
    for data in (text, text.encode(), text.replace("\n", "\r\n").encode(), path.read_bytes()):
        assert machine.equals(read_lightgbm_text(data, "a file"))


def test_text_holds_the_live_model_to_the_last_bit():
    booster = train("regression", linear_tree=True, n_trees=20, learning_rate=0.0731)
    again = lgb.Booster(model_str=booster.model_to_string())
    X = probes(read_lightgbm(booster))
    assert np.array_equal(booster.predict(X), again.predict(X), equal_nan=True)
    assert_same(booster, X)


# ---------------------------------------------------------------- sparse rows and tables


def test_entries_absent_from_a_sparse_row_are_zeros():
    booster = train("regression", "zero")
    X = sp.csr_matrix(features("zero", 300, seed=3))
    assert X.nnz < np.prod(X.shape)
    for part in (X, X.tocsc(), sp.csr_array(X)):
        found = read_lightgbm(booster).margin(part)[:, 0]
        assert np.array_equal(found, booster.predict(X, raw_score=True))


def table(n_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a number": rng.normal(size=n_rows),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue", "grey"], n_rows)),
            "size": pd.Categorical(
                rng.choice(["s", "m", "l"], n_rows), categories=["s", "m", "l"], ordered=True
            ),
            "code": rng.integers(0, 9, n_rows),
            "grade": pd.Categorical(rng.choice([30, 10, 20], n_rows)),
        }
    )


def train_on_table(**options) -> lgb.Booster:
    T = table()
    y = (
        T["a number"]
        + (T["colour"] == "red") * 2
        + T["size"].cat.codes
        + (T["code"] % 2) * 3
        - (T["grade"] == 20) * 2
    )
    params = {"verbosity": -1, "num_threads": 1, "num_leaves": 9, "min_data_in_leaf": 3,
              "min_data_per_group": 3, "cat_smooth": 1}  # fmt: skip
    return lgb.train(params, lgb.Dataset(T, y, **options), 8)


@pytest.mark.parametrize(
    "options", [{}, {"categorical_feature": ["code", "grade"]}, {"categorical_feature": ["code"]}]
)
def test_pandas_categories_are_matched_as_lightgbm_matches_them(options):
    booster = train_on_table(**options)
    machine = read_lightgbm_text(booster.model_to_string(), "a text")
    T = table(100, seed=1)
    assert np.array_equal(machine.predict(T), booster.predict(T))
    other = T.copy()
    other["colour"] = pd.Categorical(["green", "violet", None, "red"] * 25)
    other["size"] = pd.Categorical(["l", "xl", None, "s"] * 25, ordered=True)
    other["grade"] = pd.Categorical([20, 10, 99, None] * 25)
    assert np.array_equal(machine.predict(other), booster.predict(other))


def test_table_columns_are_found_by_name_in_any_order():
    booster = train_on_table()
    machine = read_lightgbm(booster)
    T = table(50, seed=2)
    shuffled = T[["grade", "code", "a number", "size", "colour"]]
    expected = booster.predict(T)
    assert np.array_equal(machine.predict(shuffled), expected)
    with pytest.raises(dm.InputError, match="code"):
        machine.predict(T.drop(columns="code"))


def test_a_table_without_its_categorical_columns_is_refused():
    T = table(20)
    T["colour"] = T["colour"].cat.codes
    with pytest.raises(dm.InputError, match="2 columns of the table are categorical"):
        read_lightgbm(train_on_table()).predict(T)


def test_polars_and_arrow_tables_of_numbers_are_read():
    booster = train("regression")
    machine = read_lightgbm(booster)
    X = features("nan", 100, seed=9)
    names = [f"Column_{i}" for i in range(N_FEATURES)]
    expected = booster.predict(X)
    for T in (pl.DataFrame(X, schema=names), pa.table(dict(zip(names, X.T, strict=True)))):
        assert np.array_equal(machine.predict(T), expected)
    assert np.array_equal(machine.predict(pd.DataFrame(X)), expected)


def test_names_that_lightgbm_made_up_are_no_names():
    assert read_lightgbm(train()).columns.names is None
    assert read_lightgbm(train_on_table()).columns.names == (
        "a_number", "colour", "size", "code", "grade"
    )  # fmt: skip


def test_names_of_any_letters_are_found_in_a_table():
    X = features("nan")
    T = pd.DataFrame(X, columns=["größe", "a=b", "x y", "Tree=0"])
    booster = lgb.train({"verbosity": -1, "num_threads": 1}, lgb.Dataset(T, X[:, CATEGORY]), 2)
    machine = read_lightgbm(booster)
    assert machine.columns.names == ("größe", "a=b", "x_y", "Tree=0")
    assert np.array_equal(machine.predict(T[T.columns[::-1]]), booster.predict(T))


def test_integers_of_an_array_pass_through_float32_and_those_of_a_table_do_not():
    t = 2.0**24 + 1
    booster = lgb.Booster(model_str=one_node(repr(t), 0))
    machine = read_lightgbm(booster)
    X = np.array([[2**24], [2**24 + 1], [2**24 + 2]])
    for data in (X, pd.DataFrame(X), X.astype(float)):
        assert np.array_equal(machine.predict(data), booster.predict(data))
    X = X + 2**24
    machine = read_lightgbm(lgb.Booster(model_str=one_node(repr(2.0**25), 0)))
    assert not np.array_equal(machine.predict(X), machine.predict(X.astype(float)))


# ---------------------------------------------------------------- refusals


def test_prediction_that_stops_early_is_refused():
    X = features("nan")
    model = lgb.LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1, pred_early_stop=True)
    model.fit(X, target(X, "binary"))
    with pytest.raises(dm.UnsupportedModelError, match="pred_early_stop"):
        dm.convert(model)


def test_what_is_not_a_fitted_model_is_refused():
    with pytest.raises(dm.InputError, match="not fitted"):
        dm.convert(lgb.LGBMRegressor())
    with pytest.raises(dm.UnsupportedModelError, match="Dataset"):
        dm.convert(lgb.Dataset(np.eye(3)))


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("objective=regression", "objective=survival", dm.UnsupportedModelError, "survival"),
        ("objective=regression", "objective=regression cube", dm.UnsupportedModelError, "cube"),
        ("objective=regression", "objective=binary sigmoid:-1", dm.ModelFormatError, "sigmoid"),
        ("objective=regression", "objective=multiclass num_class:2", dm.ModelFormatError, "num_c"),
        ("version=v4", "version=v9", dm.UnsupportedModelError, "version"),
        ("version=v4", "version=v4\ncipher=1", dm.UnsupportedModelError, "cipher"),
        ("num_class=1", "num_class=7", dm.ModelFormatError, "num_tree_per_iteration"),
        ("num_class=1", "num_class=99999999999", dm.ModelFormatError, "num_class"),
        ("max_feature_idx=3", "max_feature_idx=2147483646", dm.ModelFormatError, "feature_names"),
        ("tree_sizes=", "tree_sizes=9 ", dm.ModelFormatError, "bytes"),
        ("end of trees", "", dm.ModelFormatError, "trees"),
        ("end of parameters", "", dm.ModelFormatError, "end of parameters"),
        ("pandas_categorical:null", "pandas_categorical:[[1", dm.ModelFormatError, "JSON"),
        (
            "pandas_categorical:null",
            "pandas_categorical:[[null]]",
            dm.UnsupportedModelError,
            "labels",
        ),
    ],
)
def test_a_header_that_would_mislead_is_refused(old, new, error, words):
    text = train(n_trees=1).model_to_string()
    assert old in text
    with pytest.raises(error, match=words):
        read_lightgbm_text(text.replace(old, new, 1), "a text")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("split_feature=0", "split_feature=1", "split_feature of node 0 in tree 0"),
        ("split_feature=0", "split_feature=-1", "split_feature of node 0 in tree 0"),
        ("decision_type=0", "decision_type=12", "decision_type of node 0 in tree 0"),
        ("decision_type=0", "decision_type=-128", "decision_type of node 0 in tree 0"),
        ("decision_type=0", "decision_type=1", "category set"),
        ("left_child=-1", "left_child=0", "tree 0"),
        ("left_child=-1", "left_child=-2", "tree 0"),
        ("left_child=-1", "left_child=-3", "left_child of node 0 in tree 0"),
        ("left_child=-1", "left_child=1", "left_child of node 0 in tree 0"),
        ("threshold=0.5", "threshold=nan", "threshold in tree 0"),
        ("threshold=0.5", "threshold=1e999", "threshold in tree 0"),
        ("threshold=0.5", "threshold=1_0", "threshold"),
        ("threshold=0.5", "threshold=half", "threshold"),
        ("threshold=0.5", "threshold=0.5 0.5", "threshold of tree 0 has 2 entries"),
        ("leaf_value=-1.5 2", "leaf_value=NaN 2", "leaf_value in tree 0"),
        ("num_leaves=2", "num_leaves=0", "num_leaves"),
        ("num_leaves=2", "num_leaves=9223372036854775807", "leaf_value"),
        ("num_leaves=2", "num_leaves=99999999999999999999999", "num_leaves"),
        ("is_linear=0", "is_linear=1", "leaf_const"),
        ("is_linear=0", "is_linear=1\nleaf_const=1 1\nnum_features=9000000000 0", "num_features"),
        ("is_linear=0", "is_linear=1\nleaf_const=1 1\nnum_features=1 0\nleaf_features=7\n"
         "leaf_coeff=1", "feature that does not exist"),
        ("shrinkage=1", "shrinkage=1\nshrinkage=1", "twice"),
    ],
)  # fmt: skip
def test_a_tree_that_is_no_tree_is_refused(old, new, words):
    text = one_node("0.5", 0)
    assert old in text
    text = text.replace(old, new, 1)
    size = text.index("end of trees") - text.index("Tree=0")
    text = text.replace(text[text.index("tree_sizes=") :].split("\n")[0], f"tree_sizes={size}")
    with pytest.raises(dm.ModelFormatError, match=words):
        read_lightgbm_text(text, "a text")


def test_a_field_that_is_not_known_is_refused_with_its_tree():
    text = one_node("0.5", 0, more="is_linear=0\nleaf_spline=1\n")
    with pytest.raises(dm.UnsupportedModelError, match=r"trees\[0\].leaf_spline is a field"):
        read_lightgbm_text(text, "a text")


def test_other_files_do_not_look_like_lightgbm():
    for data in (b"", b"tree", b"trees are green", b"{}", b"\x80\x04", b"tree\nhello"):
        assert not looks_like_lightgbm(data)
        with pytest.raises(dm.ModelFormatError):
            read_lightgbm_text(data, "a text")
