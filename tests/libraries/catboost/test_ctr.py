"""CatBoost's statistics over categories (CTR), read exactly."""

from dataclasses import replace

import numpy as np
import pytest

import decision_machines as dm
from decision_machines.machine import Rule
from decision_machines.machine.look_ups import LookUps, Term
from decision_machines.run.engines.look_ups import StatisticsReader

pd = pytest.importorskip("pandas")
catboost = pytest.importorskip("catboost")

CATS = ["a", "b", "c", "two"]
COLOURS = ["red", "green", "blue", "ÿellow"]
POLICIES = ("SymmetricTree", "Lossguide", "Depthwise")


def rows(n=2500, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": rng.choice(list("abcdefgh"), n),
            "x": rng.normal(size=n).astype(np.float32),
            "b": rng.choice(COLOURS, n),
            "c": rng.choice([f"L{i}" for i in range(30)], n),
            "two": rng.choice(["yes", "no"], n),
            "z": rng.normal(size=n),
        }
    ).astype(dict.fromkeys(CATS, object))
    table.loc[::9, "x"] = np.nan
    # Labels together tell the target, and each alone some of it: what makes CatBoost combine them.
    draw = np.random.default_rng(3)
    ab, c_two = draw.normal(size=(8, 4)), draw.normal(size=(30, 2))
    a, b = table.a.map(ord).to_numpy() - ord("a"), table.b.map(COLOURS.index).to_numpy()
    c, two = table.c.str[1:].astype(int).to_numpy(), (table.two == "yes").to_numpy().astype(int)
    score = ab[a, b] + ab[a, 0] + ab[0, b] + c_two[c, two]
    return table, score + 0.3 * np.nan_to_num(table.x) * (a > 3) > 0


def asked(table):
    """Rows with labels of no training row, gaps and edges."""
    table = table.copy()
    table.loc[::7, "a"] = "unseen"
    table.loc[::11, "c"] = "also unseen"
    table.loc[::13, "two"] = "?"
    table.loc[::5, "x"] = np.nan
    table.loc[3, "x"], table.loc[4, "x"] = np.inf, -np.inf
    return table


def fitted(table, y, kind="Classifier", **options):
    own = {
        "iterations": 25,
        "depth": 5,
        "learning_rate": 0.3,
        "model_size_reg": 0,
        "max_ctr_complexity": 4,
    }
    model = getattr(catboost, f"CatBoost{kind}")(
        verbose=0, allow_writing_files=False, thread_count=1, random_seed=0, **(own | options)
    )
    return model.fit(table, y, cat_features=CATS)


def raw(model, table):
    return np.asarray(catboost.CatBoost.predict(model, table, prediction_type="RawFormulaVal"))


def check_equal(machine, model, table):
    want = raw(model, table).reshape(len(table), -1)
    for engine in ("reference", "walk", "native"):
        np.testing.assert_array_equal(machine.margin(table, engine=engine), want)
    np.testing.assert_array_equal(machine.source_leaves(table), model.calc_leaf_indexes(table))


@pytest.fixture(scope="module")
def default():
    """A model of statistics over labels, over labels together, and together with tests."""
    table, y = rows()
    model = fitted(table, y, iterations=40)
    return model, dm.convert(model), asked(table)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "ctr",
    [
        "Borders",
        "Buckets",
        "BinarizedTargetMeanValue:Prior=1",
        "Counter",
        "Borders:CtrBorderCount=3:Prior=0.4",
    ],
)
def test_every_type_is_read_to_the_bit(ctr, policy):
    table, y = rows()
    model = fitted(
        table, y, simple_ctr=[ctr], combinations_ctr=[ctr], grow_policy=policy, iterations=12
    )
    check_equal(dm.convert(model), model, asked(table))


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
@pytest.mark.parametrize("ctr", ["Borders:TargetBorderCount=3", "Buckets:TargetBorderCount=3"])
def test_several_target_borders_are_told_apart(kind, ctr):
    table, _ = rows()
    y = np.random.default_rng(1).integers(0, 4, len(table)) + table.a.isin(["a", "b"])
    if kind == "Classifier" and "Buckets" in ctr:
        model = fitted(table, y, simple_ctr=["Buckets"], combinations_ctr=["Buckets"])
    else:
        model = fitted(table, y, kind, simple_ctr=[ctr], combinations_ctr=[ctr])
    check_equal(dm.convert(model), model, asked(table))


def test_combined_features_are_look_up_columns(default):
    model, machine, table = default
    assert np.any(machine.columns.rule == Rule.LOOK_UP)
    assert set(machine.columns.look_ups.term_kind.tolist()) == set(Term)
    assert np.diff(machine.columns.look_ups.term_start).max() > 2
    check_equal(machine, model, table)
    np.testing.assert_array_equal(machine.predict_proba(table), model.predict_proba(table))
    np.testing.assert_array_equal(machine.predict(table), model.predict(table).astype(bool))


