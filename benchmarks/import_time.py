"""What `import decision_machines` adds to importing NumPy and SciPy, in fresh interpreters.

By the clock and in processor time: other work on the computer lengthens the clock's, so that the
limit is of processor time.
"""

from __future__ import annotations

import subprocess
import sys

LIMIT = 0.1
BASE = "import numpy, scipy.sparse"


def seconds(statement: str) -> tuple[float, float]:
    """The least of seven runs, by the clock and in processor time."""
    code = (
        f"from time import perf_counter, process_time; a, b = perf_counter(), process_time(); "
        f"{statement}; print(perf_counter() - a, process_time() - b)"
    )
    command = [sys.executable, "-c", code]
    runs = [
        tuple(map(float, subprocess.run(command, capture_output=True, check=True).stdout.split()))
        for _ in range(7)
    ]
    return min(clock for clock, _ in runs), min(used for _, used in runs)


def main() -> None:
    base, ours = seconds(BASE), seconds(f"{BASE}; import decision_machines")
    clock, used = ours[0] - base[0], ours[1] - base[1]
    print(f"NumPy and SciPy        {base[0]:.3f} s by the clock, {base[1]:.3f} s of processor time")
    print(f"and decision_machines  {ours[0]:.3f} s by the clock, {ours[1]:.3f} s of processor time")
    print(f"it adds {clock:.3f} s by the clock, {used:.3f} s of processor time (limit {LIMIT} s)")
    sys.exit(used > LIMIT)


if __name__ == "__main__":
    main()
