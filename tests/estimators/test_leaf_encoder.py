"""Leaves as features: of a machine, of an estimator that is fitted, of random trees."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import decision_machines as dm
from decision_machines import LeafEncoder


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_one_hot_is_that_of_the_forests_own_apply(rows):
    X, y = rows
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y)
    machine = dm.convert(forest)
    found = LeafEncoder(machine).fit_transform(X)
    assert sp.isspmatrix_csr(found)
    assert found.shape == (300, len(machine.V))
    assert np.array_equal(found.sum(axis=1), np.full((300, 1), 5.0))
    # Columns are the leaves from left to right; scikit-learn numbers nodes in the same order.
    theirs = OneHotEncoder(sparse_output=False).fit_transform(forest.apply(X))
    ours = found.toarray()
    assert np.array_equal(ours[:, ours.any(axis=0)], theirs)
    dense = LeafEncoder(machine, sparse_output=False).fit_transform(X)
    assert np.array_equal(dense, ours)


def test_an_estimator_is_copied_and_fitted(rows):
    X, y = rows
    forest = RandomForestClassifier(3, max_depth=3, random_state=0)
    encoder = LeafEncoder(forest, output="index").fit(X, y)
    assert not hasattr(forest, "estimators_")
    assert np.array_equal(encoder.transform(X), encoder.machine_.apply(X))
    pipeline = make_pipeline(LeafEncoder(forest), LogisticRegression()).fit(X, y)
    alone = LogisticRegression().fit(X, y)
    assert pipeline.score(X, y) > alone.score(X, y)
    weighted = LeafEncoder(forest).fit(X, y, sample_weight=np.linspace(0, 1, 300))
    assert not weighted.machine_.equals(encoder.machine_)


def test_random_trees_need_no_target_and_follow_the_seed(rows):
    X, _ = rows
    encoder = LeafEncoder(random_state=1)
    first, again = encoder.fit_transform(X), clone(encoder).fit_transform(X)
    assert (first != again).nnz == 0
    other = LeafEncoder(random_state=2).fit_transform(X)
    assert first.shape != other.shape or (first != other).nnz


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_gives_tables_with_names(rows, container):
    X, y = rows
    pytest.importorskip(container)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(300) * 2)
    forest = RandomForestClassifier(2, max_depth=2, random_state=0)
    for output in ("onehot", "index"):
        encoder = LeafEncoder(forest, output=output, sparse_output=False)
        found = encoder.set_output(transform=container).fit(frame, y).transform(frame)
        assert list(found.columns) == encoder.get_feature_names_out().tolist()
        if container == "pandas":
            assert found.index.equals(frame.index)
    with pytest.raises(ValueError, match="sparse"):
        LeafEncoder(forest).set_output(transform="pandas").fit(frame, y).transform(frame)
    names = make_column_transformer((LeafEncoder(forest), ["a", "b"])).fit(frame, y)
    assert names.get_feature_names_out()[0] == "leafencoder__tree0_leaf0"


def test_tables_of_labels_and_gaps_go_through(rows):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    X, y = rows
    color = pd.Categorical(np.where(X[:, 2] > 0, "red", "blue"))
    frame = pd.DataFrame({"a": X[:, 0], "color": color})
    frame.loc[3, "a"] = np.nan
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, min_child_samples=5)
    encoder = LeafEncoder(model, output="index").fit(frame, y)
    assert np.array_equal(encoder.transform(frame), encoder.machine_.apply(frame))
    assert np.array_equal(encoder.transform(frame[:1]), encoder.transform(frame)[:1])


def test_wrong_parameters_and_rows_say_what_to_do(rows):
    X, _ = rows
    with pytest.raises(dm.InputError, match=r"dm\.convert"):
        LeafEncoder("forest").fit(X)
    with pytest.raises(dm.InputError, match="output"):
        LeafEncoder(output="leaves").fit(X)
    with pytest.raises(dm.InputError, match="the machine reads 4"):
        LeafEncoder(dm.figure_one()).fit(X[:, :2])
    with pytest.raises(dm.InputError, match="features"):
        LeafEncoder(random_state=0).fit(X).transform(X[:, :2])
