"""Oblique trees: soft ones trained side by side, the hard one chosen, and data of every kind."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import decision_machines as dm  # noqa: E402
from decision_machines.errors import InputError  # noqa: E402
from decision_machines.train import Watch  # noqa: E402
from decision_machines.train.adam import Batches  # noqa: E402
from decision_machines.train.complete import (  # noqa: E402
    CompleteTrees,
    Space,
    Weigh,
    train_complete,
    with_ones,
)
from decision_machines.train.oblique import oblique_tree  # noqa: E402
from decision_machines.train.oblique.candidates import Judged  # noqa: E402
from decision_machines.train.oblique.descent import train_classes  # noqa: E402
from decision_machines.train.oblique.recipes import RECIPES, SLOW_RECIPES  # noqa: E402
from decision_machines.train.oblique.search import ClassSearch, Effort  # noqa: E402
from decision_machines.train.oblique.soft_batch import SoftBatch  # noqa: E402
from decision_machines.train.scaling import Scaling  # noqa: E402

LITTLE = Effort(
    n_first=1, n_second=1, first_steps=80, second_steps=120, recipes=RECIPES[1:6:2], n_sweeps=3
)


def diagonal(m=300, n=4, n_classes=3, seed=0):
    """Rows whose class is the number of planes that they are above of."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    planes = X @ rng.normal(size=(n, n_classes - 1))
    return X, (planes > 0).sum(1)


def train(X, y, n_classes=None, **options):
    n_classes = int(np.max(y)) + 1 if n_classes is None else n_classes
    return oblique_tree(
        X, y, n_classes=n_classes, **{"depth": 2, "effort": LITTLE, "verbose": False} | options
    )


def accuracy(fit, X, y):
    return np.mean(fit.machine.predict(X) == y)


# ---------------------------------------------------------------------- soft trees, many at once


def test_gradients_of_the_weights_are_those_of_finite_differences():
    trees = CompleteTrees(3, 3, 2, dtype=torch.float64)
    X = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    beta = torch.tensor([1.0, 3.0], dtype=torch.float64)[:, None, None]
    rows = with_ones(X)
    torch.autograd.gradcheck(
        lambda W, t: Weigh.apply(W, t, rows, beta, False, Space()), (trees.W, trees.t)
    )


@pytest.mark.parametrize("straight_through", [False, True])
def test_weights_over_leaves_sum_to_one(straight_through):
    trees, X = CompleteTrees(4, 4, 3), torch.randn(20, 4)
    p = trees.weights(X, 2.0, straight_through)
    assert p.shape == (3, 16, 20)
    assert torch.allclose(p.sum(1), torch.ones(3, 20))


def test_straight_through_weighs_the_exit_leaf_alone_and_still_learns():
    trees, X = CompleteTrees(4, 3, 2), torch.randn(20, 4)
    p = trees.weights(X, 1.0, straight_through=True)
    assert torch.equal(p.argmax(1), trees.exit_leaves(X))
    assert torch.equal(p.max(1).values, torch.ones(2, 20))
    (p * torch.randn(2, 8, 20)).sum().backward()
    assert trees.W.grad.abs().sum() > 0


def test_steep_weights_are_the_exit_leaf():
    trees, X = CompleteTrees(4, 3, 2), torch.randn(50, 4)
    assert torch.equal(trees.weights(X, 1e5).argmax(1), trees.exit_leaves(X))


