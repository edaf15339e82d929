"""Writes a `.dm` file of today's version, and its answers, into tests/libraries/own/files.

Run once when the version of `machine.schema` goes up; files of older versions stay as they are.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from strategies import make_machine, probe_rows

from decision_machines.machine import schema

FOLDER = Path(__file__).parent / "files"


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
    )


def main():
    path = FOLDER / f"version-{schema.VERSION}.dm"
    if path.exists():
        raise SystemExit(f"{path} is there already: a version's file is written once")
    FOLDER.mkdir(exist_ok=True)
    machine = example()
    machine.save(path)
    X = np.nan_to_num(probe_rows(machine, 10))
    answers = {
        "X": X.tolist(),
        "leaves": machine.apply(X).tolist(),
        "margins": machine.margin(X).tolist(),
        "answers": machine.predict(X).tolist(),
    }
    path.with_suffix(".json").write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
