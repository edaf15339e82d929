"""A damaged LightGBM text is refused with a reason, or is still a model as LightGBM reads it."""

from __future__ import annotations

import functools
import re

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decision_machines as dm
from decision_machines.libraries.lightgbm.read import read_lightgbm_text

ODD_NUMBERS = [
    "", "-1", "-2", "0", "1", "2", "3", "15", "-128", "255", "4294967295", "4294967296",
    "2147483647", "-9223372036854775808", "9223372036854775807", "9" * 30, "9" * 5000, "nan",
    "inf", "-inf", "1e999", "1e-999", "0x1p3", "1_000", "one", "\u0661", "1 1", "--1", "1e",
    "\x00", "null", "[]",
]  # fmt: skip


@functools.cache
def texts() -> tuple[str, ...]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).round(1)
    X[:, 2] = rng.integers(0, 70, 150)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] + X[:, 1] ** 2 + X[:, 2] % 3)
    common = {
        "verbosity": -1, "num_threads": 1, "num_leaves": 5, "min_data_in_leaf": 5,
        "min_data_per_group": 5, "cat_smooth": 1,
    }  # fmt: skip
    made = [
        lgb.train({**common, **params}, lgb.Dataset(X, label, categorical_feature=[2]), 3)
        for params, label in (
            ({"objective": "regression", "linear_tree": True}, y),
            ({"objective": "multiclass", "num_class": 3}, np.digitize(y, [1, 2])),
            ({"objective": "binary", "zero_as_missing": True}, y > 1.5),
            ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}, y),
        )
    ]
    T = pd.DataFrame({"a b": X[:, 0], "c": pd.Categorical(rng.choice(["x", "ü", "z"], 150))})
    made.append(lgb.train(common, lgb.Dataset(T, y), 2))
    return tuple(booster.model_to_string() for booster in made)


def with_right_sizes(text: str) -> str:
    """The text with tree_sizes counted anew, so that damage inside trees is met further on."""
    parts = re.split(r"(?=^Tree=|^end of trees)", text, flags=re.MULTILINE)
    sizes = [len(part.encode()) for part in parts if part.startswith("Tree=")]
    line = "tree_sizes=" + " ".join(map(str, sizes))
    return re.sub(r"^tree_sizes=.*$", line, text, count=1, flags=re.MULTILINE)


def read_or_refuse(data: bytes | str) -> dm.DecisionMachine | None:
    try:
        machine = read_lightgbm_text(data, "a damaged text")
    except (dm.ModelFormatError, dm.UnsupportedModelError):
        return None
    X = np.full((3, machine.n_features), np.nan)
    X[1:] = [[0.0], [1.0]]
    with np.errstate(all="ignore"):
        assert machine.predict(X).shape[0] == 3
    return machine


@given(st.data())
def test_a_truncated_text_is_refused_or_lacks_no_tree(data):
    text = data.draw(st.sampled_from(texts()))
    # Most of a text is its list of parameters, which no prediction reads.
    end = data.draw(st.integers(0, text.index("parameters:")) | st.integers(0, len(text)))
    machine = read_or_refuse(text[:end])
    if machine is not None:
        assert machine.n_trees == text.count("\nTree=")
        assert end > text.index("end of trees")


@given(st.data())
@settings(max_examples=300)
def test_an_edited_number_gives_a_reason_or_a_machine(data):
    text = data.draw(st.sampled_from(texts()))
    body = text[: text.index("feature_importances")]
    spots = [match.span() for match in re.finditer(r"(?<=[= :])-?[\d.][\d.e+-]*", body)]
    start, stop = data.draw(st.sampled_from(spots))
    number = data.draw(
        st.sampled_from(ODD_NUMBERS) | st.floats().map(repr) | st.integers().map(str)
    )
    edited = text[:start] + number + text[stop:]
    read_or_refuse(edited)
    read_or_refuse(with_right_sizes(edited))


@given(st.data())
@settings(max_examples=150)
def test_a_lost_doubled_or_moved_line_gives_a_reason_or_a_machine(data):
    text = data.draw(st.sampled_from(texts()))
    lines = text[: text.index("parameters:")].split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    to = data.draw(st.integers(0, len(lines) - 1))
    kind = data.draw(st.sampled_from(["lose", "double", "move", "swap"]))
    if kind == "double":
        lines.insert(to, lines[at])
    elif kind == "move":
        lines.insert(to, lines.pop(at))
    elif kind == "swap":
        lines[at], lines[to] = lines[to], lines[at]
    else:
        lines.pop(at)
    edited = "\n".join(lines) + "parameters:\nend of parameters\n"
    read_or_refuse(edited)
    read_or_refuse(with_right_sizes(edited))


@given(st.data())
@settings(max_examples=150)
def test_bytes_overwritten_at_random_give_a_reason_or_a_machine(data):
    raw = bytearray(data.draw(st.sampled_from(texts())).encode())
    body = raw.index(b"parameters:")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, body - 1))
        new = data.draw(st.binary(min_size=1, max_size=6) | st.sampled_from([b"\n", b"=", b" -9"]))
        raw[at : at + len(new)] = new
    read_or_refuse(bytes(raw))


@given(st.binary(max_size=300))
def test_any_bytes_after_the_first_line_give_a_reason(noise):
    assert read_or_refuse(b"tree\n" + noise) is None


@given(st.data())
@settings(max_examples=100)
def test_values_and_thresholds_edited_by_hand_mean_to_us_what_they_mean_to_lightgbm(data):
    text = data.draw(st.sampled_from(texts()[:4]))
    field = data.draw(st.sampled_from(["leaf_value", "threshold", "leaf_const", "leaf_coeff"]))
    spots = [
        (line.start() + number.start(), line.start() + number.end())
        for line in re.finditer(rf"^{field}=.*$", text, re.MULTILINE)
        for number in re.finditer(r"-?\d[\d.e+-]*", line.group())
    ]
    if not spots:
        return
    start, stop = data.draw(st.sampled_from(spots))
    number = data.draw(st.floats(-1e6, 1e6, allow_subnormal=False).map(repr))
    edited = with_right_sizes(text[:start] + number + text[stop:])
    machine = read_or_refuse(edited)
    if machine is None:  # the number of a category set
        assert field == "threshold"
        return
    X = np.random.default_rng(1).normal(size=(60, 3)) * [1, 1, 40]
    X[:, 0] = float(number) if field == "threshold" else X[:, 0]
    booster = lgb.Booster(model_str=edited)
    raw = booster.predict(X, raw_score=True).reshape(60, -1)
    assert np.array_equal(machine.margin(X), raw)


@pytest.mark.parametrize("which", range(5))
def test_the_texts_themselves_are_read(which):
    assert read_or_refuse(texts()[which]) is not None
    assert with_right_sizes(texts()[which]) == texts()[which]
