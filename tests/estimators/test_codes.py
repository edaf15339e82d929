"""Codes of templates: each tree is a code, decodings agree where they must."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

import decision_machines as dm
from decision_machines import TemplateCodeClassifier
from decision_machines.errors import InputError
from decision_machines.estimators.class_trees import (
    class_affinity,
    clustered_tree,
    code_of,
    paired_tree,
    random_tree,
    tree_of_machine,
)
from decision_machines.estimators.decoding import even_loss, hamming, logical, loss
from decision_machines.estimators.flat_codes import FLAT, dense, one_vs_all, one_vs_one, sparse


def leaves_in_order(tree):
    return (
        [tree]
        if not isinstance(tree, tuple)
        else [*leaves_in_order(tree[0]), *leaves_in_order(tree[1])]
    )


@given(n_classes=st.integers(2, 9), seed=st.integers(0, 999))
def test_a_code_is_the_template_matrix_of_its_tree(n_classes, seed):
    rng = np.random.default_rng(seed)
    affinity = rng.uniform(size=(n_classes, n_classes))
    for tree in (random_tree(n_classes, rng), paired_tree(affinity + affinity.T, rng)):
        M = code_of(tree, n_classes)
        children, order = dm.tree_of_templates(M[leaves_in_order(tree)])
        assert len(children) == n_classes - 1
        assert sorted(order) == list(range(n_classes - 1))


@given(n_classes=st.integers(2, 8), seed=st.integers(0, 999))
def test_one_trees_logical_similarity_is_1_at_the_exit_leaf_alone(n_classes, seed):
    rng = np.random.default_rng(seed)
    M = code_of(random_tree(n_classes, rng), n_classes)
    f = rng.normal(size=(20, n_classes - 1))
    assert np.all(np.sum(logical(f, M) == 1.0, axis=1) == 1)
    np.testing.assert_allclose(np.exp(loss(f, M)).sum(axis=1), 1.0)


@given(seed=st.integers(0, 999))
def test_decodings_agree_with_their_definitions(seed):
    rng = np.random.default_rng(seed)
    M = rng.integers(-1, 2, (4, 6))
    f = rng.normal(size=(5, 6))
    h = np.sign(f)
    for i in range(5):
        for r in range(4):
            asked = M[r] != 0
            assert hamming(f, M)[i, r] == -np.sum((1 - M[r] * h[i]) / 2)
            if asked.any():
                np.testing.assert_allclose(logical(f, M)[i, r], np.mean((M[r] * h[i])[asked]))
            np.testing.assert_allclose(
                loss(f, M)[i, r], -np.sum(np.log1p(np.exp(-M[r] * f[i]))[asked])
            )


def test_what_is_confused_most_is_parted_last():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [0.3, 0.0], [20.0, 20.0], [20.0, 20.3]])
    y = np.repeat(np.arange(4), 100)
    X = centres[y] + rng.normal(size=(400, 2))
    tree = clustered_tree(class_affinity(X, y, np.ones(400)))
    assert {frozenset(leaves_in_order(side)) for side in tree} == {
        frozenset({0, 1}),
        frozenset({2, 3}),
    }


def test_a_fitted_tree_gives_the_order_in_which_it_tells_classes_apart():
    X, y = load_iris(return_X_y=True)
    machine = dm.convert(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    assert tree_of_machine(machine, X, y, np.ones(150), 0) == (0, (1, 2))
    model = TemplateCodeClassifier(coding=machine).fit(X, y)
    assert model.code_.tolist() == [[-1, 0], [1, -1], [1, 1]]


def test_each_question_is_learned_once_from_the_rows_it_concerns():
    X, y = load_iris(return_X_y=True)
    M = np.array([[-1, 1, 0], [1, -1, -1], [1, -1, 1]])  # the second is the first turned round
    model = TemplateCodeClassifier(GaussianNB(), coding=M).fit(X, y)
    assert len(model.estimators_) == 2
    assert model.estimators_[1].class_count_.tolist() == [50, 50]
    np.testing.assert_array_equal(model._margins(X)[:, 0], -model._margins(X)[:, 1])


def test_one_versus_rest_as_a_matrix_is_scikit_learns():
    from sklearn.multiclass import OneVsRestClassifier

    X, y = load_iris(return_X_y=True)
    learner = LogisticRegression(solver="newton-cholesky")
    ours = TemplateCodeClassifier(learner, coding=2 * np.eye(3) - 1, decoding="loss").fit(X, y)
    theirs = OneVsRestClassifier(learner).fit(X, y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
    named = TemplateCodeClassifier(learner, coding="one_vs_all").fit(X, y)
    assert np.array_equal(named.code_, ours.code_)
    np.testing.assert_array_equal(named.predict_proba(X), ours.predict_proba(X))


def test_one_versus_one_by_votes_is_scikit_learns():
    from sklearn.multiclass import OneVsOneClassifier

    X, y = load_digits(return_X_y=True)
    learner = GaussianNB(var_smoothing=1e-3)
    ours = TemplateCodeClassifier(learner, coding="one_vs_one", decoding="hamming").fit(X, y)
    theirs = OneVsOneClassifier(learner).fit(X, y)
    assert len(ours.estimators_) == len(theirs.estimators_) == 45
    votes = theirs.decision_function(X)
    is_clear = np.sort(votes.round(), axis=1)[:, -2] < votes.round().max(axis=1)  # no tie
    assert is_clear.mean() > 0.9
    assert np.array_equal(ours.predict(X)[is_clear], theirs.predict(X)[is_clear])


@settings(max_examples=10)
@given(n_classes=st.integers(3, 9), seed=st.integers(0, 99))
def test_random_codes_ask_different_questions_and_tell_all_classes_apart(n_classes, seed):
    rng = np.random.default_rng(seed)
    for code, per_log, symbols in (
        (dense(n_classes, None, rng), 10, {-1, 1}),
        (sparse(n_classes, None, rng), 15, {-1, 0, 1}),
    ):
        assert set(np.unique(code)) == symbols
        turned = {min(column.tobytes(), (-column).tobytes()) for column in code.T}
        assert len(turned) == code.shape[1] <= np.ceil(per_log * np.log2(n_classes))
        assert np.all((code.max(axis=0) == 1) & (code.min(axis=0) == -1))
        assert len(np.unique(code, axis=0)) == n_classes


def test_sparse_codes_ask_about_half_of_the_classes():
    assert 0.45 < np.mean(sparse(9, 200, np.random.default_rng(0)) == 0) < 0.55


def test_few_classes_are_asked_every_question_there_is():
    rng = np.random.default_rng(0)
    assert dense(3, None, rng).shape == (3, 3)
    assert dense(4, None, rng).shape == (4, 7)
    assert sparse(3, None, rng).shape == (3, 6)
    assert dense(12, 9, rng).shape == (12, 9)


def test_the_random_code_is_further_apart_than_most():
    rng = np.random.default_rng(0)

    def least(code):
        wide = code.astype(int)
        return ((code.shape[1] - wide @ wide.T) / 2)[~np.eye(len(code), dtype=bool)].min()

    others = [least(rng.choice([-1, 1], (8, 30))) for _ in range(200)]
    assert least(dense(8, 30, rng)) > np.quantile(others, 0.95)


@pytest.mark.parametrize("coding", list(FLAT))
def test_flat_codes_learn_digits_and_give_probabilities(coding):
    X, y = load_digits(return_X_y=True)
    new = np.arange(len(X)) % 3 == 0
    learner = DecisionTreeClassifier(max_depth=5, random_state=0)
    model = TemplateCodeClassifier(learner, coding=coding, random_state=1).fit(X[~new], y[~new])
    assert model.score(X[new], y[new]) > 0.8
    probability = model.predict_proba(X[new])
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X[new]))
    again = TemplateCodeClassifier(learner, coding=coding, random_state=1).fit(X[~new], y[~new])
    assert np.array_equal(again.code_, model.code_)
    two = TemplateCodeClassifier(learner, coding=coding).fit(X[y < 2], y[y < 2])
    assert two.code_.shape == (2, 1)


def test_a_question_that_is_not_asked_counts_as_a_margin_of_0():
    rng = np.random.default_rng(0)
    f, M = rng.normal(size=(5, 6)), sparse(4, 6, rng)
    for r in range(4):
        expected = -np.log1p(np.exp(-M[r] * f)).sum(axis=1)
        np.testing.assert_allclose(even_loss(f, M)[:, r], expected)
    assert one_vs_one(4).shape == (4, 6)
    assert one_vs_all(4).shape == (4, 4)


@pytest.mark.parametrize("coding", ["confusion", "tree", "random"])
def test_more_trees_make_a_code_that_does_better_than_one(coding):
    X, y = load_digits(return_X_y=True)
    new = np.arange(len(X)) % 3 == 0
    learner = DecisionTreeClassifier(max_depth=4, random_state=0)
    scores = [
        TemplateCodeClassifier(learner, coding=coding, n_trees=n)
        .fit(X[~new], y[~new])
        .score(X[new], y[new])
        for n in (1, 10)
    ]
    assert scores[1] > scores[0] + 0.02


@pytest.mark.parametrize("decoding", ["logical", "hamming", "loss"])
def test_every_decoding_answers_with_labels_as_they_came(decoding):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"], object)[y]
    model = TemplateCodeClassifier(decoding=decoding, n_trees=2).fit(X, names)
    assert model.score(X, names) > 0.9
    assert hasattr(model, "predict_proba") == (decoding == "loss")


def test_learners_without_probabilities_and_without_margins_will_do():
    X, y = load_iris(return_X_y=True)
    assert TemplateCodeClassifier(Perceptron()).fit(X, y).score(X, y) > 0.6


def test_sparse_rows_reach_learners_that_take_them():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = sp.csr_array(rng.poisson(0.3 + 3.0 * (np.arange(8) // 2 == y[:, None])))
    assert TemplateCodeClassifier(MultinomialNB()).fit(X, y).score(X, y) > 0.9


def test_grid_search_reaches_the_inner_learner():
    X, y = load_iris(return_X_y=True)
    grid = {"estimator__var_smoothing": [1e-9, 1.0], "decoding": ["loss", "logical"]}
    search = GridSearchCV(TemplateCodeClassifier(GaussianNB(), n_trees=2), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"coding": "trees"}, "coding = 'trees'"),
        ({"coding": np.ones((3, 2))}, "does not have both signs"),
        ({"coding": np.array([[1, -1], [1, -1], [-1, 1]])}, "same code"),
        ({"coding": np.array([[1, 2], [1, -1], [-1, 1]])}, "coding holds 2"),
        ({"coding": np.array([[1, -1], [-1, 1]])}, "shape"),
        ({"decoding": "soft"}, "decoding = 'soft'"),
        ({"n_trees": 0}, "n_trees = 0"),
        ({"n_columns": 0}, "n_columns = 0"),
        ({"estimator": 3}, "not a classifier"),
    ],
)
def test_what_is_no_code_is_refused_in_words(options, found):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match=found):
        TemplateCodeClassifier(**options).fit(X, y)