@pytest.mark.parametrize("suffix", ["cbm", "json"])
def test_files_are_read_as_the_model_is(default, suffix, tmp_path):
    model, machine, table = default
    path = tmp_path / f"model.{suffix}"
    model.save_model(str(path), format=suffix)
    np.testing.assert_array_equal(dm.load(path).margin(table), machine.margin(table))


def test_our_own_file_holds_tables(default, tmp_path):
    _, machine, table = default
    machine.save(tmp_path / "model.dm")
    read = dm.load(tmp_path / "model.dm")
    assert read.fingerprint() == machine.fingerprint()
    np.testing.assert_array_equal(read.margin(table), machine.margin(table))


def test_another_value_in_a_table_is_another_fingerprint(default):
    _, machine, _ = default
    values = machine.columns.look_ups.values.copy()
    values[0] += 1
    look_ups = replace(machine.columns.look_ups, values=values)
    other = replace(machine, columns=replace(machine.columns, look_ups=look_ups))
    assert other.fingerprint() != machine.fingerprint()


def test_one_row_and_no_rows_and_threads(default):
    _, machine, table = default
    want = machine.margin(table)
    for i in (0, 7, 77):
        np.testing.assert_array_equal(machine.margin(table[i : i + 1]), want[i : i + 1])
    assert machine.margin(table[:0]).shape == (0, 1)
    for n in (1, 2, 511, 512, 513, 2500):
        np.testing.assert_array_equal(machine.margin(table[:n], n_threads=2), want[:n])
    many = pd.concat([table] * 7)
    np.testing.assert_array_equal(machine.margin(many, n_threads=2), np.concatenate([want] * 7))


def test_arrays_of_objects_are_read_too(default):
    _, machine, table = default
    np.testing.assert_array_equal(machine.margin(table.to_numpy(object)), machine.margin(table))


def test_a_statistic_of_one_feature_is_a_set_of_its_labels():
    table, y = rows()
    model = fitted(table, y, max_ctr_complexity=1)
    machine = dm.convert(model)
    assert not np.any(machine.columns.rule == Rule.LOOK_UP)
    check_equal(machine, model, asked(table))
    assert machine.counterfactual(asked(table).iloc[0]) is not None


def test_features_of_very_many_labels_are_looked_up(monkeypatch):
    monkeypatch.setattr("decision_machines.libraries.catboost.ctr_tests.MOST_MEMBERS", 20)
    table, y = rows()
    model = fitted(table, y, max_ctr_complexity=1)
    machine = dm.convert(model)
    assert np.any(machine.columns.rule == Rule.LOOK_UP)
    check_equal(machine, model, asked(table))


def test_a_certificate_probes_statistics_and_finds_a_changed_one():
    table, y = rows()
    model = fitted(table, y, iterations=3)
    machine = dm.convert(model)
    certificate = dm.certify(machine, model, table)
    assert certificate.first_disagreement is None
    assert certificate.proven > certificate.tests / 2
    look_ups = machine.columns.look_ups
    wrong = replace(look_ups, values=look_ups.values + np.float32(2))
    changed = replace(machine, columns=replace(machine.columns, look_ups=wrong))
    assert dm.certify(changed, model, table).first_disagreement is not None


def test_a_sum_of_models_is_read_whole_or_refused():
    table, y = rows()
    more, their_y = rows(seed=5)
    for i, name in enumerate(CATS):
        more[name] = more[name] + f" of model {i}"
    models = [fitted(table, y), fitted(more, their_y)]
    both = catboost.sum_models(models, ctr_merge_policy="IntersectingCountersAverage")
    try:
        machine = dm.convert(both)
    except dm.UnsupportedModelError as error:
        machine, said = None, str(error)
    if machine is None:
        assert "cannot be found again" in said
        return
    for rows_of in (table, more):
        np.testing.assert_array_equal(machine.margin(rows_of)[:, 0], raw(both, rows_of))


@pytest.mark.parametrize(
    ("verb", "doing"),
    [
        (lambda m, row: m.counterfactual(row), "counterfactual"),
        (lambda m, row: m.bounds(), "bounding"),
        (lambda m, row: m.is_monotone("x"), "monotonicity"),
        (lambda m, row: m.explore("page.html"), "explorer"),
        (lambda m, row: m.to_onnx(), "ONNX"),
        (lambda m, row: m.to_lightgbm(), "LightGBM"),
    ],
)
def test_what_needs_single_features_says_so(default, verb, doing):
    _, machine, table = default
    with pytest.raises(dm.UnsupportedModelError, match=doing):
        verb(machine, table.iloc[0])


