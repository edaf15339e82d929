"""An XGBoost model and its machine: the same leaf for every row, the same margin to the bit."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import scipy.sparse as sp

from decision_machines import InputError, ModelFormatError, UnsupportedModelError
from decision_machines.libraries.xgboost.read import (
    looks_like_xgboost,
    read_xgboost,
    read_xgboost_bytes,
)
from decision_machines.run.links import LINKS

xgb = pytest.importorskip("xgboost")
# XGBoost 3.4 warns that its random forests will go; models that were fitted with them stay.
pytestmark = pytest.mark.filterwarnings("ignore:`XGBRF:FutureWarning")

RELEASE = tuple(int(part) for part in xgb.__version__.split(".")[:2])
xgb.set_config(verbosity=0)

N_ROWS, N_CATEGORIES = 160, 40

ONE_OUTPUT = ("survival:cox", "survival:aft", "rank:pairwise", "rank:ndcg", "rank:map")
OBJECTIVES = (
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:logistic",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "reg:gamma",
    "reg:tweedie",
    "count:poisson",
    "binary:logistic",
    "binary:logitraw",
    "binary:hinge",
    "multi:softmax",
    "multi:softprob",
    *ONE_OUTPUT,
)
KINDS = {
    "depthwise": {},
    "lossguide": {"grow_policy": "lossguide", "max_leaves": 7, "max_depth": 0},
    "dart": {"booster": "dart", "rate_drop": 0.5, "one_drop": 1},
    "forest": {"num_parallel_tree": 3, "subsample": 0.7},
    "pruned": {"tree_method": "exact", "gamma": 3},
    "targets": {},
    "vector": {"multi_strategy": "multi_output_tree"},
}
CATEGORIES = {"numeric": None, "onehot": 100, "partition": 1}


def is_possible(objective: str, kind: str, category: str) -> bool:
    """What XGBoost itself can train."""
    if kind in ("targets", "vector") and objective in ONE_OUTPUT:
        return False
    return category == "numeric" or kind not in ("pruned", "vector")


def make_data(has_missing: bool, category: str, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 4))
    X[:, 2] = rng.integers(0, N_CATEGORIES, N_ROWS)
    X[:, 3] = np.round(X[:, 3], 1)
    score = X[:, 0] + (X[:, 2] % 3 == 1) * 2 - (X[:, 2] % 5 == 0) + 0.3 * X[:, 3]
    if has_missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    types = ["q", "q", "q" if category == "numeric" else "c", "q"]
    return X, score, types


def train(objective: str, kind: str, category: str, has_missing: bool, rounds: int = 3):
    X, score, types = make_data(has_missing, category)
    params = {"objective": objective, "nthread": 1, "max_depth": 3, "seed": 1, **KINDS[kind]}
    if CATEGORIES[category] is not None:
        params["max_cat_to_onehot"] = CATEGORIES[category]
    y = (score > score.mean()).astype(float)
    if objective.startswith("multi:"):
        params["num_class"] = 3
        y = np.digitize(score, np.quantile(score, [0.3, 0.6]))
    elif objective == "reg:quantileerror":
        params["quantile_alpha"] = [0.2, 0.5, 0.9]
        y = score
    elif kind in ("targets", "vector"):
        y = np.stack([y, 1 - y, (X[:, 3] > 0).astype(float)], axis=1)
    elif objective in ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror"):
        y = score
    if objective == "reg:gamma":
        y = y + 0.5
    data = xgb.DMatrix(X, y, feature_types=types)
    if objective == "survival:aft":
        data.set_float_info("label_lower_bound", y + 1)
        data.set_float_info("label_upper_bound", y + 2)
    if objective.startswith("rank:"):
        data.set_group([N_ROWS // 2] * 2)
    return xgb.train(params, data, rounds), X


def stored(booster) -> dict:
    return json.loads(booster.save_raw("json"))


def model_of(document: dict) -> dict:
    booster = document["learner"]["gradient_booster"]
    return booster.get("gbtree", booster)["model"]


def thresholds(booster) -> dict[int, np.ndarray]:
    """The thresholds of each feature, from the booster's own store."""
    found: dict[int, list] = {}
    for tree in model_of(stored(booster))["trees"]:
        for left, feature, t in zip(
            tree["left_children"], tree["split_indices"], tree["split_conditions"], strict=True
        ):
            if left != -1:
                found.setdefault(feature, []).append(t)
    return {feature: np.unique(np.float32(t)) for feature, t in found.items()}


SPECIAL = (
    *(np.nan, 0.0, -0.0, 1e-36, -1e-36, 1e-45, -1e-45, 2.0**24 + 1, 2.0**24 + 3, -(2.0**24) - 1),
    *(-1.0, -0.5, 0.5, 1.7, N_CATEGORIES, 31, 32, 33, 1e6, 2.0**24 - 1, 2.0**24),
    *(2.0**31, 2.0**32, 1e20, 3e38, -3e38),
)


