"""What a tree is searched for: losses as scikit-learn has them, costs, and directions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    log_loss,
    mean_pinball_loss,
    mean_poisson_deviance,
    roc_auc_score,
)

import decision_machines as dm
from decision_machines.estimators.row_scores import row_scores
from decision_machines.train.axis import axis_tree
from decision_machines.train.axis import choice as choice_module
from decision_machines.train.axis.criteria import (
    OF_CLASSES,
    OF_NUMBERS,
    Criterion,
    Judge,
    class_losses,
)
from decision_machines.train.axis.standard_rows import standardised
from decision_machines.train.rows import Rows

QUICK = {"n_iterations": 30, "n_threads": 1, "verbose": False, "max_leaves": 8}


# -- losses ---------------------------------------------------------------------------------------


@st.composite
def judged_leaves(draw):
    """Rows with classes and weights in leaves that say something of each class."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, L, k = draw(st.integers(6, 60)), draw(st.integers(1, 6)), draw(st.integers(2, 4))
    y = np.concatenate([np.arange(k), rng.integers(k, size=m)])
    w = rng.choice([1.0, 0.5, 3.0], len(y))
    shares = np.round(rng.dirichlet(np.ones(k), L), 1) + 0.01  # ties between leaves
    return y, w, rng.integers(L, size=len(y)), shares / shares.sum(axis=1, keepdims=True)


def table_of(y, w, leaf, shares):
    table = np.zeros(shares.shape)
    np.add.at(table, (leaf, y), w)
    return table


@settings(max_examples=60, deadline=None)
@given(judged_leaves())
def test_losses_of_leaves_are_those_of_rows(given_leaves):
    y, w, leaf, shares = given_leaves
    k = shares.shape[1]
    table, said = table_of(*given_leaves), shares[leaf]
    chosen = said.argmax(axis=1)

    def loss(name, n_rows=10**12):
        return class_losses(name, shares[None], table, n_rows)[0]

    assert loss("log_loss") == pytest.approx(log_loss(y, said, sample_weight=w, labels=range(k)))
    each = [roc_auc_score(y == c, said[:, c], sample_weight=w) for c in range(k)]
    area = each[1] if k == 2 else np.mean(each)
    assert loss("auc") == pytest.approx(1 - area + 0.05 * loss("log_loss"))
    squared = ((said - np.eye(k)[y]) ** 2).sum(axis=1)
    even = w / np.bincount(y, w)[y]
    balanced = 1 - balanced_accuracy_score(y, chosen, sample_weight=w)
    assert loss("balanced") == pytest.approx(balanced + 0.25 * np.average(squared, weights=even))
    f1 = f1_score(y, chosen, average="macro", sample_weight=w)
    assert loss("f1") == pytest.approx(1 - f1 + 0.25 * np.average(squared, weights=w))
    wrong = np.average(chosen != y, weights=w)
    assert loss("accuracy") == pytest.approx(wrong + 0.25 * np.average(squared, weights=w))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_losses_of_numbers_are_those_of_rows(seed):
    rng = np.random.default_rng(seed)
    y, w, leaf = rng.poisson(2, 30) + 0.0, rng.uniform(0.5, 2, 30), rng.integers(4, size=30)
    y[0] += 1
    values = rng.uniform(0.1, 4, size=(2, 4, 1))
    for name, quantile in (("poisson", 0.5), ("quantile", 0.2), ("absolute_error", 0.5)):
        criterion = Criterion.of(name, None, quantile)
        rows = standardised(Rows(y[:, None], y[:, None], w), None, is_count=name == "poisson")
        found = Judge(criterion, rows).losses(values, leaf)
        for lost, own in zip(found, values, strict=True):
            said = rows.original(own[leaf])[:, 0]
            truth, scale = rows.original(rows.y)[:, 0], rows.scale
            if name == "poisson":
                true = mean_poisson_deviance(truth, said, sample_weight=w) / 2
            else:
                true = mean_pinball_loss(truth, said, sample_weight=w, alpha=quantile)
            assert lost * scale == pytest.approx(true)