def test_rules_name_the_features_of_a_statistic(default):
    _, machine, _ = default
    which = int(machine.trees.of_test[machine.columns.rule[machine.selection] == Rule.LOOK_UP][0])
    assert "statistic" in str(machine.tree(which).rules())


@pytest.mark.parametrize("cut", [1, 100, 400])
def test_cut_files_are_refused(default, cut, tmp_path):
    model, _, _ = default
    path = tmp_path / "model.cbm"
    model.save_model(str(path))
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(dm.ModelFormatError):
        dm.load(path)


def look_ups(**changes):
    """One table: a label of two, and whether feature 1 is above 0.5; two of its four keys held."""
    given = {
        "column_table": [0],
        "column_statistic": [0],
        "term_start": [0, 2],
        "term_feature": [0, 1],
        "term_kind": [Term.LABEL, Term.ABOVE],
        "term_number": [0.0, 0.5],
        "term_missing": [0, 1],
        "term_adds": np.array([0, 2**63], np.uint64),
        "label_start": [0, 2, 2],
        "label_adds": np.array([5, 2**64 - 7], np.uint64),
        "key_start": [0, 2],
        "keys": np.array([5, 2**63 - 7], np.uint64),
        "n_statistics": [1],
        "values": np.array([1.5, 2.5, -1.0], np.float32),
    }
    return LookUps(**{name: np.asarray(value) for name, value in (given | changes).items()})


def test_keys_add_up_and_wrap_around():
    x = np.array([[0, 0.5], [0, 0.6], [1, 0.6], [1, np.nan], [1, 0], [-1, 1], [0.5, 0], [2, 0]])
    assert look_ups().read(x)[:, 0].tolist() == [1.5, -1, 2.5, 2.5, -1, -1, -1, -1]


@pytest.mark.parametrize("n_labels", [0, 1, 3, 40, 255, 300])
def test_compiled_tables_find_what_the_keys_find(n_labels):
    """Of few combinations all are listed, of many (here 300² · 4) the keys are looked for."""
    rng = np.random.default_rng(n_labels)
    label_adds = rng.integers(0, 2**64, 2 * n_labels, np.uint64)
    adds = np.array([0, 3, 0, 2**63 + 1], np.uint64)
    pairs = rng.integers(0, max(n_labels, 1), (50, 2)) if n_labels else np.empty((0, 2), np.int64)
    said = rng.integers(0, 2, (len(pairs), 2)).astype(np.uint64)
    keys = label_adds[pairs[:, 0]] + label_adds[n_labels + pairs[:, 1]] + said @ adds[[1, 3]]
    keys = np.unique(keys)
    tables = look_ups(
        column_table=[0, 0],
        column_statistic=[1, 0],
        term_start=[0, 4],
        term_feature=[0, 1, 2, 1],
        term_kind=[Term.LABEL, Term.ABOVE, Term.LABEL, Term.EQUALS],
        term_number=[0, 0.5, 0, 2],
        term_missing=[0, n_labels % 2, 0, 0],
        term_adds=adds,
        label_start=np.array([0, 1, 1, 2, 2]) * n_labels,
        label_adds=label_adds,
        key_start=[0, len(keys)],
        keys=keys,
        n_statistics=[2],
        values=rng.normal(size=2 * len(keys) + 2).astype(np.float32),
    )
    x = rng.integers(-1, n_labels + 2, (1300, 3)).astype(np.float32)
    x[: len(pairs), [0, 2]] = pairs
    x[:, 1] = rng.choice([0, 0.5, 0.6, 2, np.nan, np.inf, -np.inf], 1300)
    x[::50, 0], x[1::50, 2], x[2::50, 0], x[3::50, 2] = np.nan, 0.5, np.inf, 2.0**24
    columns = dm.Columns(3, np.float32, feature=[0, 0], rule=[Rule.LOOK_UP] * 2, look_ups=tables)
    found = StatisticsReader(columns).read(list(x.T), len(x), 1)
    assert np.array_equal(found.T, tables.read(x))
    assert not n_labels or len(np.unique(found)) > 2


@pytest.mark.parametrize(
    "changes",
    [
        {"values": np.zeros(2, np.float32)},
        {"keys": np.array([9, 5], np.uint64)},
        {"column_statistic": [1]},
        {"term_kind": [0, 3]},
        {"term_start": [0, 1]},
        {"label_start": [0, 1, 2]},
        {"n_statistics": [0]},
    ],
)
def test_tables_that_do_not_fit_together_are_refused(changes):
    with pytest.raises(dm.InvariantError):
        look_ups(**changes)
