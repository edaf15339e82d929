"""What `import decision_machines` adds to importing NumPy and SciPy, in fresh interpreters."""

from __future__ import annotations

import subprocess
import sys

LIMIT = 0.15
BASE = "import numpy, scipy.sparse"


def seconds(statement: str) -> float:
    code = f"import time; a = time.perf_counter(); {statement}; print(time.perf_counter() - a)"
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(7)
    ]
    return min(runs)


def main() -> None:
    base, ours = seconds(BASE), seconds(f"{BASE}; import decision_machines")
    print(f"NumPy and SciPy        {base:.3f} s")
    print(f"and decision_machines  {ours:.3f} s: adds {ours - base:.3f} s (limit {LIMIT} s)")
    sys.exit(ours - base > LIMIT)


if __name__ == "__main__":
    main()
