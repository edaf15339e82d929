"""The cores that a process may use and the target of its kernels, each told in one place."""

import ast
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import decision_machines as dm
from decision_machines.run.engines import processor

SOURCE = Path(dm.__file__).parent
TARGETS = dm.engine_info()["available"]

PREDICT = "dm.figure_one().predict([[2, 1, 2, 2]])"
SOFT = """
import torch
net = dm.figure_one().soften("soft_tree", tau=0.1)
net(torch.tensor([[2.0, 1.0, 2.0, 2.0]])).sum().backward()
"""
TUNE = """
import numpy as np
import sklearn.datasets, sklearn.ensemble
X, y = sklearn.datasets.make_classification(200, random_state=0)
forest = sklearn.ensemble.RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
dm.tune(dm.convert(forest), X, y, epochs=1)
"""
TRAIN = """
import sklearn.datasets
X, y = sklearn.datasets.load_iris(return_X_y=True)
dm.DecisionMachineClassifier(oblique=True, max_leaves=4).fit(X, y)
"""


def in_a_process(code, target):
    return subprocess.run(
        [sys.executable, "-c", f"import decision_machines as dm\n{code}"],
        env={**os.environ, "DECISION_MACHINES_TARGET": target},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_the_target_can_be_chosen_by_the_environment(target):
    code = f"assert {PREDICT}[0] == 5\nprint(dm.engine_info()['target'])"
    assert in_a_process(code, target).stdout.strip() == target


@pytest.mark.parametrize(
    "code",
    ["dm.engine_info()", PREDICT, SOFT, TUNE, TRAIN],
    ids=["engine_info", "predict", "soften", "tune", "train"],
)
def test_an_unknown_target_is_named_with_its_variable_and_the_targets_there_are(code):
    for library in {SOFT: ["torch"], TUNE: ["torch", "sklearn"], TRAIN: ["torch", "sklearn"]}.get(
        code, []
    ):
        pytest.importorskip(library)
    said = in_a_process(code, "v9").stderr
    assert "DECISION_MACHINES_TARGET='v9'" in said
    assert all(name in said for name in TARGETS)
    assert "diverged" not in said


LEVELS = {
    "v2": {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    "v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "v4": {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
    "v4_vbmi": {"avx512vbmi"},
}
"""What each level of x86-64 adds, in the words of Linux."""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="Linux tells the flags"
)
def test_the_targets_are_those_whose_flags_the_system_tells():
    (told, *_) = re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    wanted = ["scalar"]
    for level, flags in LEVELS.items():
        if not flags <= set(told.split()):
            break
        wanted.append(level)
    assert wanted == TARGETS


def test_only_processors_that_the_process_may_use_are_counted(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 5, 7}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert processor.cpu_count() == dm.engine_info()["threads"] == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processor.cpu_count() == 64


def test_a_search_for_trees_uses_the_processors_that_it_may(monkeypatch):
    from decision_machines.train.axis import tree

    used = []
    real = tree.Limits
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(tree, "Limits", lambda *parts: used.append(parts[3]) or real(*parts))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    tree.axis_tree(X, (X[:, 0] > 0).astype(int), n_classes=2, max_leaves=2, n_iterations=1)
    assert used == [1]


def test_nothing_else_counts_processors():
    counting = {"cpu_count", "sched_getaffinity", "process_cpu_count"}
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in counting
        and isinstance(node.value, ast.Name)
        and node.value.id in ("os", "multiprocessing")
    ]
    assert set(found) == {"run/engines/processor.py"}
