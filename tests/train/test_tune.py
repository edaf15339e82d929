"""Tuning never loses on validation, leaves an ordinary machine, and does so for every source."""

import functools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from library_models import LIBRARIES, data, models, table
from sklearn.datasets import make_friedman1
from strategies import machines

import decision_machines as dm
from decision_machines.errors import InputError, UnsupportedModelError
from decision_machines.machine import Rule
from decision_machines.train.tune import fine_tune, search
from decision_machines.train.tune.descent import Descent, Setting, judge, parts_of, soft_margin
from decision_machines.train.tune.objectives import objective_for
from decision_machines.train.tune.subject import Choice, Subject
from decision_machines.train.tune.tensor_rows import TensorRows as Rows
from decision_machines.train.tune.widths import measure

FEW = [Setting(0.1), Setting(0.5, 0.05, 0.05, 0.02)]
SOURCES = [
    (library, name)
    for library in LIBRARIES
    for name, _, _ in LIBRARIES[library]()
    if name not in ("IsolationForest", "AdaBoostRegressor")
]


def quick(machine, X, y, **options):
    given = {"settings": FEW, "epochs": 3, "n_threads": 1, "verbose": False, "batch_size": 64}
    return dm.tune(machine, X, y, **(given | options))


def take(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def loss_of(machine, margin, X, y, objective=None):
    """The mean loss of margins, by the objective of the machine."""
    goal = objective_for(machine, objective)
    y = torch.from_numpy(goal.encode(y))
    rows = Rows(torch.zeros((len(y), 0)), y, torch.ones(len(y)).double())
    return judge(goal, torch.as_tensor(np.asarray(margin)), rows).mean


@functools.cache
def smooth(n=1500):
    """(source, train, valid, test): a boosted model of a smooth function, and rows of it."""
    import lightgbm

    X, y = make_friedman1(n, noise=1.0, random_state=0)
    parts = [(X[i::3], y[i::3]) for i in range(3)]
    model = lightgbm.LGBMRegressor(n_estimators=30, num_leaves=15, n_jobs=1, verbose=-1)
    return dm.convert(model.fit(*parts[0])), *parts


def squared_error(answer, y):
    return float(np.mean((np.asarray(answer).ravel() - y) ** 2))


def soft_answer(tuned, X):
    with torch.no_grad():
        return tuned.soft(torch.from_numpy(np.array(tuned.machine.features(X)))).double().numpy()


# -- what is promised -----------------------------------------------------------------------------


@pytest.mark.parametrize(("library", "name"), SOURCES)
def test_every_source_comes_back_ordinary_and_no_worse_on_validation(library, name):
    _, _, (X, y) = next(case for case in LIBRARIES[library]() if case[0] == name)
    source = dm.convert(models(library)[name])
    y = np.asarray(y)
    found = quick(source, X, y, refit=False)
    held = found.report.validation_rows
    X_valid, y_valid = take(X, held), y[held]
    before = loss_of(source, source.margin(X_valid), X_valid, y_valid)
    assert before == pytest.approx(found.report.source)
    after = loss_of(source, found.machine.margin(X_valid), X_valid, y_valid)
    assert after <= before
    x = torch.from_numpy(np.array(source.features(X_valid)))
    with torch.no_grad():
        soft = found.soft.margin(x)
    assert loss_of(source, soft, X_valid, y_valid) <= before
    assert torch.isfinite(soft).all()
    assert np.all(np.isfinite(found.machine.V))
    hard = found.machine
    assert hard.t.dtype == source.t.dtype
    assert hard.V.dtype == source.V.dtype
    assert np.array_equal(hard.missing, source.missing)
    assert np.array_equal(hard.children, source.children)
    assert np.shape(hard.predict(X)) == np.shape(source.predict(X))


def test_tuning_gains_on_rows_it_never_saw():
    source, train, valid, (X, y) = smooth()
    found = dm.tune(source, *train, validation=valid, epochs=6, n_threads=1, verbose=False)
    before = squared_error(source.predict(X), y)
    assert squared_error(soft_answer(found, X), y) < 0.9 * before
    assert squared_error(found.machine.predict(X), y) < 0.97 * before
    report = found.report
    assert max(report.soft, report.hard) < report.source
    assert 0 < report.thresholds_moved <= report.n_tests
    text = repr(found)
    assert "thresholds" in text
    assert "validation loss" in text
    assert "tried" in text


def test_what_is_no_better_than_the_source_gives_the_source_back():
    source, (X, _), _, _ = smooth()
    y = source.predict(X)  # nothing can be learned of a source's own answers
    found = quick(source, X, y)
    assert found.machine.equals(source)
    assert np.array_equal(soft_answer(found, X).ravel(), y)
    assert found.report.chosen_hard == "the source, unchanged"


@given(st.data())
@settings(max_examples=25)
def test_recentred_thresholds_change_no_answer_on_the_rows_measured(draw):
    machine = draw.draw(machines())
    if machine.output.aggregate != "sum":
        return
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    X = rng.integers(-3, 4, (40, machine.n_features)) * rng.choice([1.0, 0.1, 1e30])
    X[rng.random(X.shape) < 0.1] = np.nan
    x = machine.features(X)
    found = measure(machine, x, [0.1, 0.5])
    for alpha in (0.1, 0.5):
        assert np.all(np.isfinite(found.slope(alpha)) & (found.slope(alpha) > 0))
        assert np.all(np.isfinite(found.width(alpha)) & (found.width(alpha) > 0))
    if machine.is_oblique:
        return
    dtype = machine.columns.dtype
    with np.errstate(over="ignore"):
        t = found.t.astype(dtype)
    t = np.where(t > found.t, np.nextafter(t, dtype.type(-np.inf)), t)
    moved = replace(machine, t=t)
    assert np.array_equal(moved.apply(X), machine.apply(X))


@pytest.mark.parametrize("name", ["LGBMRegressor", "LGBMClassifier, 3", "LGBMRegressor, rf"])
def test_the_first_step_starts_within_the_bound_that_is_reported(name):
    _, _, (X, y) = next(case for case in LIBRARIES["lightgbm"]() if case[0] == name)
    start = quick(models("lightgbm")[name], X, y, epochs=1).report.start
    assert 0 < start.mean <= start.largest <= start.bound < np.inf


def test_flags_and_categories_start_almost_hard():
    frame, _ = table()
    machine = dm.convert(models("lightgbm")["LGBMClassifier, table"])
    found = measure(machine, machine.features(frame), [0.5])
    is_member = machine.columns.rule[machine.selection] == Rule.MEMBER
    assert is_member.any()
    assert np.array_equal(found.t[is_member], np.full(is_member.sum(), 0.5))
    gate = 1 / (1 + np.exp(-found.slope(0.5)[is_member] * 0.5))
    assert np.all(gate > 0.9999 - 1e-5)


def test_categories_keep_their_thresholds_when_hardened():
    frame, y = table()
    for library, name in (
        ("lightgbm", "LGBMClassifier, table"),
        ("xgboost", "XGBClassifier, table"),
    ):
        source = dm.convert(models(library)[name])
        found = quick(source, frame, np.asarray(y), refit=False)
        is_member = source.columns.rule[source.selection] == Rule.MEMBER
        assert np.array_equal(found.machine.t[is_member], source.t[is_member])


# -- refits ---------------------------------------------------------------------------------------


def test_validation_rows_that_were_given_are_not_trained_on_unasked():
    source, train, valid, _ = smooth()
    assert quick(source, *train, validation=valid).before_refit is None
    held_out = quick(source, *train)
    assert held_out.before_refit is not None
    assert len(held_out.report.validation_rows) == round(0.2 * len(train[0]))
    share = quick(source, *train, validation=0.5, epochs=1)
    assert len(share.report.validation_rows) == 250


def test_a_refit_is_no_worse_than_the_source_on_validation_and_keeps_what_was_judged():
    source, train, valid, _ = smooth()
    found = quick(source, *train, validation=valid, refit=True)
    X, y = valid
    for one in (found, found.before_refit):
        assert squared_error(one.machine.predict(X), y) <= found.report.source
        assert squared_error(soft_answer(one, X), y) <= found.report.source
    judged = found.before_refit
    assert squared_error(soft_answer(judged, X), y) == pytest.approx(found.report.soft)
    assert squared_error(judged.machine.predict(X), y) == pytest.approx(found.report.hard)
    assert not torch.equal(found.soft.t, judged.soft.t)


def test_the_settings_can_be_applied_to_the_source_of_all_rows():
    import lightgbm

    source, train, valid, (X, y) = smooth()
    both = [np.concatenate(pair) for pair in zip(train, valid, strict=True)]
    whole = lightgbm.LGBMRegressor(n_estimators=30, num_leaves=15, n_jobs=1, verbose=-1).fit(*both)
    found = quick(source, *train, validation=valid, refit=whole)
    assert squared_error(soft_answer(found, X), y) < squared_error(whole.predict(X), y)
    with pytest.raises(InputError, match="same kind of model"):
        quick(source, *train, validation=valid, refit=models("lightgbm")["LGBMClassifier"])


# -- the same result again ------------------------------------------------------------------------


def same(one, other):
    a, b = (found.soft.state_dict() for found in (one, other))
    return (
        one.machine.equals(other.machine)
        and all(torch.equal(a[name], b[name]) for name in a)
        and (one.report.soft, one.report.hard) == (other.report.soft, other.report.hard)
    )


def test_seeds_reproduce_whatever_the_threads():
    source, train, _, _ = smooth()
    small = {"epochs": 1, "settings": FEW[:1]}
    first = quick(source, *train, seed=3, **small)
    assert same(first, quick(source, *train, seed=3, n_threads=2, **small))
    assert not same(first, quick(source, *train, seed=4, **small))


@pytest.mark.parametrize("epochs_before", [1, 4, 6])
def test_a_resumed_run_ends_as_one_that_was_never_stopped(tmp_path, monkeypatch, epochs_before):
    source, train, valid, _ = smooth()
    options = {"validation": valid, "refit": True, "keep_best_on_interrupt": True}
    whole = quick(source, *train, **options)
    assert len(whole.history) > epochs_before + 1
    path, epoch, done = tmp_path / "state", Descent.epoch, []

    def stopped(self):
        if len(done) == epochs_before:
            raise KeyboardInterrupt
        done.append(1)
        return epoch(self)

    monkeypatch.setattr(Descent, "epoch", stopped)
    part = quick(source, *train, **options, checkpoint=path)
    assert part.report.interrupted
    assert part.report.soft <= part.report.source
    monkeypatch.setattr(Descent, "epoch", epoch)
    again = quick(source, *train, **options, checkpoint=path, resume=True)
    assert same(whole, again)
    assert same(whole.before_refit, again.before_refit)
    curve = [
        {k: v for k, v in row.items() if k not in ("seconds", "step")} for row in whole.history
    ]
    assert curve == [
        {k: v for k, v in row.items() if k not in ("seconds", "step")} for row in again.history
    ]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    source, train, _, _ = smooth()
    path = tmp_path / "state"
    quick(source, *train, epochs=1, checkpoint=path)
    with pytest.raises(InputError, match="another epochs"):
        quick(source, *train, epochs=2, checkpoint=path, resume=True)
    path.write_bytes(b"something else")
    with pytest.raises(InputError, match="not a checkpoint"):
        quick(source, *train, epochs=2, checkpoint=path, resume=True)
    with pytest.raises(InputError, match="does not exist"):
        quick(source, *train, checkpoint=tmp_path / "none" / "state")
    with pytest.raises(InputError, match="without a checkpoint"):
        quick(source, *train, resume=True)


def test_an_interruption_is_raised_or_gives_the_best_so_far_where_asked(monkeypatch):
    source, train, valid, _ = smooth()
    calls = []

    def values(self, watch):
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(search.Search, "_try_values", values)
    options = {"validation": valid, "refit": True}
    with pytest.raises(KeyboardInterrupt):
        quick(source, *train, **options)
    found = quick(source, *train, **options, keep_best_on_interrupt=True)
    assert len(calls) == 2
    assert found.report.interrupted
    assert found.before_refit is None
    assert squared_error(soft_answer(found, valid[0]), valid[1]) == pytest.approx(found.report.soft)
    assert found.report.soft < found.report.source


# -- any scale, any size --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_X", "shift", "of_y"),
    [(1e200, 0, 1e100), (1e-200, 0, 1e-100), (1.0, 1e9, 1.0), (1e-3, -1e6, 1e12), (1, 0, 1e-30)],
)
def test_no_scale_of_features_or_targets_breaks_training(of_X, shift, of_y):
    import lightgbm

    X, y = make_friedman1(600, noise=0.5, random_state=1)
    model = lightgbm.LGBMRegressor(n_estimators=20, num_leaves=8, n_jobs=1, verbose=-1)
    source = dm.convert(model.fit(X[:300], y[:300]))
    # LightGBM itself has no such range: its machine is scaled as the rows are.
    source = replace(source, t=source.t * of_X + shift, V=source.V * of_y)
    X, y = X * of_X + shift, y * of_y
    found = quick(source, X[:300], y[:300], validation=(X[300:], y[300:]), refit=True)
    assert np.isfinite(found.report.soft)
    assert found.report.soft < 0.97 * found.report.source
    assert all(bool(torch.isfinite(part).all()) for part in found.soft.parameters())
    assert np.all(np.isfinite(found.machine.margin(X)))
    assert all(np.isfinite(row[name]) for row in found.history for name in row)


