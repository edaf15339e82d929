"""Pictures draw what the machine answers."""

from __future__ import annotations

from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from strategies import machines

import decision_machines as dm
from decision_machines.machine.words import words_of_leaf, words_of_test
from decision_machines.show import plot_learning_curve


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y, dm.convert(DecisionTreeClassifier(max_leaf_nodes=7, random_state=0).fit(X, y))


# -- trees ----------------------------------------------------------------------------------------


def test_a_tree_is_drawn_with_every_test_and_every_leaf_in_words():
    machine = dm.figure_one()
    drawn = machine.plot_tree()
    texts = [text.get_text() for text in drawn.ax_.texts]
    for test in range(machine.n_tests):
        assert words_of_test(machine, test) in texts
    for leaf in range(machine.n_leaves):
        assert words_of_leaf(machine, leaf) in texts


def test_the_lit_path_ends_at_the_exit_leaf(iris):
    X, _, machine = iris
    for x in X[::25]:
        leaf = machine.apply([x])[0, 0]
        path = machine.plot_tree(x=x).path
        assert path[-1] == machine.n_tests + leaf
        assert sorted(path[:-1]) == np.flatnonzero(machine.B[[leaf]].toarray()).tolist()


def test_branches_count_the_rows_that_go_along(iris):
    X, _, machine = iris
    counts = machine.plot_tree(X=X).counts
    assert counts[0] == len(X)
    at_leaf = np.bincount(machine.apply(X)[:, 0], minlength=machine.n_leaves)
    assert np.array_equal(counts[machine.n_tests :], at_leaf)


@settings(max_examples=10, deadline=None)
@given(machine=machines())
def test_any_small_tree_can_be_drawn_and_leaves_stand_left_to_right(machine):
    for tree in range(min(machine.n_trees, 2)):
        drawn = machine.plot_tree(tree=tree)
        one = machine.tree(tree)
        leaves = drawn.position[one.n_tests :]
        assert np.array_equal(leaves[:, 0], np.arange(one.n_leaves))
        assert len(np.unique(drawn.position, axis=0)) == len(drawn.position)
        plt.close("all")


@pytest.mark.parametrize("n_leaves", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("counted", [False, True])
def test_boxes_of_a_tree_do_not_overlap_and_are_not_clipped(n_leaves, counted):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 500, (4000, 4)).astype(float)
    y = np.where(X @ rng.standard_normal(4) + 99 * rng.standard_normal(4000) > 0, "granted", "not")
    model = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
    machine = dm.convert(model)
    names = ("education-num", "hours-per-week", "capital-gain", "age in years")
    machine = replace(machine, columns=replace(machine.columns, names=names))
    drawn = machine.plot_tree(x=X[0], X=X if counted else None)
    assert machine.n_leaves == n_leaves
    drawn.figure_.canvas.draw()
    boxes = [
        text.get_bbox_patch().get_window_extent()
        for text in drawn.ax_.texts
        if text.get_bbox_patch() is not None
    ]
    assert len(boxes) == machine.n_tests + machine.n_leaves
    page = drawn.figure_.bbox
    for i, box in enumerate(boxes):
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
        for other in boxes[:i]:
            apart = box.x1 <= other.x0 or other.x1 <= box.x0
            assert apart or box.y1 <= other.y0 or other.y1 <= box.y0


def test_of_many_trees_one_must_be_chosen():
    X, y = load_iris(return_X_y=True)
    forest = dm.convert(RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y))
    with pytest.raises(dm.InputError, match="tree=0"):
        forest.plot_tree()
    assert forest.plot_tree(tree=2).ax_.get_title() == "tree 2 of 3"
    with pytest.raises(dm.InputError):
        forest.plot_tree(tree=3)


def test_a_tree_too_large_to_draw_is_refused_with_other_ways():
    X, y = load_diabetes(return_X_y=True)
    machine = dm.convert(DecisionTreeRegressor(random_state=0).fit(X, y))
    with pytest.raises(dm.InputError, match="explore"):
        machine.plot_tree()


# -- attention ------------------------------------------------------------------------------------