@settings(max_examples=40, deadline=None)
@given(judged_leaves())
def test_scores_of_rows_have_the_mean_that_scikit_learn_gives(given_leaves):
    y, w, leaf, shares = given_leaves
    rows = Rows(leaf[:, None] + 0.0, y, w)

    class Said:
        def margin(self, X):
            return shares[X[:, 0].astype(int)]

    said, k = shares[leaf], shares.shape[1]
    chosen = said.argmax(axis=1)
    prior = np.bincount(y, w) / w.sum()
    entropy = log_loss(y, np.tile(prior, (len(y), 1)), sample_weight=w, labels=range(k))
    each = [roc_auc_score(y == c, said[:, c], sample_weight=w) for c in range(k)]
    expected = {
        "accuracy": np.average(chosen == y, weights=w),
        "balanced": balanced_accuracy_score(y, chosen, sample_weight=w),
        "f1": f1_score(y, chosen, average="macro", sample_weight=w),
        "auc": each[1] if k == 2 else np.mean(each),
        "log_loss": 1 - log_loss(y, said, sample_weight=w, labels=range(k)) / entropy,
    }
    for criterion, mean in expected.items():
        score = row_scores(criterion, rows)[1]
        assert np.average(score(Said(), rows), weights=w) == pytest.approx(mean), criterion


# -- trees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", OF_CLASSES)
def test_validation_decides_by_the_criterion(criterion):
    X, y = load_breast_cancer(return_X_y=True)
    fit = axis_tree(X, y, n_classes=2, criterion=criterion, **QUICK)
    assert fit.report["criterion"] == criterion
    assert fit.report["valid"] <= fit.report["valid_greedy"]
    assert np.allclose(fit.machine.V.sum(axis=1), 1)
    assert np.mean(fit.machine.predict(X) == y) > 0.9


def test_probabilities_that_are_searched_for_are_smoothed():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    y = (rng.random(300) < 0.2 + 0.6 * X[:, 0]).astype(int)
    V = axis_tree(X, y, n_classes=2, criterion="log_loss", **QUICK | {"max_leaves": 20}).machine.V
    assert V.min() > 0.02
    assert V.max() < 0.98


@pytest.mark.parametrize("criterion", OF_NUMBERS)
def test_numbers_are_searched_for_by_the_criterion(criterion):
    X, y = (part[:250] for part in load_diabetes(return_X_y=True))
    said = axis_tree(X, y, criterion=criterion, quantile=0.8, **QUICK).machine.predict(X)
    error = {
        "squared_error": lambda v: np.mean((y - v) ** 2),
        "absolute_error": lambda v: np.mean(np.abs(y - v)),
        "quantile": lambda v: mean_pinball_loss(y, v, alpha=0.8),
        "poisson": lambda v: mean_poisson_deviance(y, v),
    }[criterion]
    constant = np.quantile(y, 0.8) if criterion == "quantile" else np.median(y)
    assert error(said) < 0.8 * error(np.full(len(y), constant))
    if criterion == "quantile":
        assert 0.7 < np.mean(y <= said) < 0.9


def test_rare_classes_are_found_where_all_count_alike():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(800, 2))
    y = ((X[:, 0] > 0.8) & (rng.random(800) < 0.4)).astype(int)
    plain, even = (
        axis_tree(X, y, n_classes=2, criterion=c, **QUICK).machine.predict(X)
        for c in ("accuracy", "balanced")
    )
    assert balanced_accuracy_score(y, even) > balanced_accuracy_score(y, plain) + 0.1


# -- costs and directions -------------------------------------------------------------------------


def test_leaves_and_features_must_earn_their_cost():
    X, y = make_friedman1(300, random_state=0)
    plain = axis_tree(X, y, **QUICK).machine
    assert axis_tree(X, y, leaf_cost=0.05, **QUICK).machine.n_leaves < plain.n_leaves
    assert axis_tree(X, y, leaf_cost=2.0, **QUICK).machine.n_leaves == 1
    asked = set(plain.selection.tolist())
    feature = int(plain.selection[0])
    cheap = axis_tree(X, y, feature_costs={feature: 1.0}, **QUICK).machine
    assert feature in asked
    assert feature not in set(cheap.selection.tolist())