def test_a_large_offset_of_the_targets_is_no_obstacle():
    from sklearn.ensemble import RandomForestRegressor

    X, y = make_friedman1(300, random_state=2)
    forest = dm.convert(RandomForestRegressor(5, max_depth=5, random_state=0).fit(X[::2], y[::2]))
    forest, y = replace(forest, V=forest.V + 1e9), y + 1e9
    found = quick(forest, X[::2], y[::2], validation=(X[1::2], y[1::2]))
    assert found.report.soft < 0.95 * found.report.source


def test_tiny_and_degenerate_rows_work():
    source, (X, y), _, _ = smooth()
    assert quick(source, X[:2], y[:2]).report.n_train == 1
    constant = quick(source, np.ones((30, 10)), np.ones(30))
    assert np.isfinite(constant.report.soft)
    twice = quick(source, np.repeat(X[:20], 5, 0), np.repeat(y[:20], 5))
    assert np.isfinite(twice.report.hard)
    classes = dm.convert(models("xgboost")["XGBClassifier"])
    X, y = data("two")
    one_class = quick(classes, X[y == 1], y[y == 1])
    assert one_class.report.soft <= one_class.report.source
    rare = np.concatenate([np.flatnonzero(y == 1)[:200], np.flatnonzero(y == 0)[:3]])
    assert np.isfinite(quick(classes, X[rare], y[rare]).report.soft)


