"""Trees trained by us beside CART, the published figures and the peers that install, set by set.

Sections, each a module of its own that says its protocol:

- oblique: hard oblique classification trees (training_oblique.py)
- regression: hard oblique regression trees with linear leaves (training_regression.py)
- axis: hard axis-aligned trees of equal leaf count (training_axis.py)
- soft: soft single trees (training_soft.py)
- tuning: boosted models tuned end to end (training_tuning.py)

    python benchmarks/training.py --data DATA --tables TABLES --resume FOLDER [--section axis]

Every finished cell is kept in the folder of --resume: an interrupted run goes on where it was.
Tables go to benchmarks/results/training.md and .json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
from pathlib import Path

SECTIONS = ("oblique", "regression", "axis", "soft", "tuning")
RESULTS = Path(__file__).parent / "results"


def table(rows: list[dict]) -> str:
    """A Markdown table of rows that need not have the same keys."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for row in rows:
        lines.append(f"| {' | '.join(_cell(row.get(name)) for name in names)} |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--tables", type=Path, required=True, help="folder of published tables")
    parser.add_argument("--resume", type=Path, required=True, help="folder for finished cells")
    parser.add_argument("--section", choices=SECTIONS, action="append", help="all by default")
    parser.add_argument("--only", action="append", help="a data set; all by default")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="a small part of everything")
    parser.add_argument("--finished", action="store_true", help="only write what is finished")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = {}
    for name in options.section or SECTIONS:
        section = importlib.import_module(f"training_{name}")
        print(f"== {name}", flush=True)
        rows = section.run(
            options.data,
            options.tables,
            seeds=options.seeds,
            quick=options.quick,
            only=options.only,
            log=lambda line: print(line, flush=True),
            resume=options.resume / f"{name}.jsonl",
            finished_only=options.finished,
        )
        if hasattr(section, "claims"):
            rows = section.summary(rows)
            print("\n".join(section.claims(rows)), flush=True)
        found[name] = {"says": (section.__doc__ or "").strip(), "rows": rows}
        print(table(rows), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    where = options.out / "training.json"
    if where.exists():
        found = json.loads(where.read_text())["sections"] | found
    kept = {"machine": platform.processor() or platform.machine(), "sections": found}
    where.write_text(json.dumps(kept, indent=1) + "\n")
    parts = ["# Training", "Written by `python benchmarks/training.py`."]
    for name in (n for n in SECTIONS if n in found):
        parts += [f"## {name}", found[name]["says"], table(found[name]["rows"])]
    (options.out / "training.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