def test_a_row_pays_once_for_a_feature_on_its_path():
    from decision_machines.train.axis.nodes import Nodes

    nodes = Nodes(
        np.array([1, 2, -1, -1, -1]), np.array([4, 3, -1, -1, -1]),
        np.array([0, 0, -1, -1, -1], np.int32), np.zeros(5), np.zeros(5, np.uint8),
    )  # fmt: skip
    weight = np.array([0.0, 0, 2, 1, 1])
    assert nodes.paid(np.array([3.0, 5.0]), weight) == pytest.approx(3.0)
    other = Nodes(nodes.left, nodes.right, np.array([0, 1, -1, -1, -1], np.int32), nodes.t,
                  nodes.missing_left)  # fmt: skip
    assert other.paid(np.array([3.0, 5.0]), weight) == pytest.approx(3 + 5 * 3 / 4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.15]))
def test_directions_are_kept_for_every_input(seed, is_classes, missing):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((120, 3)), 1)
    X[rng.random(X.shape) < missing] = np.nan
    y = np.nan_to_num(X[:, 0]) - np.nan_to_num(X[:, 1]) + rng.standard_normal(120) * 2
    target, n_classes = ((y > 0).astype(int), 2) if is_classes else (y, None)
    options = QUICK | {"n_iterations": 10}
    fit = axis_tree(X, target, n_classes=n_classes, monotone=[1, -1, 0], **options)
    for feature, direction in ((0, "increasing"), (1, "decreasing")):
        output = 1 if is_classes else None
        shown = fit.machine.is_monotone(feature, direction, output=output)
        assert shown.verdict == "proven", shown


def test_without_directions_the_same_data_are_not_monotone():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    y = np.sin(9 * X[:, 0]) + 0.1 * rng.standard_normal(200)
    assert axis_tree(X, y, **QUICK).machine.is_monotone(0).verdict != "proven"
    assert axis_tree(X, y, monotone={0: 1}, **QUICK).machine.is_monotone(0).verdict == "proven"


# -- many rows, and little time -------------------------------------------------------------------


def test_a_sample_finds_a_tree_that_is_as_good_and_does_not_depend_on_threads(monkeypatch):
    X, y = make_friedman1(900, random_state=0)
    whole = axis_tree(X, y, **QUICK)
    monkeypatch.setattr(choice_module, "MOST_ROWS", 200)
    one, two = (axis_tree(X, y, **QUICK | {"n_threads": n}) for n in (1, 3))
    assert np.array_equal(one.machine.t, two.machine.t)
    assert np.array_equal(one.machine.V, two.machine.V)
    lost, lost_whole = (
        np.mean((fit.machine.predict(X) - y) ** 2) / np.var(y) for fit in (one, whole)
    )
    assert lost < lost_whole + 0.05
    labels = (y > 14).astype(int)
    fit = axis_tree(X, labels, n_classes=2, **QUICK)
    assert np.mean(fit.machine.predict(X) == labels) > 0.8


def test_when_time_is_up_the_best_so_far_is_taken():
    X, y = make_friedman1(400, random_state=0)
    fit = axis_tree(X, y, time_limit=1e-3, **QUICK | {"n_iterations": 10**6})
    assert fit.report["late"]
    assert not fit.report["interrupted"]
    assert np.isfinite(fit.machine.predict(X)).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"criterion": "auc"}, "criterion='auc' for numbers"),
        ({"criterion": "mse"}, "criterion='mse'"),
        ({"criterion": "quantile", "quantile": 1.0}, "quantile=1.0"),
        ({"criterion": "poisson"}, "y[0] = -1.0"),
        ({"leaf_cost": -1}, "leaf_cost=-1"),
        ({"leaf_cost": "much"}, "leaf_cost='much'"),
        ({"feature_costs": [1.0]}, "feature_costs of shape (1,)"),
        ({"feature_costs": [1.0, -2.0]}, "feature_costs[1] = -2.0"),
        ({"feature_costs": {5: 1.0}}, "feature_costs for feature 5"),
        ({"monotone": [0.5, 0]}, "monotone[0] = 0.5"),
        ({"monotone": "up"}, "monotone='up'"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"n_classes": 3, "y": [0, 1, 2], "monotone": [1, 0]}, "monotone with 3 classes"),
    ],
)
def test_rubbish_is_refused_in_three_parts(options, says):
    y = options.pop("y", [-1.0, 0.0, 1.0])
    with pytest.raises(dm.InputError) as error:
        axis_tree([[1.0, 2.0], [2.0, 3.0], [0.0, 1.0]], y, **options)
    assert says in error.value.found
    assert "What to do:" in str(error.value)
