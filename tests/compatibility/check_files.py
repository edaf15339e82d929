"""Files of `make_files.py`, read here and held against the answers that stand beside them.

    python tests/compatibility/check_files.py FOLDER [RESULTS.json]

Prints a line for every file that is not equal to the bit, and a summary. Exits with 1 where an
answer differs or a file of another library than scikit-learn cannot be read. (A skops or pickle
file of scikit-learn is a copy of its objects; releases that changed those refuse it in words.)

Some classes of scikit-learn make probabilities with NumPy's exponential, which is not the same to
the bit in every release of NumPy on every processor. Where the two NumPys give other numbers for
the same exponents, such a probability may differ by ROUNDING; where they agree, it may not.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np

import decision_machines as dm

sys.path.insert(0, str(Path(__file__).parent))

from make_files import exponentials

EQUAL, ROUNDED = "equal", "probabilities rounded"
ROUNDING = 4 * np.finfo(np.float64).eps


def check(folder: Path) -> dict[str, str]:
    """What became of every file: EQUAL, ROUNDED, "refused: ..." or what differs."""
    about = json.loads((folder / "files.json").read_text())
    another_numpy = about["exponentials"] != exponentials()
    return {
        entry["file"]: check_file(
            folder / entry["file"],
            rows_of(entry["rows"]),
            may_round=another_numpy and entry["file"].startswith("sklearn"),
        )
        for entry in about["files"]
    }


def check_file(path, rows, may_round):
    try:
        machine = dm.load(path, trust=path.suffix == ".pkl")
    except dm.DecisionMachinesError as error:
        # Python's own message names the file of a module, which is another on every computer.
        told = re.sub(r" from '[^']*'", "", error.found)
        return f"refused: {told[:150]}"
    became = EQUAL
    with np.load(path.parent / f"{path.name}.npz") as answers:
        for name, wanted in answers.items():
            found = np.asarray(getattr(machine, name)(rows))
            if found.dtype == object:
                found = found.astype(str)
            if found.reshape(-1).tolist() == wanted.reshape(-1).tolist():
                continue
            is_probability = may_round and name == "predict_proba"
            if not is_probability or abs(found - wanted.reshape(found.shape)).max() > ROUNDING:
                return f"{name} differs"
            became = ROUNDED
    return became


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
    return found not in (EQUAL, ROUNDED) and not (is_copy and found.startswith("refused"))


def summary(results: dict[str, str]) -> dict[str, object]:
    """Files that are equal by number, others by name and reason."""
    failed = [f"{name}: {found}" for name, found in results.items() if fails(name, found)]
    return {
        "equal": list(results.values()).count(EQUAL),
        "rounded": [name for name, found in results.items() if found == ROUNDED],
        "refused": [
            f"{name}: {found}"
            for name, found in results.items()
            if found.startswith("refused") and not fails(name, found)
        ],
        "failed": failed or ([] if results else ["there is no file"]),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    told = summary(check(Path(sys.argv[1])))
    for line in [*told["refused"], *told["failed"]]:
        print(line)
    print(f"{told['equal']} files equal to the bit")
    if told["rounded"]:
        print(f"{len(told['rounded'])} equal but for probabilities of another NumPy's exponential")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(told))
    sys.exit(bool(told["failed"]))
