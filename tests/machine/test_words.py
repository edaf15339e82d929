"""Machines in words."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import decision_machines as dm
from decision_machines.machine.words import words_of_leaf


def test_a_leaf_says_its_class_and_its_share_also_where_there_is_one_class():
    X = np.arange(4.0)[:, None]
    one = dm.convert(DecisionTreeClassifier().fit(X, ["only"] * 4))
    assert words_of_leaf(one, 0) == "only (100%)"
    two = dm.convert(DecisionTreeClassifier(max_depth=1).fit(X, ["a", "a", "a", "b"]))
    assert [words_of_leaf(two, leaf) for leaf in range(2)] == ["a (100%)", "b (100%)"]
