"""Inputs that lie on both sides of every test of a scikit-learn model, and comparisons by bits."""

import numpy as np
from sklearn import config_context

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 1e-45, 5e-324, 2.0**24 + 1, 1e300, -1e300]
)


def around(t, dtype):
    """Values at, just below and just above thresholds, in float64 and in the model's dtype."""
    t = np.asarray(t, np.float64)
    t = t[np.isfinite(t)]
    with np.errstate(over="ignore"):
        near = t.astype(dtype)
    low, high = (np.nextafter(near, np.array(side, dtype)) for side in (-np.inf, np.inf))
    low, near, high = (v.astype(np.float64) for v in (low, near, high))
    # Halfway between neighbours in float32, and a hair beside it: these round across thresholds.
    half = [(low + near) / 2, (near + high) / 2]
    hair = [np.nextafter(h, side) for h in half for side in (-np.inf, np.inf)]
    own = [t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf)]
    return np.concatenate([*own, low, near, high, *half, *hair])


def probes(feature, t, n_features, dtype=np.float32, special=SPECIAL, seed=0):
    """Random rows, each with one value next to a threshold of its feature, or a special one."""
    rng = np.random.default_rng(seed)
    feature, t = np.asarray(feature), np.asarray(t)
    _, first = np.unique(np.column_stack([feature, t]), axis=0, return_index=True)
    rows = []
    for f in range(n_features):
        values = np.concatenate([around(t[first][feature[first] == f], dtype), special])
        x = rng.standard_normal((len(values), n_features)) * 2
        x[:, f] = values
        rows.append(x)
    return np.concatenate(rows)


def tree_probes(trees, n_features, features=None, **options):
    """Probes of the tests of scikit-learn `Tree` objects."""
    feature, t = [], []
    for i, tree in enumerate(trees):
        is_test = tree.children_left >= 0
        own = tree.feature[is_test]
        feature.append(own if features is None else np.asarray(features[i])[own])
        t.append(tree.threshold[is_test])
    return probes(np.concatenate(feature), np.concatenate(t), n_features, **options)


def leaf_ids(machine, X):
    """(m, T) exit leaves in the source's own numbering."""
    return machine.trees.leaf_ids[machine.apply(X) + machine.trees.leaf_start[:-1]]


def same(a, b):
    """Equal to the bit, in shape and in kind; lists item by item."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b)


def assert_answers_as(machine, model, X):
    """predict, predict_proba and decision_function, NaN and inf let through."""
    with config_context(assume_finite=True), np.errstate(over="ignore"):
        assert same(machine.predict(X), model.predict(X))
        if hasattr(model, "predict_proba"):
            assert same(machine.predict_proba(X), model.predict_proba(X))
        if hasattr(model, "decision_function") and not hasattr(model, "score_samples"):
            margin = model.decision_function(X)
            assert same(machine.margin(X), margin.reshape(len(X), -1))
