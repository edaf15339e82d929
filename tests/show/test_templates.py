"""The picture of B."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import decision_machines as dm


def test_the_picture_is_the_matrix():
    drawn = dm.figure_one().plot_templates()
    assert np.array_equal(np.asarray(drawn.ax_.images[0].get_array()), dm.figure_one().B.toarray())
    plt.close(drawn.figure_)


def test_chosen_trees_are_drawn_on_given_axes():
    one = dm.figure_one()
    both = dm.direct_sum([one, one, one])
    figure, ax = plt.subplots()
    drawn = both.plot_templates(ax, trees=[1])
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert ax.images[0].get_array().shape == (6, 5)
    plt.close(figure)


def test_more_than_a_picture_can_hold_is_refused():
    one = dm.figure_one()
    many = dm.direct_sum([one] * 500)
    with pytest.raises(dm.InputError, match="plot_templates\\(trees="):
        many.plot_templates()