def test_trees_trained_together_are_the_trees_trained_alone():
    X, y = diagonal(60)
    X, y = torch.tensor(X, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)

    def go(which):
        trees = CompleteTrees(4, 2, 3, seed=1, normalised=[True, False, False], dtype=X.dtype)
        trees = trees.keep(which)
        V = torch.arange(4.0, dtype=X.dtype).expand(len(which), 4).clone().requires_grad_()
        settings = {
            "lr": [0.01, 0.05, 0.1],
            "decay": [0.0, 0.5, 0.0],
            "l1": [0.0, 0.0, 0.3],
        }
        settings = {name: [values[i] for i in which] for name, values in settings.items()}
        slopes = [1.0, 1.0, 2.0], [4.0, 1.0, 9.0]
        train_complete(
            trees,
            X,
            lambda p, rows: ((p * V[:, :, None]).sum(1) - y[rows]).square().mean(1),
            [V],
            n_steps=30,
            batch_size=16,
            slopes=tuple([s[i] for i in which] for s in slopes),
            **settings,
        )
        return trees.W.detach()

    together = go([0, 1, 2])
    for r in range(3):
        assert torch.allclose(go([r])[0], together[r])
    assert torch.allclose(together[0].norm(dim=-1), torch.ones(3, dtype=X.dtype))
    assert (together[2] == 0).any()


@pytest.mark.parametrize(("depth", "batch_size"), [(1, 16), (3, 16), (4, 1000)])
def test_steps_written_out_are_those_of_autograd(depth, batch_size):
    X, y = diagonal(60)
    X = torch.tensor(X, dtype=torch.float32)
    target = torch.nn.functional.one_hot(torch.tensor(y), 3).T * torch.linspace(0.5, 1.5, 60)

    def start():
        return SoftBatch.start(4, 3, depth, RECIPES, seed=3)

    batch, other = start(), start()
    train_classes(batch, X, target, n_steps=25, batch_size=batch_size, seed=4)

    def loss(p, rows):
        answer = torch.bmm(other.V.softmax(-1).transpose(1, 2), p)
        return -((answer + 1e-7).log() * target[:, rows]).sum(1).mean(1)

    settings = {
        name: [getattr(r, name) for r in RECIPES] for name in ("lr", "decay", "l1", "slopes")
    }
    settings["slopes"] = tuple(zip(*settings["slopes"], strict=True))
    train_complete(
        other.trees, X, loss, [other.V], n_steps=25, batch_size=batch_size, seed=4, **settings
    )
    for part, same in (
        (batch.trees.W, other.trees.W),
        (batch.trees.t, other.trees.t),
        (batch.V, other.V),
    ):
        assert torch.allclose(part, same, atol=2e-3)


def test_every_row_is_in_one_batch_of_an_epoch():
    batches = Batches(12, 4, torch.Generator().manual_seed(0))
    seen = torch.cat([batches.next() for _ in range(3)])
    assert sorted(seen.tolist()) == list(range(12))


# ---------------------------------------------------------------------- the tree that comes out


def test_planes_are_found():
    X, y = diagonal(600)
    fit = train(X[:400], y[:400], validation=(X[400:], y[400:]), depth=3)
    assert accuracy(fit, X[400:], y[400:]) > 0.93
    assert fit.machine.is_oblique
    assert fit.machine.depth == 3


def test_scores_of_the_report_are_those_of_the_machine():
    X, y = diagonal(300, seed=2)
    X_valid, y_valid = diagonal(100, seed=3)
    weight = np.random.default_rng(0).exponential(size=100)
    fit = train(X, y, validation=(X_valid, y_valid, weight))
    is_right = fit.machine.predict(X_valid) == y_valid
    found = np.average(is_right, weights=weight)
    assert fit.report["validation accuracy"] == pytest.approx(found)


def test_probabilities_and_labels_are_those_of_a_classifier():
    X, y = diagonal(200)
    fit = train(X, y, n_classes=5)
    P = fit.machine.predict_proba(X)
    assert P.shape == (200, 5)
    assert P.sum(1) == pytest.approx(np.ones(200))
    np.testing.assert_array_equal(fit.machine.predict(X), P.argmax(1))
    np.testing.assert_array_equal(fit.machine.output.classes[0], np.arange(5))


def test_the_same_seed_gives_the_same_tree_and_another_another():
    X, y = diagonal(150)
    first, again, other = (train(X, y, seed=seed).machine for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.S.toarray(), again.S.toarray())
    np.testing.assert_array_equal(first.V, again.V)
    assert not np.array_equal(first.S.toarray(), other.S.toarray())


