"""Sums of machines: members that are alike, weights chosen on unseen rows, honest reports."""

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import decision_machines as dm
from decision_machines.errors import InputError
from decision_machines.train.rows import Rows
from decision_machines.train.sums import SumGoal, candidates, fit, soft_forest, sum_of_machines
from decision_machines.train.sums.boosters import BOOSTERS, boosted_by
from decision_machines.train.sums.choose import greedy_weights
from decision_machines.train.sums.goal import widened

pytest.importorskip("torch")

HISTOGRAMS = "scikit-learn histograms"


@pytest.fixture
def quick(monkeypatch):
    """Few candidates, few steps: what is tested here does not depend on how good they are."""
    monkeypatch.setattr(
        candidates.Candidates, "names", lambda self: [HISTOGRAMS, candidates.FOREST]
    )
    monkeypatch.setattr(candidates, "TRIED", ())
    monkeypatch.setattr(soft_forest, "STEPS", 40)
    monkeypatch.setattr(soft_forest, "FEWEST_EPOCHS", 2)
    monkeypatch.setattr(soft_forest, "TREES", 4)
    monkeypatch.setattr(fit, "FOLDS", ((10_000, 2),))


def wave(m=300, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + noise * rng.normal(size=m)


def read(X, y):
    return Rows(X, np.asarray(y), np.ones(len(X)))


# ---------------------------------------------------------------------- members


@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
def test_a_widened_threshold_tells_apart_what_float32_did(t, x):
    single = np.float32(t)
    (wide,) = widened(np.array([single]))
    with np.errstate(over="ignore"):
        for value in (x, float(wide), np.nextafter(wide, np.inf), float(single)):
            assert (np.float32(value) <= single) == (value <= wide)


@pytest.mark.parametrize("name", BOOSTERS)
@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_members_are_the_librarys_trees_over_float64(name, n_classes):
    pytest.importorskip(BOOSTERS[name][0])
    X, y = wave()
    X[::9, 1] = np.nan
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    goal = SumGoal.of_numbers() if n_classes is None else SumGoal.of_classes(n_classes)
    held = {}

    def kept(*args, train=BOOSTERS[name][1]):
        held["model"] = train(*args)
        return held["model"]

    import decision_machines.train.sums.boosters as room

    before = room.BOOSTERS[name]
    room.BOOSTERS[name] = (before[0], kept)
    try:
        machine = boosted_by(name, read(X[:200], y[:200]), read(X[200:], y[200:]), goal, 0, 1, 60.0)
    finally:
        room.BOOSTERS[name] = before
    theirs = dm.convert(held["model"])
    assert np.array_equal(machine.apply(X), theirs.apply(X))
    assert machine.columns.dtype == np.float64
    ours, source = machine.margin(X), theirs.margin(X)
    if n_classes == 3:  # margins of classes are alike up to a constant
        ours, source = ours - ours.mean(1)[:, None], source - source.mean(1)[:, None]
    assert np.allclose(ours, source, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("objective", ["squared", "quantile:0.8", "poisson"])
def test_a_soft_forest_learns(objective):
    X, y = wave(500, noise=0.1)
    y = np.floor(np.exp(y)) if objective == "poisson" else y * 100
    goal, rows = SumGoal.of_numbers(objective), read(X[:300], y[:300])
    forest = soft_forest.soft_forest(rows, read(X[300:400], y[300:400]), goal, time_limit=20)
    margin = forest.margin(X[400:])
    constant = np.tile(goal.best_constant(rows), (100, 1))
    assert goal.losses(margin, y[400:]).mean() < 0.8 * goal.losses(constant, y[400:]).mean()


# ---------------------------------------------------------------------- weights


@given(st.integers(0, 1000), st.integers(1, 5))
def test_a_sum_is_no_worse_than_its_best_member_where_it_was_chosen(seed, n):
    rng = np.random.default_rng(seed)
    y, margins = rng.normal(size=(30, 1)), rng.normal(size=(n, 30, 1))
    weights = greedy_weights(margins, lambda m: float(((m - y) ** 2).mean()))
    assert np.isclose(weights.sum(), 1)
    assert np.all(weights >= 0)
    best = ((margins - y) ** 2).mean(axis=(1, 2)).min()
    assert ((np.tensordot(weights, margins, 1) - y) ** 2).mean() <= best + 1e-12


def test_random_targets_gain_nothing(quick):
    rng = np.random.default_rng(1)
    gains = []
    for seed in range(3):
        X, y = rng.normal(size=(240, 5)), rng.normal(size=240)
        report = sum_of_machines(read(X, y), SumGoal.of_numbers(), seed=seed, n_threads=1).report
        gains.append(report["gain"])
        # Every row is judged, once.
        assert np.array_equal(np.sort(report["judged rows"]), np.arange(240))
    assert np.mean(gains) < 2 * np.sqrt(2 / 240 / 3)


def test_what_is_reported_is_what_new_rows_give(quick):
    X, y = wave(1500)
    found = sum_of_machines(read(X[:500], y[:500]), SumGoal.of_numbers(), n_threads=1)
    test = np.mean((found.soft.margin(X[500:])[:, 0] - y[500:]) ** 2)
    assert found.report["soft"] == pytest.approx(test, rel=0.3)
    assert found.report["gain"] > 0.3
    assert str(found.report).count("\n") >= 4


# ---------------------------------------------------------------------- the whole fit


def test_seeds_reproduce(quick, monkeypatch):
    monkeypatch.setattr(candidates, "TRIED", (1,))  # tuned, too
    X, y = wave(160)
    first, second = (
        sum_of_machines(read(X, (y > 0).astype(int)), SumGoal.of_classes(2), seed=3, n_threads=1)
        for _ in range(2)
    )
    assert np.array_equal(first.soft.margin(X), second.soft.margin(X))
    assert np.array_equal(first.machine.margin(X), second.machine.margin(X))


def test_the_soft_and_the_hard_sum_are_machines(quick, tmp_path):
    X, y = wave(200)
    y = np.digitize(y, [-0.5, 0.5])
    found = sum_of_machines(read(X, y), SumGoal.of_classes(3), n_threads=1)
    assert isinstance(found.machine, dm.DecisionMachine)
    assert found.soft.rule == "soft trees"
    for i, model in enumerate((found.machine, found.soft)):
        path = tmp_path / f"{i}.dm"
        model.save(path)
        assert np.array_equal(dm.load(path).predict_proba(X), model.predict_proba(X))


def test_an_interrupted_sum_is_raised_or_keeps_what_is_finished(quick, monkeypatch):
    X, y = wave(160)
    learn = candidates.Candidates.learn

    def stops(self, name, *rest):
        if name == candidates.FOREST:
            raise KeyboardInterrupt
        return learn(self, name, *rest)

    monkeypatch.setattr(candidates.Candidates, "learn", stops)
    given = (read(X, y), SumGoal.of_numbers())
    with pytest.raises(KeyboardInterrupt):
        sum_of_machines(*given, n_threads=1)
    found = sum_of_machines(*given, n_threads=1, keep_best_on_interrupt=True)
    assert found.report["interrupted"]
    assert found.report["folds"] == 1
    assert found.machine.n_trees > 1


def test_no_time_gives_what_the_first_candidate_gives(quick):
    X, y = wave(160)
    report = sum_of_machines(read(X, y), SumGoal.of_numbers(), time_limit=1e-6, n_threads=1).report
    assert [one["name"] for one in report["tried"]] == ["a constant", HISTOGRAMS]


def test_libraries_that_are_not_installed_are_left_out_with_a_note(monkeypatch):
    there = importlib.util.find_spec
    missing = ("lightgbm", "catboost")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else there(name)
    )
    found = candidates.Candidates(SumGoal.of_numbers(), lambda machine: machine)
    names = found.names()
    assert "LightGBM" not in names
    assert HISTOGRAMS in names
    assert [note.split()[0] for note in found.notes[:1]] == ["LightGBM"]


def test_rows_given_to_judge_by_are_not_learned_from(quick):
    X, y = wave(300)
    report = sum_of_machines(
        read(X[:200], y[:200]), SumGoal.of_numbers(), judge=read(X[200:], y[200:]), n_threads=1
    ).report
    assert report["judged"] == 100
    assert report["folds"] == 1


def test_few_rows_are_not_judged():
    X, y = wave(20)
    found = sum_of_machines(read(X, y), SumGoal.of_numbers())
    assert "fewer than" in found.report["notes"][0]
    assert np.isfinite(found.machine.margin(X)).all()


def test_unknown_objectives_are_refused():
    for wrong in ("logistic", "nothing", "quantile:2"):
        with pytest.raises(InputError, match="objective"):
            SumGoal.of_numbers(wrong)