def probes(booster, X: np.ndarray, seed: int = 0, most: int = 24) -> np.ndarray:
    """Rows with one feature at, just beside, or rounding across a threshold, or at odd values."""
    rng = np.random.default_rng(seed)
    rows = [X]
    for feature in range(X.shape[1]):
        t = thresholds(booster).get(feature, np.empty(0, np.float32))[:most]
        wide = t.astype(np.float64)
        below, above = (np.nextafter(t, np.float32(s)).astype(np.float64) for s in (-1e38, 1e38))
        # Halfway between neighbours and a hair to either side: what float32 makes of these
        # decides the side.
        half = np.concatenate([(wide + below) / 2, (wide + above) / 2])
        values = np.concatenate(
            [wide, below, above, half, np.nextafter(half, -1e38), np.nextafter(half, 1e38), SPECIAL]
        )
        row = X[rng.integers(0, len(X), len(values))].copy()
        row[:, feature] = values
        rows.append(row)
    return np.concatenate(rows)


def in_each_dtype(X: np.ndarray) -> dict[str, np.ndarray]:
    whole = np.nan_to_num(X, nan=7.0)
    whole = np.where(np.abs(whole) < 2**40, whole, 2**33 + 1)
    return {
        "float64": X,
        "float32": X.astype(np.float32),
        "int64": np.round(whole).astype(np.int64),
        "int32": np.clip(np.round(whole), -(2**31), 2**31 - 1).astype(np.int32),
    }


def leaf_ids(machine, X) -> np.ndarray:
    """XGBoost's own node ids of the exit leaves."""
    return machine.trees.leaf_ids[machine.apply(X) + machine.trees.leaf_start[:-1]]


def ulps(a: np.ndarray, b: np.ndarray) -> int:
    assert a.dtype == b.dtype == np.float32
    assert a.shape == b.shape
    assert np.array_equal(np.isnan(a), np.isnan(b))
    bits = [x[~np.isnan(x)].view(np.int32).astype(np.int64) for x in (a, b)]
    return int(np.abs(bits[0] - bits[1]).max(initial=0))


def assert_same(machine, booster, X) -> None:
    data = xgb.DMatrix(X)
    expected = booster.predict(data, output_margin=True)
    margin = machine.margin(X)
    leaves = booster.predict(data, pred_leaf=True).reshape(len(expected), -1)
    assert np.array_equal(leaf_ids(machine, X), leaves)
    assert margin.dtype == np.float32
    assert np.array_equal(margin, expected.reshape(margin.shape))
    response, answer = booster.predict(data), machine.predict(X)
    assert ulps(answer, response) == 0


CASES = [
    (objective, kind, category)
    for objective in OBJECTIVES
    for kind in KINDS
    for category in CATEGORIES
    if is_possible(objective, kind, category)
]