def test_saved_and_loaded_it_answers_the_same(tmp_path):
    X, y = diagonal(100)
    fit = train(X, y)
    fit.machine.save(tmp_path / "tree.dm")
    loaded = dm.load(tmp_path / "tree.dm")
    np.testing.assert_array_equal(loaded.predict_proba(X), fit.machine.predict_proba(X))


# ---------------------------------------------------------------------- its soft module


def test_the_soft_module_hardens_to_the_machine():
    X, y = diagonal(200)
    X[::7, 1] = np.nan
    fit = train(X, y)
    hard = fit.soft.harden()
    np.testing.assert_array_equal(hard.S.toarray(), fit.machine.S.toarray())
    np.testing.assert_array_equal(hard.t, fit.machine.t)
    np.testing.assert_array_equal(hard.predict_proba(X), fit.machine.predict_proba(X))


def test_the_soft_module_answers_as_the_machine_where_it_is_sharp():
    X, y = diagonal(200)
    fit = train(X, y)
    soft = fit.soft(torch.tensor(X)).detach().numpy()
    assert soft.sum(1) == pytest.approx(np.ones(200))
    assert np.mean(soft.argmax(1) == y) > 0.85
    fit.soft.tau = 1e-9
    sharp = fit.soft(torch.tensor(X)).detach().numpy()
    assert sharp == pytest.approx(fit.machine.predict_proba(X))


def test_untouched_leaves_answer_softly_as_they_were_trained():
    """Where nothing was refitted or swept, the module is the very tree that was trained."""
    batch = SoftBatch.start(3, 2, 2, RECIPES[:2], seed=0)
    X = torch.randn(30, 3)
    trees, P = batch.hard()
    from decision_machines.train.fold import class_output, machine_of
    from decision_machines.train.scaling import Scaling

    plain = Scaling(np.zeros(3), np.ones(3), np.ones(3, bool))
    for r in range(2):
        machine = machine_of(
            trees.W[r], trees.t[r], trees.goes_right[r], P[r], plain, output=class_output(2)
        )
        soft = machine.soften("soft_tree", slope=trees.slope[r])(X.double())
        assert torch.allclose(soft.float().T, batch.probabilities(X)[r], atol=1e-5)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "depth", "is_slow"),
    [
        (43_000, 126, 8, True),
        (20_000, 126, 8, False),
        (43_000, 126, 5, False),
        (48_000, 784, 8, False),
    ],
)
def test_deep_trees_of_many_rows_are_also_trained_slowly(n_rows, n_features, depth, is_slow):
    effort = Effort.usual(n_rows, n_features, depth)
    assert set(SLOW_RECIPES) <= set(effort.recipes) if is_slow else effort.recipes == RECIPES
    assert effort.teach_together == is_slow
    assert (effort.second_steps > 4000) == is_slow


