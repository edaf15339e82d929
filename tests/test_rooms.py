"""The package as a whole: what it imports, and which way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OPTIONAL = [
    *("torch", "xgboost", "lightgbm", "catboost", "onnx", "onnxruntime", "matplotlib", "pandas"),
    *("polars", "pyarrow", "dask", "pyspark", "sklearn", "skops", "entmax", "treelite"),
]


def test_importing_the_package_loads_no_optional_library():
    code = "import sys, json, decision_machines; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    )
    assert [name for name in OPTIONAL if name in loaded] == []


def test_importing_the_package_loads_no_command_line_library():
    code = "import sys, decision_machines; print('typer' in sys.modules or 'rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_rooms_import_one_way():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_every_public_name_exists():
    import decision_machines as dm

    assert [name for name in dm.__all__ if not hasattr(dm, name)] == []