def test_machines_without_tests_or_trees_come_back():
    one = dm.figure_one()
    X = np.random.default_rng(0).uniform(0, 4, (40, 4))
    stump = one.subtree(~0)
    found = quick(replace(stump, output=one.output), X, X[:, 0])
    assert found.machine.n_tests == 0
    assert found.report.hard <= found.report.source
    none = one.mask([0])
    assert quick(none, X, X[:, 0]).machine.n_trees == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epochs": 0}, "whole number"),
        ({"learn": ("t", "W")}, "learn includes"),
        ({"learn": ()}, "learn is empty"),
        ({"settings": []}, "settings is empty"),
        ({"settings": [Setting(2.0)]}, "alpha"),
        ({"validation": 1.5}, "share between"),
        ({"validation": (1,)}, "1 parts"),
        ({"sample_weight": [1.0]}, "weights for"),
        ({"sample_weight": [-1.0] * 500}, "weight that is not a number"),
        ({"sample_weight": [0.0] * 500}, "weights of 0"),
        ({"objective": "lambdarank"}, "without groups"),
        ({"n_threads": 0}, "n_threads"),
    ],
)
def test_what_cannot_be_is_said_in_three_parts(options, words):
    source, train, _, _ = smooth()
    with pytest.raises(InputError, match=words) as caught:
        quick(source, *train, **options)
    assert "What to do" in str(caught.value)