def test_hard_attention_is_the_exit_leaf(iris):
    X, _, machine = iris
    drawn = machine.plot_attention(X)
    assert np.array_equal(drawn.weights.argmax(1), machine.apply(X)[drawn.rows, 0])
    assert np.array_equal(np.asarray(drawn.ax_.images[0].get_array()), drawn.weights)


def test_soft_attention_is_the_modules_weights(iris):
    torch = pytest.importorskip("torch")
    X, _, machine = iris
    drawn = machine.plot_attention(X, tau=0.3, form="sparsemax")
    net = machine.soften("sparsemax", tau=0.3)
    rows = torch.from_numpy(machine.features(X)[drawn.rows])
    assert np.array_equal(drawn.weights, net(rows, return_weights=True)[1].detach().numpy())


@pytest.mark.parametrize("rows", [np.empty((0, 4)), np.zeros((5000, 4))])
def test_rows_that_make_no_picture_are_refused(rows):
    with pytest.raises(dm.InputError, match="drawing attention"):
        dm.figure_one().plot_attention(rows)


# -- two features ---------------------------------------------------------------------------------


def test_the_plane_holds_the_machines_predictions(iris):
    X, y, machine = iris
    drawn = machine.plot_boundary(X, features=(2, 3), y=y, resolution=20)
    row = np.median(X, axis=0)
    row[[2, 3]] = drawn.xx0[7, 11], drawn.xx1[7, 11]
    assert drawn.response[7, 11] == machine.predict([row])[0]
    held = machine.plot_boundary(X, features=(2, 3), at=X[0], resolution=20)
    row = X[0].copy()
    row[[2, 3]] = held.xx0[3, 4], held.xx1[3, 4]
    assert held.response[3, 4] == machine.predict([row])[0]


def test_regression_and_missing_values_are_drawn_too():
    X, y = load_diabetes(return_X_y=True)
    machine = dm.convert(DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y))
    X = X.copy()
    X[::7, 2] = np.nan
    drawn = machine.plot_boundary(X, features=(2, 8), y=y, resolution=15)
    assert np.isfinite(drawn.response).all()


@pytest.mark.parametrize(
    "options",
    [
        {"features": (0, 0)},
        {"features": (0, 9)},
        {"features": ("no such name", 1)},
        {"resolution": 1},
        {"y": [1, 2]},
    ],
)
def test_a_plane_of_nonsense_is_refused(iris, options):
    X, _, machine = iris
    with pytest.raises(dm.InputError, match="drawing a boundary"):
        machine.plot_boundary(X, **options)


# -- learning curves ------------------------------------------------------------------------------


def test_a_learning_curve_shows_the_history():
    history = [{"step": i, "seconds": i / 2, "loss": 1 / i, "valid": 2 / i} for i in range(1, 5)]
    drawn = plot_learning_curve(history, names=["valid"], against="seconds")
    at, values = drawn.ax_.lines[0].get_data()
    assert np.array_equal(at, [0.5, 1.0, 1.5, 2.0])
    assert np.array_equal(values, [2, 1, 2 / 3, 0.5])
    for nonsense in ({"names": ["other"]}, {"against": "epochs"}):
        with pytest.raises(dm.InputError, match="learning curve"):
            plot_learning_curve(history, **nonsense)
    with pytest.raises(dm.InputError, match="without numbers"):
        plot_learning_curve([])


# -- notebooks ------------------------------------------------------------------------------------


def test_names_cannot_inject_markup_into_a_notebook():
    evil = "</td><script>alert(1)</script>"
    machine = dm.figure_one()
    columns = replace(machine.columns, names=(evil, 'b"', "c'", "d<img src=x>"))
    html = replace(machine, columns=columns, source=evil)._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script" in html


def test_a_notebook_shows_templates_of_a_small_tree_only(iris):
    assert dm.figure_one()._repr_html_().count("+1") == np.count_nonzero(
        dm.figure_one().B.toarray() == 1
    )
    many = dm.direct_sum([dm.figure_one()] * 2)
    assert "templates" not in many._repr_html_()
