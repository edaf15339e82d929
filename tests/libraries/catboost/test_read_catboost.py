"""CatBoost: the machine answers as CatBoost does, leaf by leaf and bit by bit."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catboost import (
    CatBoost,
    CatBoostClassifier,
    CatBoostError,
    CatBoostRanker,
    CatBoostRegressor,
    Pool,
    sum_models,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import decision_machines as dm
from decision_machines.libraries.catboost.objectives import CLASSIFICATION
from decision_machines.libraries.catboost.read import (
    looks_like_catboost,
    read_catboost,
    read_catboost_bytes,
)
from decision_machines.machine.label_hash import label_hash

SMALL = {
    "iterations": 11,
    "depth": 4,
    "learning_rate": 0.5,
    "thread_count": 1,
    "verbose": 0,
    "allow_writing_files": False,
    "random_seed": 0,
}
POLICIES = ("SymmetricTree", "Lossguide", "Depthwise")
rng = np.random.default_rng(0)
X = rng.normal(size=(301, 5)).astype(np.float32)
X[rng.random(X.shape) < 0.1] = np.nan
X[:, 0] = np.nan_to_num(X[:, 0])
FILLED = np.nan_to_num(X)
y = FILLED[:, 0] * 2 + FILLED[:, 1] ** 2 + np.isnan(X[:, 2])
COUNTS = np.floor(np.abs(y))
CLASSES = np.digitize(y, [0, 1, 2, 3])


def own_leaves(machine, X):
    """Exit leaves by the numbers that CatBoost gives them."""
    return machine.trees.leaf_ids[machine.trees.leaf_start[:-1] + machine.apply(X)]


def raw(model, X):
    if isinstance(model, CatBoostRanker):
        return model.predict(X)
    return model.predict(X, prediction_type="RawFormulaVal")


def probes(machine):
    """Rows with each feature at, just below and just above each of its thresholds, and oddities."""
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 1e-45, 2.0**24 + 1, 3.4e38, -3.4e38]
    rows = []
    for feature in range(machine.n_features):
        t = np.unique(machine.t[machine.selection == feature]).astype(np.float32)
        with np.errstate(over="ignore"):
            beside = [np.nextafter(t, np.float32(side)) for side in (-np.inf, np.inf)]
        around = np.concatenate([t, *beside]).astype(np.float64)
        # float64 values that round to a float32 threshold, from either side
        between = np.concatenate([np.nextafter(t.astype(float), s) for s in (-np.inf, np.inf)])
        for value in np.concatenate([around, between, odd]):
            row = FILLED[len(rows) % len(FILLED)].astype(np.float64)
            row[feature] = value
            rows.append(row)
    return np.array(rows)


def read_all_ways(model, tmp_path, **json_options):
    model.save_model(str(tmp_path / "m.cbm"))
    model.save_model(str(tmp_path / "m.json"), format="json", **json_options)
    return {
        "object": dm.convert(model),
        "cbm": read_catboost_bytes((tmp_path / "m.cbm").read_bytes(), "m.cbm"),
        "json": read_catboost_bytes((tmp_path / "m.json").read_bytes(), "m.json"),
    }


def assert_same(model, machine, X, leaves=True):
    margin = machine.margin(X)
    assert np.array_equal(margin, raw(model, X).reshape(margin.shape))
    if leaves:
        assert np.array_equal(own_leaves(machine, X), model.calc_leaf_indexes(X))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
@pytest.mark.parametrize("loss", ["RMSE", "MultiClass"])
def test_every_tree_shape_and_nan_mode_is_read_to_the_bit(policy, nan_mode, loss, tmp_path):
    target = y if loss == "RMSE" else CLASSES
    params = {**SMALL, "loss_function": loss, "grow_policy": policy, "nan_mode": nan_mode}
    model = CatBoost(params).fit(X, target)
    machines = read_all_ways(model, tmp_path)
    P = probes(machines["object"])
    for way, machine in machines.items():
        # JSON does not keep the numbers of leaves in trees that are not symmetric.
        for rows in (X, P, P.astype(np.float32), P[:1], P[:3]):
            assert_same(model, machine, rows, leaves=way != "json" or policy == "SymmetricTree")


@pytest.mark.parametrize("policy", ["Lossguide", "Depthwise"])
def test_json_leaves_are_numbered_as_catboost_numbers_them_on_reading_json(policy, tmp_path):
    model = CatBoostRegressor(grow_policy=policy, **SMALL).fit(X, y)
    machine = read_all_ways(model, tmp_path)["json"]
    again = CatBoostRegressor().load_model(str(tmp_path / "m.json"), format="json")
    assert np.array_equal(own_leaves(machine, X), again.calc_leaf_indexes(X))


def test_all_tests_of_a_level_of_a_symmetric_tree_are_equal_and_leaves_keep_their_numbers():
    machine = dm.convert(CatBoostRegressor(**SMALL).fit(X, y))
    for i in range(machine.n_trees):
        tests = machine.trees.tests(i)
        for level in np.unique(machine.structure.depth[tests]):
            at = np.flatnonzero(machine.structure.depth[tests] == level) + tests.start
            assert len({(machine.selection[j], machine.t[j], machine.missing[j]) for j in at}) == 1
        leaf_ids = machine.trees.leaf_ids[machine.trees.leaves(i)]
        assert np.array_equal(leaf_ids, np.arange(len(leaf_ids)))


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 127, 128, 129, 301])
def test_predictions_do_not_depend_on_the_number_of_rows(n_rows):
    model = CatBoostRegressor(**SMALL | {"iterations": 30}).fit(X, y)
    assert np.array_equal(dm.convert(model).predict(X[:n_rows]), model.predict(X[:n_rows]))


def test_scale_comes_after_the_sum_and_bias_last(tmp_path):
    model = CatBoostRegressor(**SMALL).fit(X, y)
    model.set_scale_and_bias(1.7, 0.3)
    for machine in read_all_ways(model, tmp_path).values():
        assert_same(model, machine, X)
    model = CatBoostClassifier(loss_function="MultiClass", **SMALL).fit(X, CLASSES)
    model.set_scale_and_bias(0.3, [0.1, 0.2, 0.3, 0.4, 0.5])
    for machine in read_all_ways(model, tmp_path).values():
        assert_same(model, machine, X)


REGRESSIONS = [
    "RMSE", "MAE", "Quantile:alpha=0.3", "MAPE", "LogCosh", "Huber:delta=1", "Lq:q=3",
    "Expectile:alpha=0.3", "Poisson", "Tweedie:variance_power=1.5", "RMSEWithUncertainty",
    "MultiQuantile:alpha=0.1,0.5,0.9", "MultiRMSE", "SurvivalAft", "Cox",
]  # fmt: skip


@pytest.mark.parametrize("loss", REGRESSIONS)
def test_regressors_predict_the_response_of_their_loss(loss, tmp_path):
    target = {
        "MultiRMSE": np.stack([y, y**2], axis=1),
        "SurvivalAft": np.stack([COUNTS + 0.1, COUNTS + 1.0], axis=1),
    }.get(loss, COUNTS + 0.1)
    model = CatBoostRegressor(loss_function=loss, **SMALL).fit(X, target)
    for machine in read_all_ways(model, tmp_path).values():
        assert_same(model, machine, X)
        assert np.array_equal(machine.predict(X), model.predict(X))
        with pytest.raises(dm.InputError, match="no classes"):
            machine.predict_proba(X)


@pytest.mark.parametrize("loss", ["YetiRank", "QueryRMSE", "PairLogit", "QuerySoftMax"])
def test_rankers_predict_scores(loss, tmp_path):
    group = np.arange(len(X)) // 7
    model = CatBoostRanker(loss_function=loss, **SMALL).fit(X, COUNTS.clip(0, 4), group_id=group)
    for machine in read_all_ways(model, tmp_path).values():
        assert_same(model, machine, X)
        assert np.array_equal(machine.predict(X), model.predict(X))


LABELS = {
    "text": np.array(["no", "yes", "perhaps", "né", "x"]),
    "integers": np.array([-3, 7, 8, 100, 2]),
    "floats": np.array([0.5, 7.0, -2.25, 3.0, 9.5]),
    "booleans": np.array([False, True]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("loss", ["Logloss", "MultiClass", "MultiClassOneVsAll"])
def test_classifiers_give_labels_and_probabilities_to_the_bit(kind, loss, tmp_path):
    labels = LABELS[kind][:2] if loss == "Logloss" else LABELS[kind]
    target = labels[CLASSES % len(labels)]
    model = CatBoostClassifier(loss_function=loss, **SMALL).fit(X, target)
    for machine in read_all_ways(model, tmp_path).values():
        assert_same(model, machine, X)
        found, right = machine.predict(X), model.predict(X)
        assert found.shape == right.shape
        assert found.dtype.kind == ("U" if kind == "text" else right.dtype.kind)
        assert np.array_equal(found, right)
        assert np.array_equal(machine.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("n_classes", [3, 4, 5, 7, 8, 9])
def test_softmax_is_catboosts_own_for_any_number_of_classes(n_classes):
    target = np.digitize(y, np.linspace(-2, 4, n_classes - 1))
    params = SMALL | {"iterations": 60, "learning_rate": 1.0}
    model = CatBoostClassifier(loss_function="MultiClass", **params).fit(X, target)
    assert np.array_equal(dm.convert(model).predict_proba(X), model.predict_proba(X))


def test_cross_entropy_is_a_classification(tmp_path):
    model = CatBoostClassifier(loss_function="CrossEntropy", **SMALL).fit(X, (y > 1) * 1.0)
    for machine in read_all_ways(model, tmp_path).values():
        assert np.array_equal(machine.predict(X), model.predict(X))
        assert np.array_equal(machine.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("loss", ["MultiLogloss", "MultiCrossEntropy"])
def test_several_labels_at_once_are_questions_of_their_own(loss, tmp_path):
    target = np.stack([y > 1, y > 2, FILLED[:, 3] > 0], axis=1) * 1
    model = CatBoostClassifier(loss_function=loss, **SMALL).fit(X, target)
    for machine in read_all_ways(model, tmp_path).values():
        assert_same(model, machine, X)
        assert np.array_equal(machine.predict(X), model.predict(X))
        assert np.array_equal(machine.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"classes_count": 7}, np.array([1, 3])),
        ({"class_names": ["x", "y", "z"]}, np.array(["x", "z"])),
        ({"class_names": [5, 1, 3]}, np.array([1, 3, 5])),
    ],
)
@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
def test_classes_that_training_lacked_keep_their_place(options, labels, loss, tmp_path):
    target = labels[CLASSES % len(labels)]
    model = CatBoostClassifier(loss_function=loss, **options, **SMALL).fit(X, target)
    for machine in read_all_ways(model, tmp_path).values():
        assert_same(model, machine, X)
        assert np.array_equal(machine.output.classes[0], model.classes_)
        assert np.array_equal(machine.predict(X), model.predict(X))
        assert np.array_equal(machine.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.123456789, 0.999])
def test_the_probability_threshold_moves_the_decision(p, tmp_path):
    model = CatBoostClassifier(**SMALL).fit(X, y > 1)
    model.set_probability_threshold(p)
    for machine in read_all_ways(model, tmp_path).values():
        assert np.array_equal(machine.predict(X), model.predict(X))


def test_the_class_catboost_predicts_margins_whatever_the_loss(tmp_path):
    model = CatBoost({**SMALL, "loss_function": "Logloss"}).fit(X, y > 1)
    machine = dm.convert(model)
    assert np.array_equal(machine.predict(X), model.predict(X))
    as_classifier = CatBoostClassifier(**SMALL).fit(X, y > 1)
    assert np.array_equal(machine.predict_proba(X), as_classifier.predict_proba(X))
    # A file is read as the class that fits its loss.
    in_file = read_all_ways(model, tmp_path)["cbm"]
    assert np.array_equal(in_file.predict(X), as_classifier.predict(X))


def test_we_know_every_classification_loss_that_catboost_knows():
    from catboost.core import is_classification_objective

    assert all(is_classification_objective(loss) for loss in CLASSIFICATION)
    others = ("Lq", "Poisson", "YetiRank", "PairLogit", "QueryCrossEntropy", "Cox", "GroupQuantile")
    assert not any(is_classification_objective(loss) for loss in others)


def test_a_best_model_and_a_shrunken_model_keep_the_trees_they_kept():
    model = CatBoostRegressor(**SMALL | {"iterations": 60, "learning_rate": 1.0})
    model.fit(X[::2], y[::2], eval_set=(X[1::2], y[1::2]), use_best_model=True)
    assert dm.convert(model).n_trees == model.tree_count_ < 60
    assert_same(model, dm.convert(model), X)
    model.shrink(3)
    assert_same(model, dm.convert(model), X)


@pytest.mark.parametrize("policy", POLICIES)
def test_sums_of_models_and_trees_of_one_leaf(policy, tmp_path):
    model = CatBoostRegressor(grow_policy=policy, **SMALL).fit(X, y)
    both = sum_models([model, model], weights=[0.5, 0.7])
    for machine in read_all_ways(both, tmp_path).values():
        assert_same(both, machine, X, leaves=False)
    flat = CatBoostRegressor(grow_policy=policy, **SMALL | {"depth": 1, "iterations": 3})
    flat.fit(np.zeros((20, 2)) + np.arange(20)[:, None] // 10, np.arange(20) % 2)
    for machine in read_all_ways(flat, tmp_path).values():
        assert_same(flat, machine, np.eye(2), leaves=False)


def test_unused_features_keep_their_columns(tmp_path):
    data = np.column_stack([X, np.ones(len(X))])
    model = CatBoostRegressor(ignored_features=[1, 3], **SMALL).fit(data, y)
    for machine in read_all_ways(model, tmp_path).values():
        assert machine.n_features == 6
        assert_same(model, machine, data)


def test_a_table_is_matched_by_name_and_integers_go_straight_to_float32(tmp_path):
    whole = np.nan_to_num(X * 1e9).astype(np.int64)
    names = ["b", "a", "width of it", "é", "e"]
    table = pd.DataFrame(whole, columns=names)
    model = CatBoostRegressor(**SMALL).fit(table, y)
    for machine in read_all_ways(model, tmp_path).values():
        assert machine.columns.names == tuple(names)
        assert np.array_equal(machine.predict(table[names[::-1]]), model.predict(table))
        assert np.array_equal(machine.predict(pl.from_pandas(table)), model.predict(table))
        assert np.array_equal(machine.predict(whole), model.predict(whole))


# ---------------------------------------------------------------------- categories


def categorical_table(n=300):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "integer": rng.integers(-2, 3, n),
            "text": rng.choice(["x", "yy", "üüü", "a label of more than sixteen bytes"], n),
            "flag": rng.random(n) < 0.5,
            "category": pd.Categorical(rng.choice(["u", "v", ""], n)),
            "codes": pd.Categorical(rng.integers(0, 3, n)),
        }
    )
    target = (
        table["number"]
        + table["integer"] * 2
        + (table["text"] == "x") * 3
        + (table["text"] == "yy")
        + table["flag"] * 2
        + (table["category"] == "u") * 3
        + (table["codes"] == 1)
    )
    return table, target.to_numpy(float), ["integer", "text", "flag", "category", "codes"]


@pytest.fixture(scope="module", params=POLICIES)
def one_hot(request):
    table, target, cats = categorical_table()
    params = SMALL | {"iterations": 40, "grow_policy": request.param}
    model = CatBoostRegressor(cat_features=cats, one_hot_max_size=10, **params).fit(table, target)
    return model, table, Pool(table, target, cat_features=cats)


def test_one_hot_categories_are_matched_by_the_hash_of_their_label(one_hot, tmp_path):
    model, table, pool = one_hot
    machines = read_all_ways(model, tmp_path)
    machines["json with texts"] = read_all_ways(model, tmp_path, pool=pool)["json"]
    assert "yy" in machines["json with texts"].columns.categories[2]
    unseen = table.assign(
        integer=table["integer"] + 10, text="never seen", category=pd.Categorical(["w"] * 300)
    )
    as_text = table.assign(integer=table["integer"].astype(str), codes=table["codes"].astype(str))
    for way, machine in machines.items():
        for data in (table, unseen, as_text, table.to_numpy(object)):
            assert np.array_equal(machine.predict(data), model.predict(data)), way
        assert np.array_equal(
            machine.predict(table.to_numpy(object).tolist()), model.predict(table)
        )
        polars = pl.from_pandas(table.assign(codes=table["codes"].astype(int)))
        assert np.array_equal(machine.predict(polars), model.predict(table))
    assert np.array_equal(own_leaves(machines["object"], table), model.calc_leaf_indexes(table))


@pytest.mark.parametrize("bad", [1.5, 1.0, None, float("nan")])
def test_what_catboost_takes_for_no_label_is_no_label(one_hot, bad):
    model, table, _ = one_hot
    data = table.head(2).assign(text=pd.Series([bad, "x"], dtype=object))
    with pytest.raises((CatBoostError, TypeError)):
        model.predict(data)
    with pytest.raises(dm.InputError, match="text or integers"):
        dm.convert(model).predict(data)


def test_integers_of_an_array_are_labels_and_floats_are_refused():
    data = np.random.default_rng(2).integers(0, 5, (200, 3))
    target = (data[:, 0] == 2) * 3.0 + data[:, 1] + (data[:, 2] == 0)
    model = CatBoostRegressor(cat_features=[0, 2], one_hot_max_size=10, **SMALL).fit(data, target)
    machine = dm.convert(model)
    assert np.array_equal(machine.predict(data), model.predict(data))
    with pytest.raises(dm.InputError, match="text or integers"):
        machine.predict(data.astype(float))


def test_label_hashes_are_catboosts_for_texts_of_every_length(tmp_path):
    rng = np.random.default_rng(0)
    lengths = [*range(131), 191, 192, 193, 400]
    words = ["".join(rng.choice(list('ab é"\n\U0001f333'), n)) for n in lengths]
    table = pd.DataFrame({"c": words * 3, "x": rng.normal(size=3 * len(words))})
    pool = Pool(table, rng.normal(size=len(table)), cat_features=["c"])
    model = CatBoostRegressor(one_hot_max_size=255, **SMALL).fit(pool)
    model.save_model(str(tmp_path / "m.json"), format="json", pool=pool)
    hashes = json.loads((tmp_path / "m.json").read_bytes())["features_info"]["cat_features_hash"]
    assert len(hashes) == len(set(words))
    assert all(label_hash(h["value"]) % 2**32 == h["hash"] for h in hashes)


# ---------------------------------------------------------------------- refusals


def test_text_and_embedding_features_are_refused_by_name():
    rng = np.random.default_rng(0)
    words = ["good", "bad", "fine", "poor", "nice", "ugly"]
    table = pd.DataFrame(
        {"x": rng.normal(size=300), "words": [" ".join(rng.choice(words, 4)) for _ in range(300)]}
    )
    target = np.array(["good" in words for words in table["words"]]) * 1
    model = CatBoostClassifier(text_features=["words"], **SMALL).fit(table, target)
    with pytest.raises(dm.UnsupportedModelError, match="'words'"):
        dm.convert(model)
    table["words"] = list(rng.normal(size=(300, 3)))
    table = table.rename(columns={"words": "vector"})
    model = CatBoostClassifier(embedding_features=["vector"], **SMALL).fit(table, target)
    with pytest.raises(dm.UnsupportedModelError, match="'vector'"):
        dm.convert(model)


def test_an_unfitted_model_and_a_strange_object_are_refused():
    with pytest.raises(dm.InputError, match="not fitted"):
        read_catboost(CatBoostRegressor())
    with pytest.raises(dm.UnsupportedModelError, match="not one of CatBoost's models"):
        read_catboost(Pool(X, y))


def test_a_file_that_lost_its_trees_is_refused_and_one_without_trees_is_read(tmp_path):
    model = CatBoostRegressor(**SMALL).fit(X, y)
    model.shrink(0)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    document = json.loads(path.read_text())
    (bias,) = document["scale_and_bias"][1]
    assert set(dm.load(path).margin(X).ravel()) == {bias}
    del document["oblivious_trees"]
    path.write_text(json.dumps(document))
    with pytest.raises(dm.ModelFormatError, match="neither oblivious_trees nor trees"):
        dm.load(path)


# ---------------------------------------------------------------------- files


class Files(dict):
    def __repr__(self):
        return f"Files({', '.join(self)})"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The bytes of small models of every kind, .cbm and .json."""
    folder = tmp_path_factory.mktemp("catboost")
    table, target, cats = categorical_table()
    found = Files()
    tiny = SMALL | {"iterations": 3, "depth": 2}
    for policy in ("SymmetricTree", "Lossguide"):
        models = {
            "regression": CatBoostRegressor(grow_policy=policy, **tiny).fit(X, y),
            "classes": CatBoostClassifier(
                grow_policy=policy, loss_function="MultiClass", **tiny
            ).fit(X, CLASSES),
            "cats": CatBoostRegressor(
                cat_features=cats, one_hot_max_size=9, grow_policy=policy, **tiny
            ).fit(table, target),
        }
        for name, model in models.items():
            for suffix in ("cbm", "json"):
                path = folder / f"{policy}-{name}.{suffix}"
                model.save_model(str(path), format=suffix)
                found[path.name] = path.read_bytes()
    return found