def test_rows_that_do_not_fit_are_refused():
    source, (X, y), _, _ = smooth()
    for rows, targets, words in (
        (X[:0], y[:0], "0 rows"),
        (X[:1], y[:1], "rows"),
        (X, y[:-1], "a target for each"),
        (X[:, :3], y, "3 columns"),
        (X, np.where(y > 20, np.nan, y), "finite"),
    ):
        with pytest.raises(InputError, match=words):
            quick(source, rows, targets)
    with pytest.raises(UnsupportedModelError, match="median"):
        quick(models("sklearn")["AdaBoostRegressor"], *data("number"))


# -- other ways to train --------------------------------------------------------------------------


def test_leaves_of_probabilities_stay_so():
    from sklearn.ensemble import RandomForestClassifier

    X, y = np.nan_to_num(data("two")[0]), data("two")[1]
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X[::2], y[::2])
    found = quick(forest, X[::2], y[::2], validation=(X[1::2], y[1::2]))
    assert found.report.soft < found.report.source
    for p in (found.machine.predict_proba(X), soft_answer(found, X)):
        assert np.all(p >= 0)
        assert np.allclose(p.sum(1), 1)


def test_oblique_weights_are_learned_where_they_are_asked_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    y = (X.sum(1) > 0).astype(float) * 10  # no axis-aligned test can say this
    from sklearn.tree import DecisionTreeRegressor

    tree = dm.convert(DecisionTreeRegressor(max_depth=2, random_state=0).fit(X[:300], y[:300]))
    valid = (X[300:], y[300:])
    options = {"validation": valid, "epochs": 20, "settings": [Setting(0.5, 0.1, 0.1, 0.02, 10.0)]}
    straight = quick(tree, X[:300], y[:300], **options)
    oblique = quick(tree, X[:300], y[:300], learn=("S", "t", "slope", "V"), **options)
    assert oblique.machine.is_oblique
    assert oblique.report.hard < 0.8 * straight.report.hard
    again = quick(oblique.machine, X[:300], y[:300], validation=valid)
    assert again.report.soft <= again.report.source