@pytest.mark.parametrize("has_missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize(("objective", "kind", "category"), CASES)
def test_machine_and_booster_agree_on_every_probe(objective, kind, category, has_missing):
    booster, X = train(objective, kind, category, has_missing)
    machine = read_xgboost(booster)
    for values in in_each_dtype(probes(booster, X)).values():
        assert_same(machine, booster, values)


def test_the_cases_above_hold_what_they_are_named_for():
    def count(field, *case):
        trees = model_of(stored(train(*case)[0]))["trees"]
        return sum(
            int(t["tree_param"][field]) if field in t["tree_param"] else len(t[field])
            for t in trees
        )

    assert count("num_deleted", "reg:squarederror", "pruned", "numeric", True) > 0
    assert count("categories_nodes", "binary:logistic", "depthwise", "onehot", True) > 0
    case = ("binary:logistic", "depthwise", "partition", True)
    assert count("categories", *case) > count("categories_nodes", *case) > 0
    document = stored(train("reg:squarederror", "dart", "numeric", False, 6)[0])
    booster = document["learner"]["gradient_booster"]
    holder = booster if "weight_drop" in booster else model_of(document)
    assert min(holder["weight_drop"]) < 1


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("objective", ["reg:squarederror", "multi:softprob"])
def test_infinities_take_the_same_side(objective, category):
    # A DMatrix refuses infinities, inplace_predict takes them.
    booster, X = train(objective, "depthwise", category, True)
    machine = read_xgboost(booster)
    X = np.repeat(X[:20], X.shape[1] * 2, axis=0)
    at = np.arange(len(X))
    X[at, at % X.shape[1]] = np.where(at // X.shape[1] % 2, np.inf, -np.inf)
    for values in (X, X.astype(np.float32), np.where(np.isposinf(X), 1e300, X)):
        expected = booster.inplace_predict(values, predict_type="margin")
        margin = machine.margin(values)
        assert np.array_equal(margin, expected.reshape(margin.shape))
    with pytest.raises(xgb.core.XGBoostError, match="inf"):
        xgb.DMatrix(X)


def test_a_sum_in_tree_order_is_needed_and_made():
    booster, X = train("reg:squarederror", "depthwise", "numeric", True, rounds=60)
    machine = read_xgboost(booster)
    expected = booster.predict(xgb.DMatrix(X))
    assert np.array_equal(machine.predict(X), expected)
    in_float64 = machine.output.base[0] + sum(
        machine.tree(i).margin(X)[:, 0].astype(np.float64) for i in range(machine.n_trees)
    )
    assert not np.array_equal(in_float64.astype(np.float32), expected)


def test_an_entry_absent_from_a_sparse_row_is_missing():
    booster, X = train("reg:squarederror", "depthwise", "numeric", True)
    machine = read_xgboost(booster)
    dense = np.nan_to_num(X)
    dense[::3] *= 0
    sparse = sp.csr_matrix(dense)
    sparse.data[:5] = 0.0  # stored zeros are zeros
    for layout in (sparse, sparse.tocsc()):
        expected = booster.predict(xgb.DMatrix(layout))
        assert np.array_equal(machine.predict(layout), expected)
    assert not np.array_equal(machine.predict(sparse), machine.predict(sparse.toarray()))


def test_slices_of_a_booster_are_boosters():
    booster, X = train("multi:softprob", "forest", "partition", True, rounds=4)
    for part in (booster[1:3], booster[::2]):
        assert_same(read_xgboost(part), part, X)


# ---------------------------------------------------------------------- base score and links


def xgb_release() -> tuple[int, int]:
    major, minor = xgb.__version__.split(".")[:2]
    return int(major), int(minor)


def with_base(document: dict, text: str) -> dict:
    document = json.loads(json.dumps(document))
    document["learner"]["learner_model_param"]["base_score"] = text
    return document


def loaded(document: dict):
    booster = xgb.Booster({"nthread": 1})
    booster.load_model(bytearray(json.dumps(document).encode()))
    return booster


def read(document: dict):
    return read_xgboost_bytes(json.dumps(document).encode(), "test.json")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_base_scores_become_margins_to_the_bit(objective):
    booster, X = train(objective, "depthwise", "numeric", False, rounds=1)
    document, rng = stored(booster), np.random.default_rng(3)
    k = len(read(document).output)
    for form in ("{}", "[{}]", "list"):
        for score in rng.uniform(0.001, 0.999, 8).astype(np.float32):
            if form == "list":
                text = "[" + ",".join(str(score + np.float32(i) / 1000) for i in range(k)) + "]"
                if k == 1 or not float(score) < 0.99:
                    continue
            else:
                text = form.format(score)
                if "[" in form and k > 1:
                    continue
            edited = with_base(document, text)
            assert_same(read(edited), loaded(edited), X[:3])


HAS_CUDA = xgb.build_info()["USE_CUDA"]
CLAMPS = xgb_release() >= (3, 2)
EDGES = (0, 1, 1e-38, 1e-7, 9.9e-7, 1e-6, 1.1e-6, 2e-6, 1 - 2e-6, 1 - 1e-6, 1 - 1e-7)


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:logistic"])
@pytest.mark.parametrize("score", EDGES)
@pytest.mark.parametrize("rounds", [0, 2])
def test_base_scores_near_0_and_1_are_clamped_where_xgboost_clamps_them(objective, score, rounds):
    if score in (0, 1) and not CLAMPS:
        pytest.skip("this release of XGBoost refuses it")
    X, target, _ = make_data(False, "numeric")
    params = {"objective": objective, "base_score": score, "min_child_weight": 0, "nthread": 1}
    booster = xgb.train(params, xgb.DMatrix(X, target > 1), rounds)
    margin = booster.predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(read_xgboost(booster).margin(X)[:, 0], margin)
    assert np.array_equal(read(stored(booster)).margin(X)[:, 0], margin)


def test_a_release_that_does_not_clamp_is_read_as_it_answers():
    # XGBoost 3.1.3 gives -16.118095 for this base score, 3.2.0 gives -13.81551.
    booster, X = train("binary:logistic", "depthwise", "numeric", False, rounds=1)
    document = with_base(stored(booster), "[1e-7]")
    document["version"] = [3, 1, 3]
    assert read(document).output.base[0] == np.float32(-16.118095)
    back = read(document).to_xgboost()
    margin = back.predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(margin, read(document).margin(X)[:, 0])
    document["version"] = [3, 2, 0]
    assert read(document).output.base[0] == np.float32(-13.81551)
    for text in ("[0]", "[1]"):
        document = with_base(document, text)
        document["version"] = [3, 1, 3]
        with pytest.raises(ModelFormatError, match="not finite"):
            read(document)


def test_a_model_without_trees_of_an_older_release_links_its_guess():
    # XGBoost 3.0.5 answers 0.5 for the probability, 3.1.1 answers 0.62245935.
    X, target, _ = make_data(False, "numeric")
    booster = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(X, target > 1), 0)
    document = with_base(stored(booster), "5E-1")
    for release, base in (([3, 0, 5], 0.0), ([3, 1, 1], 0.5)):
        document["version"] = release
        assert read(document).output.base[0] == base


@pytest.mark.skipif(not CLAMPS, reason="this release of XGBoost refuses it")
@pytest.mark.parametrize("cls", [xgb.XGBClassifier, xgb.XGBRFClassifier])
def test_a_classifier_of_one_class_answers_as_it_does_itself(cls, tmp_path):
    X, _, _ = make_data(False, "numeric")
    model = cls(n_estimators=2, n_jobs=1).fit(X, np.zeros(len(X), int))
    assert_wrapper_same(read_xgboost(model), model, X)
    model.save_model(tmp_path / "model.json")
    again = cls()
    again.load_model(tmp_path / "model.json")
    assert_wrapper_same(read_xgboost_bytes((tmp_path / "model.json").read_bytes()), again, X)


@pytest.mark.skipif(not CLAMPS, reason="this release of XGBoost refuses it")
def test_a_target_that_never_occurs_among_others_is_clamped_alone():
    X, target, _ = make_data(False, "numeric")
    y = np.stack([np.zeros(len(X), int), target > 1], axis=1)
    model = xgb.XGBClassifier(n_estimators=2, n_jobs=1).fit(X, y)
    machine = read_xgboost(model)
    assert np.array_equal(machine.margin(X), model.predict(X, output_margin=True))
    assert np.array_equal(machine.predict(X), model.predict(X))
    # What we write is never clamped, by whichever release reads it.
    back = machine.to_xgboost(margins=False)
    assert np.array_equal(back.predict(X), model.predict(X))


@pytest.mark.parametrize("objective", ["binary:logistic", "count:poisson", "multi:softprob"])
@pytest.mark.parametrize("given", [{}, {"base_score": 0.3}], ids=["estimated", "given"])
def test_a_model_without_trees_answers_its_base_score(objective, given):
    X, score, _ = make_data(False, "numeric")
    params = {"objective": objective, "nthread": 1, **given}
    if objective.startswith("multi"):
        params["num_class"] = 3
    booster = xgb.train(params, xgb.DMatrix(X, (score > 1).astype(int)), 0)
    machine, data = read_xgboost(booster), xgb.DMatrix(X)
    assert machine.n_trees == 0
    margin = booster.predict(data, output_margin=True)
    assert np.array_equal(machine.margin(X), margin.reshape(len(X), -1))
    assert ulps(machine.predict(X), booster.predict(data)) == 0


@pytest.mark.parametrize(
    ("objective", "link"),
    [
        ("binary:logistic", "xgboost_sigmoid"),
        ("count:poisson", "xgboost_exp"),
        ("multi:softprob", "xgboost_softmax"),
        ("survival:aft", "xgboost_exp" if HAS_CUDA else "xgboost_rounded_exp"),
        ("binary:hinge", "xgboost_step"),
    ],
)
def test_links_are_those_of_xgboost_to_the_bit(objective, link):
    rng = np.random.default_rng(0)
    k = 3 if objective == "multi:softprob" else 1
    margin = np.concatenate([rng.normal(size=(20_000, k)) * scale for scale in (1, 10, 60)])
    if k == 1:
        margin[:8, 0] = [0, -0.0, 88.7, 89, -88.8, -104, 1e-30, 200]
    rows = np.zeros((20, 1))
    params = {"objective": objective, "nthread": 1, "min_child_weight": 1e9}
    if k > 1:
        params["num_class"] = k
    train_data = xgb.DMatrix(rows, np.arange(20) % max(k, 2))
    train_data.set_float_info("label_lower_bound", np.ones(20))
    train_data.set_float_info("label_upper_bound", np.ones(20))
    booster = xgb.train(params, train_data, 1)
    data = xgb.DMatrix(np.zeros((len(margin), 1)), base_margin=margin)
    # The one leaf of the one tree is 0, so the base margin is all there is.
    margin = booster.predict(data, output_margin=True).reshape(-1, k)
    expected = booster.predict(data).reshape(-1, k)
    found = LINKS[link](margin)
    assert ulps(found, expected) == 0
    assert read_xgboost(booster).output.link == link


@pytest.mark.parametrize(("has_cuda", "link"), [(True, "exp"), (False, "rounded_exp")])
def test_lifetimes_are_exponentiated_as_by_the_build_that_is_here(has_cuda, link, monkeypatch):
    data = xgb.DMatrix(np.arange(20.0)[:, None])
    data.set_float_info("label_lower_bound", np.ones(20))
    data.set_float_info("label_upper_bound", np.ones(20))
    booster = xgb.train({"objective": "survival:aft", "nthread": 1}, data, 1)
    monkeypatch.setattr(xgb, "build_info", lambda: {"USE_CUDA": has_cuda})
    assert read_xgboost(booster).output.link == f"xgboost_{link}"
    assert read(stored(booster)).output.link == "xgboost_rounded_exp"


# ---------------------------------------------------------------------- wrappers


def fitted(cls, y, X=None, **params):
    if X is None:
        X = make_data(True, "numeric")[0]
    fit = {"group": [N_ROWS // 2] * 2} if cls is xgb.XGBRanker else {}
    return cls(n_estimators=4, max_depth=3, n_jobs=1, **params).fit(X, y, **fit), X


def answers(kind: str) -> np.ndarray:
    score = make_data(True, "numeric")[1]
    return {
        "number": score,
        "positive": np.exp(score / 3),
        "binary": (score > 0).astype(int),
        "three": np.digitize(score, [0, 1]),
        "labels": np.stack([score > 0, score > 1, score < 2], axis=1).astype(int),
        "numbers": np.stack([score, -score], axis=1),
        "grade": np.digitize(score, [0, 1]),
    }[kind]


WRAPPED = [
    (xgb.XGBRegressor, "number", {}),
    (xgb.XGBRegressor, "numbers", {}),
    (xgb.XGBRegressor, "numbers", {"multi_strategy": "multi_output_tree"}),
    (xgb.XGBRegressor, "number", {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]}),
    (xgb.XGBRegressor, "positive", {"objective": "reg:gamma"}),
    (xgb.XGBRegressor, "number", {"booster": "dart", "rate_drop": 0.5, "base_score": 1.234}),
    (xgb.XGBRFRegressor, "number", {}),
    (xgb.XGBRanker, "grade", {}),
    (xgb.XGBClassifier, "binary", {}),
    (xgb.XGBClassifier, "binary", {"objective": "binary:hinge"}),
    (xgb.XGBClassifier, "binary", {"objective": "binary:logitraw"}),
    (xgb.XGBClassifier, "binary", {"objective": "reg:squarederror"}),
    (xgb.XGBClassifier, "binary", {"objective": "multi:softprob", "num_class": 2}),
    (xgb.XGBClassifier, "binary", {"objective": "multi:softmax", "num_class": 2}),
    (xgb.XGBClassifier, "three", {}),
    (xgb.XGBClassifier, "three", {"objective": "multi:softmax"}),
    (xgb.XGBClassifier, "three", {"multi_strategy": "multi_output_tree"}),
    (xgb.XGBClassifier, "three", {"booster": "dart", "rate_drop": 0.5}),
    (xgb.XGBClassifier, "labels", {}),
    (xgb.XGBRFClassifier, "three", {}),
]


def assert_wrapper_same(machine, model, X) -> None:
    margin = model.predict(X, output_margin=True)
    assert np.array_equal(machine.margin(X), margin.reshape(len(X), -1))
    expected, found = model.predict(X), machine.predict(X)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if hasattr(model, "n_classes_"):
        assert np.array_equal(found, expected)
        assert ulps(machine.predict_proba(X), np.ascontiguousarray(model.predict_proba(X))) == 0
    else:
        assert ulps(found, expected) == 0


@pytest.mark.parametrize(("cls", "kind", "params"), WRAPPED)
def test_wrappers_answer_as_they_do_themselves(cls, kind, params):
    model, X = fitted(cls, answers(kind), **params)
    machine = read_xgboost(model)
    rows = probes(model.get_booster(), X)
    for values in in_each_dtype(rows).values():
        assert_wrapper_same(machine, model, values)
    assert np.array_equal(leaf_ids(machine, X), model.apply(X).reshape(len(X), -1))


@pytest.mark.parametrize(("cls", "kind", "params"), WRAPPED)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_a_file_saved_by_a_wrapper_is_that_wrapper(cls, kind, params, suffix, tmp_path):
    model, X = fitted(cls, answers(kind), **params)
    path = tmp_path / f"model.{suffix}"
    model.save_model(path)
    again = cls(n_jobs=1)
    again.load_model(path)
    assert_wrapper_same(read_xgboost_bytes(path.read_bytes(), "m"), again, X)


@pytest.mark.parametrize(
    ("cls", "kind"), [(xgb.XGBRegressor, "numbers"), (xgb.XGBClassifier, "three")]
)
def test_dropped_trees_with_vector_leaves(cls, kind, tmp_path):
    if RELEASE < (3, 3):
        pytest.skip(f"XGBoost {xgb.__version__} does not have DART with vector leaves")
    params = {"booster": "dart", "rate_drop": 0.5, "multi_strategy": "multi_output_tree"}
    model, X = fitted(cls, answers(kind), **params)
    document = stored(model.get_booster())
    booster = document["learner"]["gradient_booster"]
    holder = booster if "weight_drop" in booster else model_of(document)
    assert min(holder["weight_drop"]) < 1
    machine = read_xgboost(model)
    for values in in_each_dtype(probes(model.get_booster(), X)).values():
        assert_wrapper_same(machine, model, values)
    path = tmp_path / "model.ubj"
    model.save_model(path)
    assert read_xgboost_bytes(path.read_bytes(), "m").equals(machine)


@pytest.mark.parametrize("missing", [-999.0, 0.0, 0.1, np.inf])
def test_the_missing_value_of_a_wrapper_is_missing(missing):
    X = make_data(True, "numeric")[0]
    X = np.where(np.isnan(X), missing, X)
    X[::7, 1] = np.nan  # besides, NaN always is
    model, X = fitted(xgb.XGBRegressor, answers("number"), X, missing=missing)
    machine = read_xgboost(model)
    for values in (X, X.astype(np.float32), sp.csr_matrix(X)):
        assert np.array_equal(machine.predict(values), model.predict(values))
    if np.isfinite(missing):
        whole = np.round(np.nan_to_num(X)).astype(int)
        assert np.array_equal(machine.predict(whole), model.predict(whole))
    bare = read_xgboost(model.get_booster())
    assert not np.array_equal(bare.predict(X), machine.predict(X))


@pytest.mark.parametrize("params", [{}, {"num_parallel_tree": 2}, {"objective": "multi:softprob"}])
def test_a_wrapper_stops_at_its_best_iteration_and_a_booster_does_not(params, tmp_path):
    rng = np.random.default_rng(0)
    X = make_data(True, "numeric")[0]
    is_multi = "objective" in params
    cls = xgb.XGBClassifier if is_multi else xgb.XGBRegressor
    y = answers("three" if is_multi else "number")
    model = cls(n_estimators=40, max_depth=3, n_jobs=1, early_stopping_rounds=3, **params)
    model.fit(X, y, eval_set=[(X, rng.permutation(y))], verbose=False)
    booster = model.get_booster()
    assert model.best_iteration + 1 < booster.num_boosted_rounds()
    wrapped, bare = read_xgboost(model), read_xgboost(booster)
    assert wrapped.n_trees < bare.n_trees
    assert_wrapper_same(wrapped, model, X)
    assert_same(bare, booster, X)
    path = tmp_path / "model.ubj"
    model.save_model(path)
    assert read_xgboost_bytes(path.read_bytes(), "m").equals(wrapped)
    booster.save_model(path)
    assert read_xgboost_bytes(path.read_bytes(), "m").equals(bare)
    document = stored(booster)
    del model_of(document)["iteration_indptr"]  # as files before 2.0 are
    document["learner"]["attributes"]["scikit_learn"] = json.dumps(
        {"_estimator_type": "classifier" if is_multi else "regressor"}
    )
    assert read(document).equals(wrapped)


# ---------------------------------------------------------------------- tables and categories


def table(n: int = 200):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    letters, numbers = rng.choice(list("uvwxyz"), n), rng.choice([10, 20, 35], n)
    a = rng.normal(size=n)
    y = a + (letters == "y") * 2 - (letters == "w") + (numbers == 20) * 1.5
    frame = pd.DataFrame({"a": a, "b": pd.Categorical(letters), "c": pd.Categorical(numbers)})
    params = {"n_estimators": 5, "max_depth": 4, "enable_categorical": True, "n_jobs": 1}
    return pd, frame, xgb.XGBRegressor(**params, max_cat_to_onehot=2).fit(frame, y)


def test_labels_of_a_table_find_their_codes_in_any_order():
    pd, frame, model = table()
    machine = read_xgboost(model)
    assert machine.columns.names == ("a", "b", "c")
    assert np.array_equal(machine.predict(frame), model.predict(frame))
    other = frame.assign(b=pd.Categorical(frame.b.astype(str), categories=list("zyxwvu")))
    assert not np.array_equal(other.b.cat.codes, frame.b.cat.codes)
    assert np.array_equal(machine.predict(other), model.predict(other))
    codes = np.column_stack([frame.a, frame.b.cat.codes, frame.c.cat.codes])
    assert np.array_equal(machine.predict(codes), model.predict(frame))
    polars = pytest.importorskip("polars")
    also = polars.DataFrame(
        {
            "c": frame.c.astype(int).to_numpy(),
            "a": frame.a.to_numpy(),
            "b": polars.Series(frame.b.astype(str).to_list(), dtype=polars.Categorical),
        }
    )
    assert np.array_equal(machine.predict(also), model.predict(frame))


def test_no_label_is_missing():
    _, frame, model = table()
    none = frame.assign(b=frame.b.where(frame.index % 3 > 0))
    assert np.array_equal(read_xgboost(model).predict(none), model.predict(none))


def test_a_label_that_the_model_was_not_trained_with_is_refused():
    # XGBoost refuses it too, but takes one that sorts before all others for the first of them.
    pd, frame, model = table()
    machine = read_xgboost(model)
    new = frame.assign(b=pd.Categorical(np.where(frame.index % 3 == 0, "zzz", frame.b)))
    with pytest.raises(xgb.core.XGBoostError, match="not in the training set"):
        model.predict(new)
    for label in ("zzz", "NEW"):
        new = frame.assign(b=pd.Categorical(np.where(frame.index % 3 == 0, label, frame.b)))
        with pytest.raises(InputError, match=f"column 'b' holds '{label}'"):
            machine.predict(new)
    codes = frame.assign(b=frame.b.cat.codes)
    with pytest.raises(xgb.core.XGBoostError):
        model.predict(codes)
    with pytest.raises(InputError, match="column 'b' holds"):
        machine.predict(codes)


def test_labels_beyond_ascii_are_trusted_where_the_release_keeps_them():
    # Before 3.4 they are cut at the wrong bytes: 'éa' and 'b' are stored as 'é' and 'a'.
    pd, frame, _ = table()
    frame = pd.DataFrame({"q": pd.Categorical(np.where(frame.b == "y", "éa", "b"))})
    model = xgb.XGBRegressor(n_estimators=2, enable_categorical=True, n_jobs=1)
    model.fit(frame, frame.q.cat.codes)
    machine = read_xgboost(model)
    if RELEASE >= (3, 4):
        assert np.array_equal(machine.predict(frame), model.predict(frame))
        return
    assert np.array_equal(
        machine.predict(frame.q.cat.codes.to_numpy()[:, None]), model.predict(frame)
    )
    with pytest.raises(InputError, match="knows no categories"):
        machine.predict(frame)


def test_feature_names_match_tables_by_name():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(make_data(True, "numeric")[0], columns=["p", "q", "r", "s"])
    model, _ = fitted(xgb.XGBRegressor, answers("number"), X)
    machine = read_xgboost(model)
    assert np.array_equal(machine.predict(X[["s", "q", "p", "r"]]), model.predict(X))
    with pytest.raises(InputError, match="missing 's'"):
        machine.predict(X[["p", "q", "r"]])


# ---------------------------------------------------------------------- files, old and odd


@pytest.mark.parametrize("kind", KINDS)
def test_objects_json_and_ubjson_make_one_machine(kind):
    booster, _ = train("multi:softprob", kind, "numeric", True)
    machine = read_xgboost(booster)
    for form in ("json", "ubj"):
        raw = bytes(booster.save_raw(form))
        assert looks_like_xgboost(raw)
        assert read_xgboost_bytes(raw, "m").equals(machine)
    text = json.dumps(stored(booster), indent=2)
    assert looks_like_xgboost(text.encode())
    assert read_xgboost_bytes(text, "m").equals(machine)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"{}", b"tree\nversion=v4", b"CBM1", b"\x08\x08\x12", b'{"oblivious_trees":[]}'],
)
def test_other_files_do_not_look_like_xgboost(data):
    assert not looks_like_xgboost(data)


