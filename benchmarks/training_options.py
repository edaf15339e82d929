"""The command line of one section of the training benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def section_parser(doc: str | None, seeds: int) -> argparse.ArgumentParser:
    """The options that every section takes; `doc` is the section's own docstring."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--tables", type=Path, required=True, help="folder of published tables")
    parser.add_argument("--resume", type=Path, help="file of finished cells, appended to")
    parser.add_argument("--only", action="append", help="a data set; all by default")
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--quick", action="store_true", help="a small part of everything")
    return parser


def print_rows(
    run: Callable[..., list[dict]], parser: argparse.ArgumentParser, digits: int
) -> None:
    """Run a section as the command line asks, and print its rows."""
    for row in run(**vars(parser.parse_args())):
        shown = {k: round(v, digits) if isinstance(v, float) else v for k, v in row.items()}
        print(shown, flush=True)
