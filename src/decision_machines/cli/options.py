"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MODEL_FILE = (
    "The file to write: .dm, .onnx, .json or .ubj (XGBoost), .txt (LightGBM), .h (C), .mjs or .js "
    "(JavaScript), .sql (DuckDB)."
)
TABLE = "CSV, TSV (packed or not), Parquet or Arrow"

Model = Annotated[Path, typer.Argument(help="A model file of any supported library.")]
LearningData = Annotated[Path, typer.Argument(help=f"Rows to learn from: {TABLE}.")]
Target = Annotated[str, typer.Option("--target", help="The column to predict.")]
Weight = Annotated[
    str | None, typer.Option("--weight", help="A column with the weight of each row.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", help="A column to leave out, such as an id. Repeat for more."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="The column of the first feature, then of the second, ... for a model without "
        "names, or data with other names.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of everything that is drawn.")]
Threads = Annotated[
    int | None, typer.Option("--n-threads", min=1, help="By default all processors.")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Open a pickle or joblib file, which may run code.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no notes.")]