def test_names_of_recipes_are_their_own():
    names = [recipe.name for recipe in (*RECIPES, *SLOW_RECIPES)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("together", [False, True])
def test_trees_of_all_recipes_teach_together_where_they_may(together):
    X, y = diagonal(60)
    rows = Judged(X, y, np.ones(60))
    effort = Effort(1, 1, 1, 1, teach_together=together)
    search = ClassSearch(rows, rows, n_classes=3, depth=1, effort=effort, seed=0)
    batch = SoftBatch.start(4, 3, 1, RECIPES[:2], seed=0)
    # Each tree is sure of one class more than half of the rows are not of; both are less wrong.
    with torch.no_grad():
        batch.V[:] = torch.tensor([[9.0, 0.0, 9.0], [0.0, 9.0, 0.0]])[:, None]
    assert len(search._teacher(batch).which) == (2 if together else 1)


# ---------------------------------------------------------------------- data of every kind


def test_a_rare_indicator_is_not_the_largest_feature():
    rng = np.random.default_rng(0)
    rare, usual = np.arange(1000) < 2, np.arange(1000) % 2
    X = np.column_stack([rare, usual, 2.0 * rare, rng.normal(size=1000)]).astype(float)
    X[0, 1] = np.nan
    scaling, plain = Scaling.of(X, least_of_indicators=0.3), Scaling.of(X)
    assert scaling.spread[0] == 0.3
    assert np.array_equal(scaling.spread[1:], plain.spread[1:])
    assert np.array_equal(scaling.centre, plain.centre)


def test_an_indicator_that_is_rare_still_tells_its_class():
    X, y = diagonal(400)
    rare = np.arange(400) % 40 == 0
    fit = train(np.column_stack([X, rare]), np.where(rare, 3, y), depth=3)
    assert accuracy(fit, np.column_stack([X, rare])[rare], np.full(rare.sum(), 3)) > 0.8


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_no_scaling_is_asked_of_the_user(scale):
    X, y = diagonal(200)
    plain = train(X, y)
    scaled = train(X * scale, y)
    assert np.all(np.isfinite(scaled.machine.t))
    assert accuracy(scaled, X * scale, y) == pytest.approx(accuracy(plain, X, y), abs=0.02)


def test_features_far_from_zero_are_as_good_as_others():
    X, y = diagonal(200)
    moved = X * [1e-3, 1, 1e3, 1e6] + [0, 1e5, -1e6, 1e9]
    assert accuracy(train(moved, y), moved, y) > 0.85


def test_constant_features_are_not_read():
    X, y = diagonal(200)
    X = np.column_stack([np.full(200, 3.7), X, np.zeros(200)])
    fit = train(X, y)
    S = fit.machine.S.toarray()
    assert not S[:, [0, 5]].any()
    assert accuracy(fit, X, y) > 0.85


def test_features_that_never_vary_give_one_leaf():
    X, y = np.ones((30, 2)), np.arange(30) % 3
    fit = train(X, y, validation=(X, y))
    assert fit.machine.n_leaves == 1
    assert fit.machine.predict_proba(np.zeros((2, 2))) == pytest.approx(np.full((2, 3), 1 / 3))


def test_one_class_gives_one_leaf_and_a_soft_module():
    X, _ = diagonal(50)
    fit = train(X, np.full(50, 1), n_classes=3)
    assert fit.machine.n_leaves == 1
    np.testing.assert_array_equal(fit.machine.predict(X), np.ones(50))
    assert torch.allclose(fit.soft(torch.tensor(X))[:, 1], torch.ones(50, dtype=torch.float64))


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_few_rows_are_enough(m):
    X = np.arange(m, dtype=float)[:, None]
    y = np.arange(m) % 2
    fit = train(X, y, n_classes=2)
    assert np.all(np.isfinite(fit.machine.V))
    assert accuracy(fit, X, y) >= 0.6


def test_duplicated_rows_with_different_classes_are_no_harm():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 40, axis=0)
    y = (np.arange(80) % 4 == 0).astype(int)
    fit = train(X, y)
    assert accuracy(fit, X, y) == 0.75


def test_a_rare_class_is_found_where_it_can_be_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.zeros(600, int)
    y[:12] = 1
    X[:12] += 6
    fit = train(X, y)
    assert np.mean(fit.machine.predict(X)[:12] == 1) > 0.8


def test_weights_decide_between_rows_that_contradict_each_other():
    X = np.tile([[-1.0], [1.0]], (60, 1))
    y = np.concatenate([np.tile([0, 1], 30), np.tile([1, 0], 30)])
    first = np.arange(120) < 60
    for weight, right in ((np.where(first, 9.0, 1.0), y[:2]), (np.where(first, 0, 1.0), 1 - y[:2])):
        fit = train(X, y, sample_weight=weight)
        np.testing.assert_array_equal(fit.machine.predict(X[:2]), right)


def test_weights_of_any_size_give_the_same_tree():
    X, y = diagonal(100)
    weight = np.random.default_rng(0).exponential(size=100)
    first, second = (train(X, y, sample_weight=weight * s).machine for s in (1.0, 1024.0))
    np.testing.assert_allclose(first.S.toarray(), second.S.toarray())


# ---------------------------------------------------------------------- missing values