def test_files_of_older_versions_are_read():
    booster, X = train("binary:logistic", "forest", "numeric", True)
    document = stored(booster)
    document["version"] = [1, 2, 0]
    param = document["learner"]["learner_model_param"]
    param["base_score"] = param["base_score"].strip("[]")
    del param["boost_from_average"], param["num_target"]
    del model_of(document)["cats"], model_of(document)["iteration_indptr"]
    for tree in model_of(document)["trees"]:
        tree["tree_param"]["size_leaf_vector"] = "0"
        tree["default_left"] = [bool(d) for d in tree["default_left"]]
        for key in [key for key in tree if key.startswith("categories")] + ["split_type"]:
            del tree[key]
    assert_same(read(document), loaded(stored(booster)), X)
    # Since 3.2 vector leaves have a store of their own; before, they were the nodes' weights.
    booster, X = train("reg:squarederror", "vector", "numeric", True)
    document = stored(booster)
    for tree in model_of(document)["trees"]:
        weights = np.array(tree.pop("leaf_weights")).reshape(-1, 3)
        nodes = np.array(tree["base_weights"]).reshape(-1, 3)
        is_leaf = np.array(tree["left_children"]) < 0
        nodes[is_leaf] = weights[np.array(tree["right_children"])[is_leaf]]
        tree["base_weights"] = nodes.ravel().tolist()
        tree["right_children"] = np.where(is_leaf, -1, tree["right_children"]).tolist()
    assert_same(read(document), booster, X)


