"""`dm train`: a file in, a scored tree out."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from read_conditions import conditions_of, holds
from typer.testing import CliRunner

import decision_machines as dm
from decision_machines.cli.app import app
from decision_machines.errors import InputError


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    m = 240
    table = pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(m)],
            "colour": rng.choice(["red", "green", "blue"], m),
            "size": rng.normal(size=m).round(3),
        }
    )
    table["price"] = (2 * table["size"] + 3 * (table["colour"] == "red")).round(2)
    table["grade"] = np.where(table["price"] > 1, "high", "low")
    table["stars"] = np.clip(table["price"].round(), 0, 3).astype(int)
    table.loc[::19, "size"] = np.nan
    table.loc[5, "grade"] = None
    table.loc[7, "colour"] = None
    folder = tmp_path_factory.mktemp("rows")
    table.to_csv(folder / "rows.csv", index=False)
    table.to_parquet(folder / "rows.parquet")
    return folder, table


def run(*arguments):
    done = CliRunner().invoke(app, ["train", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


OTHERS = ["--drop", "id", "--iterations", "20"]


def test_classes_are_guessed_scored_shown_and_written(rows, tmp_path):
    folder, table = rows
    out = tmp_path / "model.dm"
    others = [*OTHERS, "--drop", "price", "--drop", "stars"]
    done = run(folder / "rows.csv", "--target", "grade", "--leaves", 6, "-o", out, *others)
    assert done.exit_code == 0
    assert "classification" in done.stderr
    assert "1 without a target left out" in done.stderr
    assert "rows kept apart: accuracy 0.9" in done.stdout
    assert "colour" in done.stdout
    assert "then high" in done.stdout
    machine = dm.load(out)
    known = table[table["grade"].notna()]
    answers = machine.predict(known[["colour", "size"]])
    assert np.mean(answers == known["grade"]) > 0.9


def test_the_printed_rules_read_back_are_the_written_machine(tmp_path):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "age": rng.integers(17, 90, 300),
            "pay": rng.standard_normal(300) / 3,
            "town": rng.choice(["p", "q, r", "s"], 300),
        }
    )
    right = (table["age"] > 40) & (table["town"] != "s") | (table["pay"] > 0.3)
    table["grade"] = np.where(right, "high", "low")
    table.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "model.dm"
    done = run(tmp_path / "rows.csv", "--target", "grade", "--leaves", 8, "-o", out)
    printed = [line.strip() for line in done.stdout.splitlines() if line.startswith("  if ")]
    machine = dm.load(out)
    assert len(printed) == machine.n_leaves
    assert not re.search(r"age [<≤>≥] \d+\.", done.stdout)
    answers = machine.predict(table[["age", "pay", "town"]])
    for i, row in table.iterrows():
        met = [
            rule
            for rule in printed
            if all(
                holds(said, name, row[name], machine.columns)
                for said in conditions_of(rule)
                for name in [next(n for n in table.columns if n in said.split())]
            )
        ]
        assert len(met) == 1
        assert re.search(r"then (\w+)", met[0])[1] == answers[i]


def test_numbers_are_guessed_and_json_says_all(rows):
    folder, _ = rows
    others = [*OTHERS, "--drop", "grade", "--drop", "stars"]
    done = run(folder / "rows.parquet", "--target", "price", "--json", "--refit", *others)
    found = json.loads(done.stdout)
    assert found["kind"] == "regression"
    assert found["scores"]["R²"] > 0.7
    assert found["scores"]["RMSE"] < found["scores"]["RMSE of the mean"]
    assert found["rows learned from"] + found["rows kept apart"] == found["rows"] == 240
    assert set(found["importances"]) == {"colour", "size"}


@pytest.mark.parametrize(
    ("kind", "said"), [("auto", "classification"), ("regression", "regression")]
)
def test_few_whole_numbers_are_classes_unless_said_otherwise(rows, kind, said):
    folder, _ = rows
    others = [*OTHERS, "--drop", "grade", "--drop", "price", "--json"]
    done = run(folder / "rows.csv", "--target", "stars", "--kind", kind, *others)
    assert json.loads(done.stdout)["kind"] == said


@pytest.mark.filterwarnings("ignore")
def test_many_trees_and_soft(rows, tmp_path):
    folder, _ = rows
    others = [*OTHERS, "--drop", "price", "--drop", "stars", "--drop", "colour", "--json"]
    done = run(
        *(folder / "rows.csv", "--target", "grade", "--trees", 2, "--soft"),
        *("-o", tmp_path / "model.onnx", *others),
    )
    found = json.loads(done.stdout)
    assert found["trees"] == 2
    assert "accuracy of the hard machine" in found["scores"]
    assert (tmp_path / "model.onnx").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--target", "nothing"], "no column 'nothing'"),
        (["--target", "price"], "different texts"),
        (["--target", "grade", "--kind", "regression"], "is not a number"),
        (["--target", "grade", "--kind", "ranking"], "--kind ranking"),
        (["--target", "price", "-o", "model.docx"], "docx"),
        (["--target", "price", "-o", "model.onnx"], "'id' holds text"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_words(rows, arguments, found):
    folder, _ = rows
    with pytest.raises(InputError, match=found):
        run(folder / "rows.csv", *arguments)


def test_nothing_is_written_where_training_fails(rows, tmp_path):
    folder, _ = rows
    out = tmp_path / "model.dm"
    with pytest.raises(InputError):
        run(folder / "rows.csv", "--target", "price", "-o", out)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- --optimal


@pytest.mark.parametrize("target", ["grade", "price"])
def test_the_best_tree_is_proven_and_set_beside_cart(rows, tmp_path, target):
    out = tmp_path / "best.dm"
    others = [
        "--drop",
        "id",
        "--drop",
        "stars",
        "--drop",
        "price" if target == "grade" else "grade",
    ]
    done = run(
        rows[0] / "rows.csv", "--target", target, *others, "--optimal", "--depth", 2, "-o", out
    )
    assert "proven: no tree of depth 2" in done.output
    assert "CART of the same size: " in done.output
    assert "95 times in 100" in done.output
    assert dm.load(out).depth <= 2
    said = run(
        rows[0] / "rows.csv", "--target", target, *others, "--optimal", "--depth", 2, "--json"
    )
    report = json.loads(said.output)
    name = "accuracy" if target == "grade" else "RMSE"
    low, high = report["intervals"][name]
    assert low <= report["scores"][name] <= high
    assert report["proof"]["is optimal"]
    assert report["proof"]["gap"] == 0
    assert name in report["scores of CART"]


def test_what_does_not_go_with_optimal_is_refused(rows):
    for wrong in (
        ["--optimal", "--trees", 3],
        ["--optimal", "--soft"],
        ["--optimal", "--criterion", "auc"],
    ):
        with pytest.raises(InputError, match="--optimal"):
            run(rows[0] / "rows.csv", "--target", "grade", "--drop", "id", *wrong)


# ---------------------------------------------------------------- --auto


def test_auto_shows_the_sizes_and_the_one_chosen(rows):
    arguments = [rows[0] / "rows.csv", "--target", "grade", "--drop", "id", "--drop", "price"]
    arguments += ["--optimal", "--depth", 2, "--auto"]
    done = run(*arguments)
    assert "sizes by cross-validation:" in done.output
    assert "chosen" in done.output
    report = json.loads(run(*arguments, "--json").output)
    chosen = [row["leaves"] for row in report["sizes"] if row["chosen"]]
    assert [row["leaves"] for row in report["sizes"]] == [1, 2, 3, 4]
    assert report["leaves"] <= chosen[0]
    assert f"depth 2 and {chosen[0]} leaves" in report["proof"]["words"]


def test_what_does_not_go_with_auto_is_refused(rows):
    for wrong in (["--leaves", 4], ["--trees", 3], ["--soft"]):
        with pytest.raises(InputError, match="--auto with"):
            run(rows[0] / "rows.csv", "--target", "grade", "--drop", "id", "--auto", *wrong)


# ---------------------------------------------------------------- --criterion, costs, directions


def test_a_criterion_is_searched_for_and_scored(rows):
    arguments = [rows[0] / "rows.csv", "--target", "grade", *OTHERS, "--drop", "stars"]
    report = json.loads(run(*arguments, "--criterion", "balanced", "--json").output)
    for scores in (report["scores"], report["scores of CART"]):
        assert {"accuracy", "balanced accuracy", "log-loss", "AUC"} <= set(scores)
    low, high = report["intervals"]["accuracy"]
    assert low <= report["scores"]["accuracy"] <= high
    numbers = [rows[0] / "rows.csv", "--target", "price", *OTHERS, "--drop", "grade"]
    numbers += ["--criterion", "quantile", "--quantile", 0.9, "--json"]
    assert "pinball loss" in json.loads(run(*numbers).output)["scores"]


def test_directions_and_costs_reach_the_tree(rows, tmp_path):
    out = tmp_path / "model.dm"
    arguments = [rows[0] / "rows.csv", "--target", "price", *OTHERS, "--drop", "grade"]
    arguments += ["--drop", "stars", "-o", out]
    run(*arguments, "--decreasing", "size")
    assert dm.load(out).is_monotone("size", "decreasing").verdict == "proven"
    run(*arguments, "--feature-cost", "size=5")
    assert "size" not in str(dm.load(out).rules())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--criterion", "poisson"], "--criterion poisson"),
        (["--quantile", 0.9], "--quantile without"),
        (["--criterion", "auc", "--trees", 3], "--criterion with --trees"),
        (["--time-limit", 5, "--oblique"], "--time-limit with --oblique"),
        (["--feature-cost", "size"], "--feature-cost size"),
        (["--feature-cost", "height=1"], "there is no feature 'height'"),
        (["--increasing", "size", "--decreasing", "size"], "both --increasing"),
        (["--increasing", "colour"], "holds text"),
        (["--optimal", "--leaf-cost", 0.1], "--optimal with --leaf-cost"),
    ],
)
def test_what_cannot_be_asked_is_refused(rows, wrong, says):
    with pytest.raises(InputError, match=re.escape(says)):
        run(rows[0] / "rows.csv", "--target", "grade", *OTHERS, *wrong)
