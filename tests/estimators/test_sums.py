"""``n_trees="auto"``: sums of machines through the estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import decision_machines as dm
from decision_machines import DecisionMachineClassifier, DecisionMachineRegressor
from decision_machines.errors import InputError
from decision_machines.train.sums import candidates, fit, soft_forest

pytest.importorskip("torch")
pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    names = ["scikit-learn histograms", candidates.FOREST]
    monkeypatch.setattr(candidates.Candidates, "names", lambda self: list(names))
    monkeypatch.setattr(candidates, "TRIED", ())
    monkeypatch.setattr(soft_forest, "STEPS", 20)
    monkeypatch.setattr(soft_forest, "FEWEST_EPOCHS", 2)
    monkeypatch.setattr(soft_forest, "TREES", 4)
    monkeypatch.setattr(fit, "FOLDS", ((10_000, 2),))


AUTO = {"n_trees": "auto", "soft": True, "n_threads": 1}


def table(m=240, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=m)
    size[::11] = np.nan
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue", None], m),
            "size": size,
            "weight": rng.normal(size=m),
            "height": rng.normal(size=m),
        }
    )
    y = (X["colour"] == "red") * 2.0 + np.nan_to_num(size) + X["weight"] + rng.normal(size=m) * 0.2
    return X, y.to_numpy()


def test_a_table_of_text_and_gaps_is_learned_and_saved(tmp_path):
    X, y = table()
    model = DecisionMachineClassifier(**AUTO).fit(X, np.where(y > 1, "high", "low"))
    assert model.score(X, np.where(y > 1, "high", "low")) > 0.8
    one = X[:1].assign(colour="violet")  # a label that was never seen
    assert model.predict_proba(one).shape == (1, 2)
    soft, path = dm.convert(model), tmp_path / "sum.dm"
    soft.save(path)
    both = pd.concat([X, one])
    assert np.array_equal(dm.load(path).predict(both), model.predict(both))
    assert np.array_equal(dm.load(path).predict_proba(both), model.predict_proba(both))
    assert set(model.machine_.predict(X)) <= {"high", "low"}
    assert "the sum" in str(model.report_)
    assert candidates.FOREST in [one["name"] for one in model.report_["tried"]]


def test_hard_answers_are_the_machines():
    X, y = table()
    model = DecisionMachineRegressor(n_trees="auto", n_threads=1).fit(X, y)
    assert model.soft_ is None
    assert np.array_equal(model.predict(X), model.machine_.predict(X))


def test_intervals_cover_new_rows():
    X, y = table(900)
    model = DecisionMachineRegressor(**AUTO, interval=0.8).fit(X[:300], y[:300])
    bounds = model.predict_interval(X[300:])
    inside = (bounds[:, 0] <= y[300:]) & (y[300:] <= bounds[:, 1])
    assert 0.72 < inside.mean() < 0.9
    wide = clone(model).set_params(interval=0.99)
    wide.fit(X[:70], y[:70])
    assert np.isinf(wide.predict_interval(X[:2])).all()  # 70 rows cannot promise that


@pytest.mark.parametrize("criterion", ["quantile", "poisson"])
def test_criteria_of_the_sum(criterion):
    X, y = table(400)
    y = np.floor(np.exp(y.clip(-3, 3))) if criterion == "poisson" else y
    model = DecisionMachineRegressor(**AUTO, criterion=criterion, quantile=0.9)
    answer, y = model.fit(X[:300], y[:300]).predict(X[300:]), y[300:]
    if criterion == "poisson":
        assert np.all(answer > 0)
        assert answer.mean() == pytest.approx(y.mean(), rel=0.5)
        return

    def pinball(answer):
        return np.mean(np.maximum(0.9 * (y - answer), 0.1 * (answer - y)))

    assert pinball(answer) < 0.8 * pinball(np.quantile(y, 0.9))
    assert np.mean(y <= answer) > 0.6


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"oblique": True}, "oblique"),
        ({"warm_start": True}, "warm_start"),
        ({"monotone": {0: 1}}, "monotone"),
        ({"criterion": "logistic"}, "criterion"),
        ({"criterion": "gamma"}, "above 0"),
        ({"interval": 1.5}, "interval"),
        ({"time_limit": 0}, "time_limit"),
        ({"n_trees": "many"}, "n_trees"),
        ({"n_trees": 5, "time_limit": 3.0}, "time_limit"),
        ({"n_trees": 5, "interval": 0.9}, "interval"),
    ],
)
def test_what_does_not_fit_is_refused(given, words):
    X, y = table(80)
    with pytest.raises(InputError, match=words):
        DecisionMachineRegressor(**{**AUTO, **given}).fit(X, y)


def test_two_targets_are_refused():
    X, y = table(80)
    with pytest.raises(InputError, match="2 columns"):
        DecisionMachineRegressor(**AUTO).fit(X, np.stack([y, y], axis=1))


@pytest.fixture
def small(monkeypatch):
    """Rows are few in scikit-learn's checks: they ask for the contract, not for the choice."""
    monkeypatch.setattr(fit, "FEWEST_ROWS", 10**6)
    monkeypatch.setattr(fit, "FEW_TREES", 40)


@pytest.mark.usefixtures("small")
@parametrize_with_checks([DecisionMachineClassifier(**AUTO), DecisionMachineRegressor(**AUTO)])
def test_scikit_learns_contract(estimator, check):
    check(estimator)