def test_trees_are_summed_in_the_order_of_their_ids():
    booster, X = train("reg:squarederror", "depthwise", "numeric", True)
    document = stored(booster)
    model_of(document)["trees"].reverse()
    assert_same(read(document), booster, X)


def test_boosters_without_trees_or_training_are_refused():
    X, score, _ = make_data(False, "numeric")
    linear = xgb.train({"booster": "gblinear", "nthread": 1}, xgb.DMatrix(X, score), 1)
    with pytest.raises(UnsupportedModelError, match="gblinear"):
        read_xgboost(linear)
    with pytest.raises(InputError, match="train it first"):
        read_xgboost(xgb.Booster())
    with pytest.raises(InputError, match="call fit first"):
        read_xgboost(xgb.XGBRegressor())
    with pytest.raises(UnsupportedModelError, match="neither"):
        read_xgboost(xgb.DMatrix(X))


def edit(change) -> dict:
    document = stored(train("binary:logistic", "depthwise", "partition", True)[0])
    change(document, model_of(document)["trees"])
    return document


def put(key: str, at: int, value):
    return lambda document, trees: trees[1][key].__setitem__(at, value)


def put_threshold(value):
    """Change the first numeric threshold of the model."""

    def change(document, trees):
        for tree in trees:
            for node, kind in enumerate(tree["split_type"]):
                if kind == 0 and tree["left_children"][node] != -1:
                    tree["split_conditions"][node] = value
                    return
        raise AssertionError("no numeric test in the model")

    return change