def test_oblique_tests_take_up_no_column_with_missing_values():
    source, (X, y), valid, _ = smooth()
    X = X.copy()
    X[::3, 2] = np.nan
    found = quick(source, X, y, validation=valid, learn=("S", "t", "slope", "V"))
    reads = source.S.toarray() != 0
    now = found.soft.selection.S.detach().numpy() != 0
    assert now.sum() > reads.sum()
    assert np.array_equal(now[:, 2], reads[:, 2])


def test_a_loss_of_the_user_is_trained_for():
    source, train, valid, (X, y) = smooth()

    def asymmetric(margin, y):
        return torch.where(margin < y, 9.0, 1.0) * (margin - y).abs()

    found = quick(source, *train, validation=valid, objective=asymmetric)
    cost = loss_of(source, soft_answer(found, X), X, y, asymmetric)
    assert cost < 0.8 * loss_of(source, source.margin(X), X, y, asymmetric)
    assert np.mean(soft_answer(found, X).ravel() > y) > 0.65
    assert found.report.objective == "asymmetric"


def test_ranking_is_tuned_by_groups():
    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    y = np.clip(np.round(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.standard_normal(600)), 0, 3)
    sizes, ids = np.full(30, 10), np.repeat(np.arange(30), 10)
    model = lightgbm.LGBMRanker(n_estimators=10, num_leaves=6, n_jobs=1, verbose=-1)
    model.fit(X[:300], y[:300].astype(int), group=sizes)
    valid = (X[300:], y[300:], None, ids)
    found = quick(model, X[:300], y[:300], group=sizes, validation=valid)
    assert found.report.objective == "lambdarank"
    assert found.report.soft < found.report.source
    held = quick(model, X[:300], y[:300], group=sizes, epochs=1).report.validation_rows
    assert len(held) == 60
    assert len(set(held // 10)) == 6


def test_weights_of_rows_count():
    source, (X, y), valid, _ = smooth()
    w = np.where(X[:, 0] > 0.5, 1.0, 0.0)
    kept = w > 0
    options = {"validation": valid, "settings": FEW[:1], "epochs": 1, "batch_size": 10_000}
    weighed = quick(source, X, y, sample_weight=w * 7.0, **options)
    alone = quick(source, X[kept], y[kept], **options)
    # One step on all rows: rows of weight 0 leave the values of leaves that only they reach.
    moved = (torch.from_numpy(np.array(source.V)) != weighed.soft.leaves.V).sum()
    assert moved > 0
    assert weighed.history[0]["loss"] == pytest.approx(alone.history[0]["loss"], rel=0.3)


def test_tuned_models_are_written_back():
    source, train, valid, (X, _) = smooth()
    found = quick(source, *train, validation=valid).machine
    assert not found.equals(source)
    assert np.array_equal(found.to_lightgbm().predict(X), found.predict(X))
    X, y = data("number")
    half = len(X) // 2
    import xgboost

    model = xgboost.XGBRegressor(n_estimators=10, max_depth=3, n_jobs=1).fit(X[:half], y[:half])
    found = quick(model, X[:half], y[:half], validation=(X[half:], y[half:]), refit=True).machine
    assert found.t.dtype == np.float32
    booster = found.to_xgboost()
    assert np.array_equal(booster.predict(xgboost.DMatrix(X)), found.predict(X))


def test_importing_the_package_leaves_torch_alone():
    code = "import sys, decision_machines as dm; assert 'tune' in dir(dm), dir(dm); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert dm.tune is fine_tune.tune
    with pytest.raises(AttributeError, match="no attribute 'tuning'"):
        _ = dm.tuning


def test_default_settings_are_in_order():
    assert len({setting.alpha for setting in fine_tune.SETTINGS}) >= 3
    assert all(isinstance(setting, Setting) for setting in fine_tune.SETTINGS)


# -- on the terminal ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of LightGBM and two files of rows."""
    import lightgbm
    import pandas as pd

    folder = tmp_path_factory.mktemp("tune")
    _, train, valid, _ = smooth()
    for name, (X, y) in (("train", train), ("valid", valid)):
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
        frame.assign(id=range(len(y)), y=y).to_csv(folder / f"{name}.csv", index=False)
        if name == "train":
            model = lightgbm.LGBMRegressor(n_estimators=10, num_leaves=8, n_jobs=1, verbose=-1)
            model.fit(frame, y).booster_.save_model(folder / "model.txt")
    return folder


def on_terminal(*arguments):
    from typer.testing import CliRunner

    from decision_machines.cli.app import app

    return CliRunner().invoke(app, [str(a) for a in ("tune", *arguments)])


def test_the_command_writes_a_better_model_and_says_what_changed(files):
    out = files / "tuned.txt"
    valid = files / "valid.csv"
    common = ["--target", "y", "--drop", "id", "--validation", valid, "--epochs", 3, "-o", out]
    done = on_terminal(files / "model.txt", files / "train.csv", *common, "--threads", 1)
    assert done.exit_code == 0, done.output
    assert "thresholds" in done.output
    assert "written to" in done.output
    source, tuned = dm.load(files / "model.txt"), dm.load(out)
    _, _, (X, y), _ = smooth()
    assert squared_error(tuned.predict(X), y) < squared_error(source.predict(X), y)
    assert "LightGBM" in tuned.source


def test_the_command_answers_in_json_and_goes_on_from_checkpoints(files, tmp_path):
    import json

    state, out = tmp_path / "state", tmp_path / "tuned.dm"
    arguments = [files / "model.txt", files / "train.csv", "--target", "y", "--drop", "id"]
    arguments += ["-o", out, "--epochs", 1, "--checkpoint", state, "--json", "--threads", 1]
    first = on_terminal(*arguments)
    assert first.exit_code == 0, first.output
    again = json.loads(on_terminal(*arguments, "--resume").stdout)
    found = json.loads(first.stdout)
    assert found["hard"] == again["hard"] <= found["source"]
    assert len(found["validation_rows"]) == 100
    assert dm.load(out).n_trees == 10


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--target", "z"], "has no column 'z'"),
        (["--target", "y", "--validation", "nothing.csv"], "neither a share nor a file"),
        (["--target", "y", "--objective", "cubic"], "use one of"),
        (["--target", "y", "--checkpoint", "/nowhere/at/all"], "does not exist"),
    ],
)
def test_the_command_refuses_in_words(files, tmp_path, extra, words):
    out = tmp_path / "tuned.dm"
    done = on_terminal(files / "model.txt", files / "train.csv", "-o", out, *extra)
    assert isinstance(done.exception, InputError)
    assert words in str(done.exception)
    assert not out.exists()


def test_values_taught_by_the_soft_machine_come_closer_to_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (300, 4))
    y = X @ [1.0, 2, 0, 1]
    machine = dm.figure_one()
    rows = Rows(*(torch.from_numpy(part) for part in (X, y[:, None], np.ones(300))))
    options = {"learn": ("t", "slope", "V"), "epochs": 1, "batch_size": 64, "seed": 0}
    settings_ = fine_tune.SETTINGS
    subject = Subject(machine, objective_for(machine), rows, settings_, n_threads=1, **options)
    net = subject.soften(0.8)
    choice = Choice(5, 0, 0.0, parts=parts_of(net), is_taught=True)
    soft = soft_margin(net, rows).numpy()

    def distance(hard):
        return float(np.mean((hard.margin(X) - soft) ** 2))

    taught = [subject.hard_machine(replace(choice, ridge=ridge)) for ridge in (100.0, 3.0)]
    assert distance(taught[1]) < distance(taught[0]) < distance(subject.hard_machine(choice))
