"""Writes `.dm` files of today's version, and their answers, into tests/libraries/own/files.

Run once when the version of `machine.schema` goes up; files of older versions stay as they are.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from strategies import make_machine, probe_rows

from decision_machines.machine import Cover, schema
from decision_machines.machine.steps import Step

FOLDER = Path(__file__).parent / "files"

EVERY_STEP = [
    Step("double"),
    Step("add", (0.5, -1.0)),
    Step("subtract", (0.25,)),
    Step("subtract_from", (1.0,)),
    Step("multiply", (0.5, 2.0)),
    Step("divide", (3.0,)),
    Step("negate"),
    Step("logistic"),
    Step("probit"),
    Step("sigmoid"),
    Step("complement"),
    Step("normalize"),
    Step("softmax"),
    Step("opposite"),
    Step("beside_zero"),
    Step("softmax_zero"),
    Step("exp"),
    Step("divide_into", (2.0,)),
    Step("single"),
]
"""A program of every step."""

EXACT_STEPS = [
    Step("single"),
    Step("multiply", (0.5, 2.0)),
    Step("add", (0.1, -1.0)),
    Step("double"),
    Step("subtract", (1 / 3,)),
    Step("beside_zero"),
    Step("subtract_from", (1.0, 2.0, 3.0, 4.0)),
    Step("divide", (3.0,)),
    Step("negate"),
    Step("complement"),
    Step("opposite"),
    Step("normalize"),
]
"""A program of steps that every processor computes alike, to the bit."""


def example():
    """A machine that uses as much of the schema as one machine can."""
    machine = make_machine(
        [5, 1, 8, 3], np.random.default_rng(11), n_features=4, n_outputs=3, values="real"
    )
    return replace(
        machine,
        columns=replace(machine.columns, names=("a", "b", "c", "d"), absent=float("nan")),
        trees=replace(
            machine.trees,
            test_ids=np.arange(machine.n_tests) + 1,
            leaf_ids=np.arange(machine.n_leaves)[::-1],
        ),
        output=replace(
            machine.output,
            link="softmax",
            decision="argmax",
            classes=(np.array(["rot", "grün", "blau"]),),
        ),
        source="an example of every version",
        cover=Cover(np.arange(machine.n_tests) + 2.0, np.arange(machine.n_leaves) + 0.5),
    )


def with_steps(link, params):
    """A machine of two outputs whose link is a program of steps."""
    machine = make_machine(
        [4, 6, 2], np.random.default_rng(12), n_features=3, n_outputs=2, values="real"
    )
    output = replace(machine.output, link=link, link_params=params, decision="response")
    return replace(machine, output=output, source="an example of steps in every version")


def examples():
    """What is written of each version, by what follows the version in the file's name."""
    return {
        "": example(),
        "-steps": with_steps("onnx", EVERY_STEP),
        "-averaged-steps": with_steps("averaged onnx", [3.0, *EXACT_STEPS]),
    }


def write(machine, path):
    machine.save(path)
    X = np.nan_to_num(probe_rows(machine, 10))
    answers = {
        "X": X.tolist(),
        "leaves": machine.apply(X).tolist(),
        "margins": machine.margin(X).tolist(),
        "answers": machine.predict(X).tolist(),
    }
    path.with_suffix(".json").write_text(json.dumps(answers) + "\n")


def main():
    FOLDER.mkdir(exist_ok=True)
    paths = {FOLDER / f"version-{schema.VERSION}{what}.dm": m for what, m in examples().items()}
    new = {path: machine for path, machine in paths.items() if not path.exists()}
    if not new:
        raise SystemExit(
            f"files of version {schema.VERSION} are there already: they are written once"
        )
    for path, machine in new.items():
        write(machine, path)


if __name__ == "__main__":
    main()