def param(key: str, value: str):
    return lambda document, trees: document["learner"]["learner_model_param"].update({key: value})


FAULTS = {
    "objective": lambda document, trees: document["learner"]["objective"].update(name="my:own"),
    "right_children": lambda document, trees: (
        put("left_children", 0, 2)(document, trees),
        put("right_children", 0, 1)(document, trees),
    ),
    "NaN for a threshold": put_threshold(float("nan")),
    "splits at -inf": put_threshold(-float("inf")),
    "leaf value": put("split_conditions", -1, float("inf")),
    "split_indices": put("split_indices", 0, 4),
    "reached twice": put("left_children", 1, 1),
    "does not exist": put("left_children", 1, 1000),
    "split_type": put("split_type", 0, 2),
    "category set": lambda document, trees: [
        tree["categories_sizes"].__setitem__(0, 99) for tree in trees
    ],
    "below 0": lambda document, trees: [tree["categories"].__setitem__(0, -1) for tree in trees],
    "not 0 or 1": put("default_left", 0, 2),
    "default_left": lambda document, trees: trees[0]["default_left"].pop(),
    "64 bits": put("left_children", 0, 2**70),
    "something other than": put("split_conditions", 0, "0.5"),
    "ids": lambda document, trees: trees[0].update(id=1),
    "num_trees": lambda document, trees: model_of(document)["gbtree_model_param"].update(
        num_trees="9"
    ),
    "iteration_indptr": lambda document, trees: model_of(document).update(iteration_indptr=[0, 1]),
    "tree_info": lambda document, trees: model_of(document).update(tree_info=[0, 0, 1]),
    "outputs": param("num_class", "1000000000"),
    "num_feature": param("num_feature", "4000000000"),
    "not finite": param("base_score", "[1.5]"),
    "not numbers": param("base_score", "[0.5x]"),
    "2 values": param("base_score", "[0.5,0.5]"),
    "feature_names": lambda document, trees: document["learner"].update(feature_names=["a"]),
    "size_leaf_vector": lambda document, trees: trees[0]["tree_param"].update(
        size_leaf_vector="-3"
    ),
    "learner is missing": lambda document, trees: document.pop("learner"),
    "has no nodes": lambda document, trees: [
        value.clear() for value in trees[2].values() if isinstance(value, list)
    ],
}


