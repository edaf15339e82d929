"""Read stored XGBoost files and predict, on every target of this processor; needs the wheel alone.

    python tools/wheels/first_prediction.py tests/libraries/xgboost/files

The files' answers were stored by XGBoost itself on Linux for x86-64, and are compared bit for bit.
A response holds an exponential of the C library, which other systems and processors round
otherwise: there margins alone are compared.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np

import decision_machines as dm

IS_WHERE_STORED = (sys.platform, platform.machine()) == ("linux", "x86_64")
KINDS = ("margin", "response") if IS_WHERE_STORED else ("margin",)


def main(folder: Path) -> None:
    with np.load(folder / "answers.npz") as stored:
        answers = dict(stored)
    rows = np.tile(answers["X"], (40, 1))  # enough of them for the kernels of many rows
    n_compared = 0
    for target in dm.engine_info()["available"]:
        os.environ["DECISION_MACHINES_TARGET"] = target
        for path in sorted(folder.glob("*.model")):
            machine = dm.load(path)
            for what in KINDS:
                wanted = answers[f"{path.stem} {what}"]
                wanted = np.tile(wanted, (40,) + (1,) * (wanted.ndim - 1))
                found = getattr(machine, what)(rows)
                if not np.array_equal(found.reshape(wanted.shape), wanted):
                    sys.exit(f"{target}: the {what} of {path.name} differs from XGBoost's")
                n_compared += wanted.size
    print(
        f"Python {platform.python_version()} {platform.machine()}, "
        f"{', '.join(dm.engine_info()['available'])}: {n_compared} answers ({', '.join(KINDS)}) "
        "are XGBoost's to the bit"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
