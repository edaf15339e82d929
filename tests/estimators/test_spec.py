"""What the estimators promise, seen from outside: rubbish rows, kinds of input, and company."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import decision_machines as dm
from decision_machines import (
    DecisionMachineClassifier,
    DecisionMachineRegressor,
    NonGreedyTreeClassifier,
    NonGreedyTreeRegressor,
)
from decision_machines.progress import Watch

rng = np.random.default_rng(0)
M = 90
X = rng.normal(size=(M, 3))
Z = np.sin(2 * X[:, 0]) + X[:, 1]
FLAG = (Z > 0).astype(int)
QUICK = {"max_leaves": 4, "n_threads": 1}
CLASSIFIERS = {
    "one": DecisionMachineClassifier(**QUICK, n_iterations=5),
    "many": DecisionMachineClassifier(3, **QUICK, n_iterations=2),
    "oblique": DecisionMachineClassifier(**QUICK, oblique=True, n_iterations=2),
    "bound": NonGreedyTreeClassifier(**QUICK, n_epochs=1, n_restarts=1, radii=(4.0,)),
}
REGRESSORS = {
    "one": DecisionMachineRegressor(**QUICK, n_iterations=5),
    "many": DecisionMachineRegressor(3, **QUICK, n_iterations=2),
    "bound": NonGreedyTreeRegressor(**QUICK, n_epochs=1, n_restarts=1, radii=(4.0,)),
}
BOTH = {f"{name} of classes": (model, FLAG) for name, model in CLASSIFIERS.items()}
BOTH |= {f"{name} of numbers": (model, Z) for name, model in REGRESSORS.items()}
LINEAR = DecisionMachineRegressor(**QUICK, oblique=True, leaves="linear", n_iterations=2)
each = pytest.mark.parametrize("which", BOTH)
each_classifier = pytest.mark.parametrize("which", CLASSIFIERS)
each_regressor = pytest.mark.parametrize("which", REGRESSORS)


def fitted(which, rows, y=None, **options):
    model, own = BOTH[which]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return clone(model).fit(rows, own if y is None else y, **options)


def refused(which, words, rows, y=None, **options):
    with pytest.raises(dm.InputError, match=words) as found:
        fitted(which, rows, y, **options)
    said = str(found.value)
    assert said.startswith("While ")
    assert "\nWhat to do: " in said
    assert len(said) < 600
    return said


# -- rubbish --------------------------------------------------------------------------------------

POOR = {
    "constant": np.ones((M, 2)),
    "one constant": np.c_[X[:, :2], np.ones(M)],
    "tiny": X * 1e-300,
    "huge": X * 1e300,
    "mixed": X * [1e-20, 1e20, 1.0],
    "repeated": np.repeat(X[:3], M // 3, 0),
}


@each
@pytest.mark.parametrize("kind", POOR)
def test_poor_features_give_finite_answers_without_a_warning(which, kind):
    model = fitted(which, POOR[kind])
    answers = model.predict_proba(POOR[kind]) if hasattr(model, "classes_") else None
    answers = model.predict(POOR[kind]) if answers is None else answers
    assert np.all(np.isfinite(answers))
    assert np.all(np.isfinite(model.feature_importances_))


@pytest.mark.parametrize("which", [name for name in BOTH if "bound" not in name])
@pytest.mark.parametrize("kind", ["some", "a column", "all"])
def test_missing_values_are_taken_without_a_warning(which, kind):
    rows = X.copy()
    rows[{"some": np.s_[::3, 0], "a column": np.s_[:, 1], "all": np.s_[:]}[kind]] = np.nan
    model = fitted(which, rows)
    assert np.all(np.isfinite(model.feature_importances_))
    assert len(model.predict(rows)) == M


@each_regressor
@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_targets_of_any_scale_give_finite_answers_without_a_warning(which, scale):
    model = fitted(f"{which} of numbers", X, Z / np.abs(Z).max() * scale)
    assert np.all(np.isfinite(model.predict(X)))
    if 1e-100 < scale < 1e100:  # else the score's own squares are no numbers
        assert model.score(X, Z / np.abs(Z).max() * scale) > 0.2


def test_linear_leaves_take_targets_and_features_of_any_scale_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = clone(LINEAR).fit(X * [1e-20, 1e20, 1.0], Z / np.abs(Z).max() * 1e200)
    assert np.all(np.isfinite(model.predict(X * [1e-20, 1e20, 1.0])))


@each_classifier
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_class_in_each_of_few_rows_is_learned(which, n):
    labels = np.array(["a", "b", "c"])[:n]
    model = clone(CLASSIFIERS[which]).fit(X[:n], labels)
    assert set(model.predict(X)) <= set(labels)
    assert model.predict_proba(X).shape == (M, n)


@each_classifier
def test_one_row_of_a_class_among_a_thousand_does_no_harm(which):
    rows, y = rng.normal(size=(1001, 2)), np.arange(1001) == 17
    model = clone(CLASSIFIERS[which]).fit(rows, y)
    assert np.allclose(model.predict_proba(rows).sum(1), 1)
    assert model.score(rows, y) > 0.99


@each
def test_weights_of_very_different_size_are_no_obstacle(which):
    model = fitted(which, X, sample_weight=np.geomspace(1e-200, 1e200, M))
    assert len(model.predict(X)) == M


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (-np.ones(M), "Negative"),
        (np.zeros(M), "non-zero"),
        (np.full(M, np.nan), "NaN"),
        (np.ones(3), r"\(3,\)"),
        (["a"] * M, "sample_weight"),
    ],
)
@pytest.mark.parametrize("which", ["one of classes", "bound of numbers"])
def test_bad_weights_are_refused_with_what_weights_may_be(which, weight, words):
    assert "weight of at least 0" in refused(which, words, X, sample_weight=weight)


@pytest.mark.parametrize("weights", [{0: -1, 1: 1}, {0: "a", 1: 1}, {0: np.nan, 1: 1}])
def test_bad_class_weights_are_refused(weights):
    model = clone(CLASSIFIERS["one"]).set_params(class_weight=weights)
    with pytest.raises(dm.InputError, match="class_weight"):
        model.fit(X, FLAG)


DATES = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=M), "size": Z})
ROWS = {
    "sparse": (scipy.sparse.csr_matrix(X), "sparse"),
    "dates": (DATES, "'day' holds dates"),
    "dates in polars": (pl.from_pandas(DATES), "'day' holds dates"),
    "names given twice": (pd.DataFrame(X, columns=list("aab")), "'a' 2 times"),
    "no columns": (pd.DataFrame(), "0 feature"),
    "no rows": (X[:0], "0 sample"),
    "one dimension": (X[:, 0], "Reshape your data"),
    "complex": (X + 1j, "Complex data not supported"),
    "infinity": (np.where(X > 1, np.inf, X), "infinity"),
    "objects": (np.full((M, 2), {}, object), "must be a string"),
    "beyond": (np.sign(X) * 1.7e308, "differences would be infinite"),
    "text": (np.full((M, 2), "a"), "could not convert"),
}


@pytest.mark.parametrize("which", ["one of classes", "bound of numbers"])
@pytest.mark.parametrize("kind", ROWS)
def test_rows_that_cannot_be_learned_from_are_refused_in_few_words(which, kind):
    rows, words = ROWS[kind]
    refused(which, words, rows)


NO_ROWS = {
    "an array": X[:0],
    "a list": [],
    "pandas": pd.DataFrame(X[:0], columns=list("abc")),
    "pandas with text": pd.DataFrame({"colour": pd.Series([], dtype=str), "size": Z[:0]}),
    "polars": pl.DataFrame(X[:0]),
}


@each
@pytest.mark.parametrize("kind", NO_ROWS)
def test_no_rows_are_refused_with_what_to_do(which, kind):
    said = refused(which, "0 sample", NO_ROWS[kind], BOTH[which][1][:0])
    assert said.endswith("What to do: pass at least one row.")


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.where(Z > 1, np.nan, FLAG), r"y\[\d+\] is NaN or None"),
        (np.array([None, *["a"] * (M - 1)], object), r"y\[0\] is NaN or None"),
        (np.array(["a", "b"])[FLAG].astype("S"), "bytes"),
        (Z, "regressor"),
        (FLAG[:-1], "y has 89"),
        (None, "None"),
    ],
)
def test_bad_labels_are_refused_in_words(y, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dm.InputError, match=words):
            clone(CLASSIFIERS["one"]).fit(X, y)


@each_regressor
def test_targets_whose_sums_are_infinite_are_refused(which):
    refused(f"{which} of numbers", "sums of it would be infinite", X, np.sign(Z) * 1.7e308)


@pytest.mark.parametrize("which", ["bound of classes", "bound of numbers"])
def test_who_takes_no_text_and_no_missing_values_says_who_does(which):
    table = pd.DataFrame({"colour": rng.choice(["red", "blue"], M), "size": Z})
    assert "DecisionMachine" in refused(which, "'colour' holds text", table)
    said = refused(which, "NaN", np.where(X > 1, np.nan, X))
    assert "DecisionMachine" in said
    assert "HistGradientBoosting" not in said


@pytest.mark.parametrize(
    ("validation", "words"),
    [
        ((X[:0], FLAG[:0]), "0 sample"),
        ((X[:, :2], FLAG), "2 features"),
        ((X, FLAG, -FLAG), "Negative"),
        ((X, FLAG[:-1]), "90 rows and 89 targets"),
        ((X, FLAG + 1), "label 2"),
        (3, "not \\(X, y\\)"),
    ],
)
def test_bad_validation_rows_are_refused_as_such(validation, words):
    assert "predicting" not in refused("one of classes", words, X, validation=validation)


@pytest.mark.parametrize("value", [np.nan, np.inf, "a"])
def test_bad_targets_of_validation_rows_are_refused(value):
    y = Z.astype(object)
    y[3] = value
    refused("one of numbers", "y|convert", X, validation=(X, y))


@each
def test_a_tree_of_depth_0_is_one_leaf(which):
    model, y = BOTH[which]
    model = clone(model).set_params(max_depth=0).fit(X, y)
    assert model.machine_.depth == 0


# -- what goes in and comes out -------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([2**62, 2**62 + 1]),
        pd.Series(["no", "yes"], dtype="string").array,
        pd.Categorical(["no", "yes"]),
        pd.array([7, 9], dtype="Int64"),
    ],
)
def test_labels_come_back_and_the_machine_gives_the_same(labels):
    y = pd.Series(labels[FLAG])
    model = clone(CLASSIFIERS["one"]).fit(X, y)
    assert model.score(X, np.asarray(y)) > 0.7
    assert np.array_equal(model.machine_.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "column", [pl.Series("q", [None] * M), pl.Series("q", [None] * M, pl.Utf8)]
)
def test_a_column_of_nothing_is_missing(column):
    table = pl.DataFrame({"size": Z}).with_columns(column)
    model = clone(CLASSIFIERS["one"]).fit(table, FLAG)
    assert model.score(table, FLAG) == 1
    assert np.array_equal(model.machine_.predict(table), FLAG)


def test_columns_in_another_order_are_refused_with_the_right_one():
    table = pd.DataFrame(X, columns=list("abc"))
    model = clone(CLASSIFIERS["one"]).fit(table, FLAG)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(dm.InputError, match="feature_names_in_"):
        model.predict(table[["c", "b", "a"]])
    # The machine itself matches columns by name.
    assert np.array_equal(model.machine_.predict(table[["c", "b", "a"]]), model.predict(table))


@pytest.mark.parametrize("which", ["one", "many", "bound"])
def test_several_targets_have_a_column_each(which):
    model = clone(REGRESSORS[which]).fit(X, np.c_[Z, -2 * Z])
    assert model.predict(X).shape == (M, 2)
    assert model.score(X, np.c_[Z, -2 * Z]) > 0.2


@each
def test_pipelines_clones_pickles_and_searches(which):
    model, y = BOTH[which]
    parameter = "n_epochs" if "bound" in which else "n_iterations"
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), clone(model)),
        {f"{type(model).__name__.lower()}__{parameter}": [0, 1]},
        cv=2,
        error_score="raise",
    )
    grid.fit(X, y)
    again = pickle.loads(pickle.dumps(grid))
    assert np.array_equal(again.predict(X), grid.predict(X))
    same = clone(grid.best_estimator_).fit(X, y)
    assert np.array_equal(same.predict(X), grid.predict(X))


@each
def test_explanations_name_the_answer(which):
    model = fitted(which, X)
    rule = model.explain(X[:1])
    assert len(rule) == model.machine_.n_trees
    assert "row 0" in str(rule)


def test_soft_answers_are_pickled_and_saved_hard(tmp_path):
    model = DecisionMachineClassifier(**QUICK, oblique=True, soft=True, n_iterations=3)
    model.fit(X, FLAG)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert not np.allclose(model.predict_proba(X), model.machine_.predict_proba(X))
    model.machine_.save(tmp_path / "tree.dm")
    assert np.array_equal(dm.load(tmp_path / "tree.dm").predict(X), model.machine_.predict(X))


def interrupt(self, **numbers):
    raise KeyboardInterrupt


@each
def test_an_interrupted_fit_is_raised(which, monkeypatch):
    monkeypatch.setattr(Watch, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted(which, X)


@each
def test_an_interrupted_fit_keeps_the_best_so_far_where_asked(which, monkeypatch):
    monkeypatch.setattr(Watch, "step", interrupt)
    model, y = BOTH[which]
    model = clone(model).set_params(keep_best_on_interrupt=True).fit(X, y)
    assert model.report_["interrupted"]
    assert np.all(np.isfinite(model.predict(X)))


def test_soft_answers_are_not_tuned_after_an_interruption(monkeypatch):
    model = DecisionMachineClassifier(
        **QUICK, n_iterations=5, soft=True, keep_best_on_interrupt=True
    )
    monkeypatch.setattr(Watch, "step", interrupt)
    assert "tuning" not in model.fit(X, FLAG).report_


@each
def test_verbose_may_be_a_number(which, capfd):
    model, y = BOTH[which]
    clone(model).set_params(verbose=1).fit(X, y)
    said = capfd.readouterr().err
    assert "ended after" in said
    assert "\r" not in said
    assert "\x1b" not in said
    clone(model).set_params(verbose=0).fit(X, y)
    assert capfd.readouterr().err == ""


def test_sizes_are_kept():
    for options in ({"max_leaves": 3}, {"max_leaves": 8, "max_depth": 2}):
        model = DecisionMachineClassifier(**options, n_iterations=5, n_threads=1).fit(X, FLAG)
        assert model.machine_.n_leaves <= options["max_leaves"]
        assert model.machine_.depth <= options.get("max_depth", 3)