@pytest.mark.parametrize("missing", ["auto", "answer", "zero"])
def test_the_machine_answers_rows_with_nan_as_it_did_in_training(missing):
    rng = np.random.default_rng(0)
    X, y = diagonal(400)
    X[rng.random(X.shape) < 0.1] = np.nan
    fit = train(X[:300], y[:300], validation=(X[300:], y[300:]), missing=missing)
    found = accuracy(fit, X[300:], y[300:])
    assert fit.report["validation accuracy"] == pytest.approx(found)
    assert fit.report["missing"] in ("answer", "zero")
    assert found > 0.5


def test_a_missing_value_that_tells_the_class_is_used():
    X, y = diagonal(300, n_classes=2)
    X[:100, 0], y[:100] = np.nan, 1
    fit = train(X, y, missing="answer")
    assert np.mean(fit.machine.predict(X[:100]) == 1) > 0.9


def test_a_nan_where_training_had_none_goes_the_way_of_more_rows():
    X, y = diagonal(300, n_classes=2)
    y[X[:, 0] < 1.0] = 0
    fit = train(X, y, depth=1)
    side = fit.machine.apply(X)[:, 0]
    lost = fit.machine.apply(np.full((1, 4), np.nan))[0, 0]
    assert lost == np.bincount(side).argmax()


def test_a_feature_that_is_always_missing_is_not_read():
    X, y = diagonal(200)
    X = np.column_stack([np.full(200, np.nan), X])
    fit = train(X, y)
    assert not fit.machine.S.toarray()[:, 0].any()
    assert accuracy(fit, X, y) > 0.8


# ---------------------------------------------------------------------- interruption and threads


@pytest.mark.parametrize("after", [0, 5, 90])
def test_an_interruption_is_raised_or_gives_the_best_so_far_where_asked(monkeypatch, after):
    X, y = diagonal(200)
    step = Watch.step

    def stop(self, **numbers):
        if len(self.history) >= after:
            raise KeyboardInterrupt
        step(self, **numbers)

    monkeypatch.setattr(Watch, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        train(X, y)
    fit = train(X, y, keep_best_on_interrupt=True)
    assert fit.report["interrupted"]
    assert len(fit.history) == after
    assert fit.machine.n_leaves == 4
    assert accuracy(fit, X, y) > (0.8 if after == 90 else 0.3)


def test_threads_are_as_before():
    X, y = diagonal(60)
    before = torch.get_num_threads()
    seen = []

    def look(self, **numbers):
        seen.append(torch.get_num_threads())
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watch, "step", look)
        train(X, y, n_threads=before + 1, keep_best_on_interrupt=True)
    assert seen == [before + 1]
    assert torch.get_num_threads() == before


def test_the_curve_has_a_row_for_every_step():
    X, y = diagonal(100)
    fit = train(X, y)
    assert len(fit.history) in (LITTLE.first_steps, LITTLE.total)
    assert all(np.isfinite(row["loss"]) for row in fit.history)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"X": np.zeros(5)}, "shape"),
        ({"X": np.zeros((0, 2)), "y": np.zeros(0, int)}, "shape"),
        ({"X": np.full((50, 4), np.inf)}, "inf"),
        ({"y": np.full(50, 7)}, "codes"),
        ({"y": np.full(50, -1)}, "codes"),
        ({"y": np.full(50, 0.5)}, "codes"),
        ({"sample_weight": np.full(50, -1.0)}, "weight"),
        ({"sample_weight": np.ones(3)}, "weight"),
        ({"validation": (np.zeros((3, 9)), np.zeros(3, int))}, "features"),
        ({"depth": -1}, "depth"),
        ({"depth": 2.5}, "depth"),
        ({"missing": "mean"}, "missing"),
        ({"leaves": "linear"}, "leaves"),
        ({"n_threads": 0}, "n_threads"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_input_is_named(change, said):
    X, y = diagonal(50)
    given = {"X": X, "y": y} | change
    with pytest.raises(InputError, match=said):
        oblique_tree(
            given.pop("X"),
            given.pop("y"),
            **{"n_classes": 3, "effort": LITTLE, "verbose": False} | given,
        )
