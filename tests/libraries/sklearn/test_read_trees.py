"""Single trees and forests of scikit-learn, wrappers around them, and what is refused."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context, ensemble, tree
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_probes import assert_answers_as, leaf_ids, same, tree_probes

import decision_machines as dm
from decision_machines.libraries.sklearn.read_trees import read_forest

# scikit-learn 1.9 warns that this criterion will go; models that were fitted with it stay.
pytestmark = pytest.mark.filterwarnings('ignore:Value `"friedman_mse"`:FutureWarning')
X, Y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
XR, YR = make_regression(300, 6, n_targets=2, random_state=0)
GAPS = X.copy()
GAPS[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
LABELS = {
    "int": Y,
    "text": np.array(["lo", "mid", "high"])[Y],
    "object": np.array(["lo", "mid", "high"], object)[Y],
    "float": Y * 2.0 - 1,
    "bool": Y > 0,
    "one": np.zeros(len(Y), int),
}
CLASSIFIERS = {
    "gini": tree.DecisionTreeClassifier(random_state=0),
    "entropy": tree.DecisionTreeClassifier(criterion="entropy", max_depth=4, random_state=0),
    "log_loss": tree.DecisionTreeClassifier(criterion="log_loss", max_leaf_nodes=9, random_state=0),
    "pruned": tree.DecisionTreeClassifier(ccp_alpha=0.01, random_state=0),
    "weighted": tree.DecisionTreeClassifier(class_weight="balanced", max_depth=5, random_state=0),
    "extra tree": tree.ExtraTreeClassifier(max_depth=6, random_state=0),
    "forest": ensemble.RandomForestClassifier(10, random_state=0),
    "weighted forest": ensemble.RandomForestClassifier(
        7, class_weight="balanced_subsample", max_depth=5, random_state=0
    ),
    "extra trees": ensemble.ExtraTreesClassifier(7, bootstrap=True, random_state=0),
}


def friedman():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return tree.DecisionTreeRegressor(criterion="friedman_mse", random_state=0)


REGRESSORS = {
    "squared": tree.DecisionTreeRegressor(max_depth=6, random_state=0),
    "friedman": friedman(),
    "absolute": tree.DecisionTreeRegressor(criterion="absolute_error", max_depth=4, random_state=0),
    "poisson": tree.DecisionTreeRegressor(criterion="poisson", max_depth=4, random_state=0),
    "monotonic": tree.DecisionTreeRegressor(
        monotonic_cst=[1, -1, 0, 0, 0, 0], max_depth=5, random_state=0
    ),
    "extra tree": tree.ExtraTreeRegressor(random_state=0),
    "forest": ensemble.RandomForestRegressor(10, random_state=0),
    "extra trees": ensemble.ExtraTreesRegressor(7, max_depth=8, random_state=0),
}


def trees_of(model):
    return [e.tree_ for e in getattr(model, "estimators_", [model])]


def check(model):
    machine = dm.convert(model)
    trees = trees_of(model)
    rows = tree_probes(trees, model.n_features_in_)
    assert_answers_as(machine, model, rows)
    for dtype in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            rows = rows.astype(dtype)
            single = rows.astype(np.float32)
        assert np.array_equal(
            leaf_ids(machine, rows), np.column_stack([t.apply(single) for t in trees])
        )
    return machine


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_are_read_to_the_bit_whatever_their_labels(name, labels):
    model = clone(CLASSIFIERS[name]).fit(X, LABELS[labels])
    machine = check(model)
    assert machine.predict(X).dtype == model.predict(X).dtype


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_send_nan_where_training_sent_it(name):
    check(clone(CLASSIFIERS[name]).fit(GAPS, Y))


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_are_read_to_the_bit(name):
    check(clone(REGRESSORS[name]).fit(XR, np.abs(YR[:, 0])))


# scikit-learn has no monotonic constraints for several targets.
@pytest.mark.parametrize("name", sorted(REGRESSORS.keys() - {"monotonic"}))
def test_regressors_of_several_targets_are_read_to_the_bit(name):
    check(clone(REGRESSORS[name]).fit(XR, np.abs(YR)))


@pytest.mark.parametrize("name", ["squared", "forest", "extra trees"])
def test_regressors_send_nan_where_training_sent_it(name):
    check(clone(REGRESSORS[name]).fit(GAPS, YR[:, 0]))


@pytest.mark.parametrize("name", ["gini", "extra tree", "forest", "extra trees"])
def test_several_targets_keep_classes_of_their_own(name):
    y = np.column_stack([Y, (X[:, 0] > 0) * 7, np.digitize(X[:, 1], [-1, 0, 1, 2])])
    model = clone(CLASSIFIERS[name]).fit(X, y)
    machine = check(model)
    assert len(machine.output.classes) == 3


def test_monotonic_constraints_change_the_values_that_are_read():
    model = ensemble.RandomForestClassifier(5, monotonic_cst=[1, 0, 0, -1, 0, 0], random_state=0)
    check(model.fit(X, Y > 0))


def test_a_tree_of_one_leaf_answers_its_value():
    check(tree.DecisionTreeRegressor(max_depth=1).fit(XR, np.ones(len(XR))))
    check(tree.DecisionTreeClassifier().fit(X[:1], ["only"]))


def test_integers_are_rounded_once_on_their_way_to_float32():
    big = (X * 2**26).astype(np.int64)
    model = ensemble.RandomForestClassifier(5, random_state=0).fit(big, Y)
    machine = dm.convert(model)
    for dtype in (np.int64, np.int32):
        rows = big.astype(dtype)
        assert same(machine.predict_proba(rows), model.predict_proba(rows))


def test_sparse_rows_hold_zeros_where_nothing_is_stored():
    holes = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    model = ensemble.ExtraTreesClassifier(5, random_state=0).fit(holes, Y)
    assert same(dm.convert(model).predict_proba(holes), model.predict_proba(holes))


def test_names_seen_in_fit_are_the_machines_names():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcdef"))
    model = ensemble.RandomForestClassifier(5, random_state=0).fit(table, Y)
    machine = dm.convert(model)
    assert machine.columns.names == tuple("abcdef")
    assert same(machine.predict_proba(table[list("fedcba")]), model.predict_proba(table))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(2, 60),
    n_features=st.integers(1, 4),
    n_classes=st.integers(1, 5),
    depth=st.integers(1, 8),
    is_extra=st.booleans(),
    with_gaps=st.booleans(),
)
def test_any_forest_of_any_small_data_is_read_to_the_bit(
    seed, n, n_features, n_classes, depth, is_extra, with_gaps
):
    rng = np.random.default_rng(seed)
    x = np.round(rng.standard_normal((n, n_features)), 1)
    if with_gaps:
        x[rng.random(x.shape) < 0.2] = np.nan
        x[0] = 0.0
    y = rng.integers(n_classes, size=n)
    kind = ensemble.ExtraTreesClassifier if is_extra else ensemble.RandomForestClassifier
    check(kind(3, max_depth=depth, random_state=seed % 1000).fit(x, y))


# ---------------------------------------------------------------- wrappers and refusals


def test_a_search_is_read_as_its_best_estimator():
    search = GridSearchCV(tree.DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4]}, cv=2)
    search.fit(X, Y)
    assert dm.convert(search).equals(dm.convert(search.best_estimator_))


def test_a_search_without_refit_has_nothing_to_convert():
    search = GridSearchCV(tree.DecisionTreeClassifier(), {"max_depth": [2]}, cv=2, refit=False)
    with pytest.raises(dm.InputError, match="refit=True"):
        dm.convert(search.fit(X, Y))


def test_a_pipeline_is_read_where_its_steps_do_nothing():
    pipe = make_pipeline("passthrough", None, tree.DecisionTreeClassifier(random_state=0))
    pipe.fit(X, Y)
    assert dm.convert(pipe).equals(dm.convert(pipe[-1]))


def test_a_step_that_mixes_columns_is_named_with_the_way_out():
    pipe = make_pipeline(StandardScaler(), PCA(2), tree.DecisionTreeClassifier(random_state=0))
    pipe.fit(X, Y)
    with pytest.raises(dm.UnsupportedModelError, match="'pca' is a PCA") as caught:
        dm.convert(pipe)
    assert "dm.convert(pipe[2:])" in caught.value.remedy
    machine = dm.convert(pipe[2:])
    assert same(machine.predict_proba(pipe[:2].transform(X)), pipe.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (ensemble.RandomTreesEmbedding(3), "machine.apply"),
        (LinearRegression(), "DecisionTreeClassifier"),
    ],
)
def test_models_that_are_no_sum_of_trees_are_refused_with_a_way_out(model, remedy):
    with pytest.raises(dm.UnsupportedModelError) as caught:
        dm.convert(model.fit(XR, YR[:, 0]))
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeClassifier(),
        ensemble.RandomForestRegressor(),
        ensemble.GradientBoostingClassifier(),
        ensemble.HistGradientBoostingRegressor(),
        ensemble.AdaBoostClassifier(),
        ensemble.BaggingRegressor(),
        ensemble.IsolationForest(),
        ensemble.VotingClassifier([("a", tree.DecisionTreeClassifier())]),
        ensemble.StackingRegressor([("a", tree.DecisionTreeRegressor())]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_that_is_not_fitted_is_refused(model):
    with pytest.raises(dm.InputError, match="call fit first"):
        dm.convert(model)


def test_a_class_in_place_of_a_model_is_refused():
    with pytest.raises(dm.DecisionMachinesError):
        dm.convert(tree.DecisionTreeClassifier)


class Quiet(ensemble.RandomForestClassifier):
    """A subclass that answers as its base does."""

    def fit(self, X, y):
        return super().fit(X, y)


class Loud(ensemble.RandomForestClassifier):
    """A subclass with an answer of its own."""

    def predict_proba(self, X):
        return super().predict_proba(X) ** 2


def test_a_subclass_is_read_unless_it_answers_otherwise():
    check(Quiet(3, random_state=0).fit(X, Y))
    with pytest.raises(dm.UnsupportedModelError, match="predict_proba of its own"):
        dm.convert(Loud(3, random_state=0).fit(X, Y))


def test_infinite_x_is_answered_although_scikit_learn_refuses_it():
    model = tree.DecisionTreeClassifier(random_state=0).fit(X, Y)
    rows = np.where(np.isnan(GAPS), np.inf, GAPS)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(rows)
    with config_context(assume_finite=True):
        assert same(dm.convert(model).predict(rows), model.predict(rows))


def with_weights(tree):
    """A tree as scikit-learn 1.3 has it: weights of the classes in the place of their shares."""
    state = tree.__getstate__()
    weight = state["nodes"]["weighted_n_node_samples"]
    state["values"] = state["values"] * weight[:, None, None]
    made = type(tree)(tree.n_features, tree.n_classes, tree.n_outputs)
    made.__setstate__(state)
    return made


@pytest.mark.parametrize("n_trees", [0, 5])
def test_trees_from_before_1_4_hold_weights_that_are_divided(n_trees):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 9, len(y))
    model = ensemble.RandomForestClassifier(n_trees or 1, max_depth=3, random_state=0)
    model.fit(X, y, sample_weight=weight)
    old = copy.deepcopy(model)
    for member in old.estimators_:
        member.tree_ = with_weights(member.tree_)
    new, old = (m if n_trees else m.estimators_[0] for m in (model, old))
    assert np.max(old.predict_proba(X)) > 1
    shares = dm.convert(old).predict_proba(X)
    np.testing.assert_allclose(shares, new.predict_proba(X), rtol=1e-14)
    assert np.array_equal(dm.convert(old).predict(X), new.predict(X))


def test_a_forest_is_the_average_of_its_trees():
    model = ensemble.RandomForestRegressor(4, max_leaf_nodes=9, random_state=0).fit(XR, YR)
    machine = read_forest(model)
    assert machine.equals(dm.convert(model))
    trees = [dm.convert(one).predict(XR) for one in model.estimators_]
    np.testing.assert_allclose(machine.predict(XR), np.mean(trees, axis=0))