def levels(value, path=()):
    """The objects of a document, all of those in lists included, each with its path."""
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from levels(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from levels(inner, (*path, i))


DOCUMENTS = {
    "plain": ("reg:squarederror", "depthwise", "numeric", True),
    "categories": ("binary:logistic", "depthwise", "partition", True),
    "dart": ("reg:squarederror", "dart", "numeric", False, 6),
    "classes": ("multi:softprob", "depthwise", "numeric", False),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_an_unknown_field_at_any_level_is_refused_by_its_name(kind):
    document = stored(train(*DOCUMENTS[kind])[0])
    places = [path for path, _ in levels(document)]
    assert len(places) > 8
    for place in places:
        if "attributes" in place or ("objective" in place and place[-1] != "objective"):
            continue  # users' own, and settings of training
        changed = copy.deepcopy(document)
        level = changed
        for key in place:
            level = level[key]
        level["gate"] = 1
        with pytest.raises(UnsupportedModelError, match="gate is a field"):
            read(changed)


@pytest.mark.parametrize("found", FAULTS)
def test_what_would_change_an_answer_is_named_when_refused(found):
    with pytest.raises((ModelFormatError, UnsupportedModelError), match=found):
        read(edit(FAULTS[found]))


def test_a_feature_count_too_large_for_memory_costs_none():
    document = edit(param("num_feature", str(2**31 - 1)))
    machine = read(document)
    assert machine.n_features == 2**31 - 1
    assert len(machine.columns) < 100


SEVERAL = [
    ("reg:quantileerror", "quantile_alpha", (2, 0)),
    ("reg:expectileerror", "expectile_alpha", (3, 3)),
]


@pytest.mark.parametrize("levels", [[0.5], [0.45, 0.5, 0.55], [0.1, 0.5, 0.9]], ids=str)
@pytest.mark.parametrize(("objective", "key", "since"), SEVERAL, ids=[row[0] for row in SEVERAL])
@pytest.mark.parametrize("eta", [0.3, 2.0])
def test_several_quantiles_or_expectiles_are_those_of_the_release(
    objective, key, since, levels, eta
):
    if since > RELEASE:
        pytest.skip(f"XGBoost {xgb.__version__} does not have {objective}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = 3 * rng.normal(size=300)
    params = {"objective": objective, key: levels, "max_depth": 4, "eta": eta, "nthread": 1}
    booster = xgb.train(params, xgb.DMatrix(X, y), 5)
    machine = read_xgboost(booster)
    margin = booster.predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(machine.margin(X).reshape(margin.shape), margin)
    assert np.array_equal(machine.predict(X), booster.predict(xgb.DMatrix(X)))
