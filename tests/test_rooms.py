"""The package as a whole: what it imports, and which way."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest

import decision_machines

ROOT = Path(__file__).parents[1]
SOURCE = Path(decision_machines.__file__).parent
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


# ---------------------------------------------------------------- verbs that can be followed


def imports_at_load(tree: ast.Module) -> list[ast.ImportFrom | ast.Import]:
    """The imports that run when a module is loaded: not those in functions, nor for types alone."""
    found: list[ast.ImportFrom | ast.Import] = []
    left: list[ast.AST] = [*tree.body]
    while left:
        node = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            left += node.orelse
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append(node)
        left += ast.iter_child_nodes(node)
    return found


def modules_named(node: ast.ImportFrom | ast.Import, package: str) -> list[str]:
    """The full names of what an import of a module in `package` asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    stem = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{stem}.{alias.name}" for alias in node.names]


def test_the_machine_room_loads_no_other_room():
    allowed = ("decision_machines.machine", "decision_machines.errors", "decision_machines._native")
    found = []
    for path in sorted((SOURCE / "machine").rglob("*.py")):
        parts = ("decision_machines", *path.relative_to(SOURCE).parent.parts)
        for node in imports_at_load(ast.parse(path.read_text())):
            for name in modules_named(node, ".".join(parts)):
                if name.startswith("decision_machines") and not name.startswith(allowed):
                    found.append(f"{path.name}: {name}")
    assert found == []


def test_a_room_loaded_by_the_machine_room_would_be_found():
    """The check above can fail: it sees through conditions, and knows functions and types apart."""
    code = """
from ..run import prepared
if TYPE_CHECKING:
    from ..explain import Boxes
else:
    from ..show import explore
def verb(self):
    from ..relax import soften
"""
    found = [
        name
        for node in imports_at_load(ast.parse(code))
        for name in modules_named(node, "decision_machines.machine")
    ]
    assert sorted(found) == ["decision_machines.run.prepared", "decision_machines.show.explore"]


def types_of(function: types.FunctionType) -> dict[str, object] | None:
    """The types that a function's annotations name, or None where their library is absent."""
    names, absent = names_for_types(sys.modules[function.__module__])
    try:
        return typing.get_type_hints(function, names)
    except NameError as error:
        if error.name not in absent:
            raise
        return None


def names_for_types(module: types.ModuleType) -> tuple[dict[str, object], set[str]]:
    """What the annotations of a module may name, and what they may not: its library is absent.

    That is, the module's globals and what it imports for types alone.
    """
    found, absent = dict(vars(module)), set()
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                try:
                    exec(compile(ast.Module([statement], []), module.__name__, "exec"), found)
                except ModuleNotFoundError as error:
                    if (error.name or "").startswith("decision_machines"):
                        raise
                    absent |= {name.asname or name.name.split(".")[0] for name in statement.names}
    return found, absent


def public_functions():
    import decision_machines as dm

    for name in dir(dm.DecisionMachine):
        made = inspect.getattr_static(dm.DecisionMachine, name)
        function = made.fget if isinstance(made, property) else made
        if not name.startswith("_") and inspect.isfunction(function):
            yield f"DecisionMachine.{name}", function
    for name in [*dm.__all__, *dm.LAZY]:
        if inspect.isfunction(getattr(dm, name)):
            yield name, getattr(dm, name)


def test_every_public_function_says_what_it_takes_and_gives():
    pytest.importorskip("jaxtyping", reason="the shapes in annotations need jaxtyping")
    pytest.importorskip("sklearn", reason="the estimators need scikit-learn")
    pytest.importorskip("torch", reason="tuning needs torch")
    checked = 0
    for name, function in public_functions():
        missing = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.annotation is parameter.empty and parameter.name != "self"
        ]
        assert missing == [], f"{name} has parameters without a type"
        hints = types_of(function)
        assert hints is None or "return" in hints, f"{name} does not say what it gives"
        checked += hints is not None
    assert checked > 50


def test_result_types_can_be_imported_from_their_room():
    import decision_machines.explain as explain

    for _, function in public_functions():
        given = (types_of(function) or {}).get("return")
        for kind in (given, *typing.get_args(given)):
            home = getattr(kind, "__module__", "")
            if home.startswith("decision_machines.explain."):
                assert getattr(explain, kind.__name__) is kind
                assert kind.__name__ in explain.__all__