def try_to_read(data):
    """Read bytes that may be broken: a machine, or one of our errors."""
    try:
        machine = read_catboost_bytes(data, "a broken file")
    except (dm.ModelFormatError, dm.UnsupportedModelError):
        return
    assert np.all(np.isfinite(machine.V))
    assert np.all(np.isfinite(machine.t))
    if not machine.columns.categories:
        machine.predict(np.zeros((2, machine.n_features)))


def test_files_are_told_by_their_content(files):
    assert all(looks_like_catboost(data) for data in files.values())
    for other in (b"", b"{}", b"tree\nversion=v4", b'{"learner": {}}', b"\x08\x07", b"CBM"):
        assert not looks_like_catboost(other)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_truncated_files_are_format_errors(files, share):
    for data in files.values():
        with pytest.raises(dm.ModelFormatError):
            read_catboost_bytes(data[: int(len(data) * share)], "cut")


BROKEN = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@BROKEN
@given(st.data())
def test_flipped_bytes_never_crash(files, data):
    content = bytearray(files[data.draw(st.sampled_from(sorted(files)))])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try_to_read(bytes(content))


@BROKEN
@given(st.data())
def test_words_of_a_cbm_replaced_never_crash(files, data):
    name = data.draw(st.sampled_from([n for n in sorted(files) if n.endswith("cbm")]))
    content = bytearray(files[name])
    at = data.draw(st.integers(2, len(content) // 4 - 1)) * 4
    word = data.draw(
        st.sampled_from([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7F800000, 0x7FC00000])
        | st.integers(0, 2**32 - 1)
    )
    content[at : at + 4] = word.to_bytes(4, "little")
    try_to_read(bytes(content))


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in itertools.islice(items, 12) if isinstance(value, (dict, list)) else ():
        yield from places(item, (*path, key)) if isinstance(item, (dict, list)) else [(*path, key)]


@BROKEN
@given(st.data())
def test_edited_json_never_crashes(files, data):
    name = data.draw(st.sampled_from([n for n in sorted(files) if n.endswith("json")]))
    model = json.loads(files[name])
    part = data.draw(st.sampled_from(sorted(model)))
    path = (part, *data.draw(st.sampled_from(list(places(model[part])))))
    holder = model
    for key in path[:-1]:
        holder = holder[key]
    if data.draw(st.booleans()):
        del holder[path[-1]]
    else:
        odd = [None, True, -1, 0, 10**400, 2**31, 0.5, float("nan"), float("inf"), "text", [], {}]
        holder[path[-1]] = data.draw(st.sampled_from(odd))
    try_to_read(json.dumps(model).encode())


def test_a_split_that_contradicts_its_number_is_a_format_error(files):
    model = json.loads(files["SymmetricTree-regression.json"])
    model["oblivious_trees"][0]["splits"][0]["border"] += 1
    with pytest.raises(dm.ModelFormatError, match="calls itself"):
        read_catboost_bytes(json.dumps(model).encode(), "edited")


def test_json_nested_without_end_is_a_format_error():
    data = b'{"features_info": {}, "scale_and_bias": [1, [0]], "trees": ['
    for deep in (b'{"left":' * 100_000, b"[" * 100_000):
        with pytest.raises(dm.ModelFormatError):
            read_catboost_bytes(data + deep, "deep")
