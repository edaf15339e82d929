"""Files of `make_files.py`, read here and held against the answers that stand beside them.

    python tests/compatibility/check_files.py FOLDER [RESULTS.json]

Prints a line for every file that is not equal to the bit, and a summary. Exits with 1 where an
answer differs or a file of another library than scikit-learn cannot be read. (A skops or pickle
file of scikit-learn is a copy of its objects; releases that changed those refuse it in words.)
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np

import decision_machines as dm


def check(folder: Path) -> dict[str, str]:
    """What became of every file: "equal", "refused: ..." or what differs."""
    about = json.loads((folder / "files.json").read_text())
    return {
        entry["file"]: check_file(folder / entry["file"], rows_of(entry["rows"]))
        for entry in about["files"]
    }


def check_file(path, rows):
    try:
        machine = dm.load(path, trust=path.suffix == ".pkl")
    except dm.DecisionMachinesError as error:
        # Python's own message names the file of a module, which is another on every computer.
        told = re.sub(r" from '[^']*'", "", error.found)
        return f"refused: {told[:150]}"
    with np.load(path.parent / f"{path.name}.npz") as answers:
        for name, wanted in answers.items():
            found = np.asarray(getattr(machine, name)(rows))
            if found.dtype == object:
                found = found.astype(str)
            if found.reshape(-1).tolist() != wanted.reshape(-1).tolist():
                return f"{name} differs"
    return "equal"


def rows_of(rows):
    if isinstance(rows, dict):
        import pandas as pd

        return pd.DataFrame(
            {
                name: column["values"]
                if column["categories"] is None
                else pd.Categorical(column["values"], column["categories"])
                for name, column in rows.items()
            }
        )
    return np.array(rows, np.float64)


def fails(name: str, found: str) -> bool:
    is_copy = name.endswith((".skops", ".pkl"))
    return found != "equal" and not (is_copy and found.startswith("refused"))


def summary(results: dict[str, str]) -> dict[str, object]:
    """Files that are equal by number, others by name and reason."""
    failed = [f"{name}: {found}" for name, found in results.items() if fails(name, found)]
    others = [f"{name}: {found}" for name, found in results.items() if found != "equal"]
    return {
        "equal": list(results.values()).count("equal"),
        "refused": [line for line in others if line not in failed],
        "failed": failed or ([] if results else ["there is no file"]),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    told = summary(check(Path(sys.argv[1])))
    for line in [*told["refused"], *told["failed"]]:
        print(line)
    print(f"{told['equal']} files equal to the bit")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(told))
    sys.exit(bool(told["failed"]))
