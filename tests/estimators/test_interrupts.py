"""A real Ctrl-C ends a fit and whatever is around it; the best so far is kept where asked."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import decision_machines as dm
from decision_machines.train.forests.bagged import bagged_trees
from decision_machines.train.forests.boosted import boosted_trees
from decision_machines.train.oblique.search import Effort

START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import decision_machines as dm
from decision_machines.progress import Watch

enter = Watch.__enter__

def told(self):
    print("fitting", flush=True)
    return enter(self)

Watch.__enter__ = told
"""
CASES = """
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
z = X[:, 0] + X[:, 1] * X[:, 2]
y = (z > 0).astype(int)
source = GradientBoostingRegressor(n_estimators=5).fit(X, z)

def fit(case, keep):
    more = {"n_threads": 1, "keep_best_on_interrupt": keep}
    C, R = dm.DecisionMachineClassifier, dm.DecisionMachineRegressor
    one = C(n_iterations=10**9, **more)
    if case == "one tree":
        return one.fit(X, y).report_["interrupted"]
    if case == "many trees":
        return C(10**6, early_stopping=False, **more).fit(X, y).report_["interrupted"]
    if case == "an oblique tree":
        return C(oblique=True, n_iterations=10**9, **more).fit(X, y).report_["interrupted"]
    if case == "linear leaves":
        more |= {"oblique": True, "leaves": "linear"}
        return R(n_iterations=10**9, **more).fit(X, z).report_["interrupted"]
    if case == "the bound":
        return dm.NonGreedyTreeClassifier(n_epochs=10**9, **more).fit(X, y).report_["interrupted"]
    if case == "tuning":
        more |= {"epochs": 10**9, "patience": 10**9, "verbose": False}
        return dm.tune(source, X, z, **more).report.interrupted
    if case == "a grid search":
        return GridSearchCV(one, {"max_leaves": [4, 8]}, cv=3).fit(X, y)
    if case == "a cross validation":
        return cross_val_score(one, X, y, cv=3)
    if case == "a pipeline":
        return make_pipeline(StandardScaler(), one).fit(X, y)

for line in sys.stdin:
    keep, _, case = line.strip().partition(" ")
    try:
        print("went on", fit(case, keep == "keep") is True, flush=True)
    except KeyboardInterrupt:
        print("ended", flush=True)
"""
ALONE = ("one tree", "many trees", "an oblique tree", "linear leaves", "the bound", "tuning")
AROUND = ("a grid search", "a cross validation", "a pipeline")


class Child:
    """A process that fits what it is told to, and is interrupted while it does."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START + CASES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def interrupted(self, case: str, keep: str) -> tuple[str, int]:
        """What becomes of the case when SIGINT comes during its fit, and how many fits began."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{keep} {case}\n")
        self.process.stdin.flush()
        for n_fits, line in enumerate(self.process.stdout):
            if line != "fitting\n":
                return line.strip(), n_fits
            # Within the work, not at its very beginning.
            threading.Timer(0.3, self.process.send_signal, [signal.SIGINT]).start()
        raise AssertionError(f"the process ended with {self.process.wait()}")


@pytest.fixture(scope="module")
def child():
    found = Child()
    yield found
    found.process.kill()
    found.process.wait()


@pytest.mark.parametrize("case", [*ALONE, *AROUND])
def test_ctrl_c_ends_the_fit_and_what_is_around_it(case, child):
    assert child.interrupted(case, "raise") == ("ended", 1)


@pytest.mark.parametrize("case", ALONE)
def test_the_best_so_far_is_kept_where_it_was_asked_for(case, child):
    assert child.interrupted(case, "keep") == ("went on True", 1)


def test_an_interrupted_bag_keeps_its_whole_trees(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    steps = []

    from decision_machines.progress import Watch

    step = Watch.step

    def stop(self, **numbers):
        steps.append(numbers)
        if len(steps) == 130:  # within the second tree
            raise KeyboardInterrupt
        step(self, **numbers)

    monkeypatch.setattr(Watch, "step", stop)
    options = {"n_classes": 2, "n_trees": 5, "depth": 1, "effort": Effort(1, 1, 40, 30)}
    found = bagged_trees(X, y, **options, verbose=False, keep_best_on_interrupt=True)
    assert found.is_interrupted
    assert found.machine.n_trees == 1
    steps.clear()
    with pytest.raises(KeyboardInterrupt):
        bagged_trees(X, y, **options, verbose=False)


def test_interrupted_histograms_keep_their_whole_rounds(monkeypatch):
    from sklearn.ensemble._hist_gradient_boosting import gradient_boosting

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    grown, Grower = [], gradient_boosting.TreeGrower

    def grower(*given, **options):
        grown.append(1)
        if len(grown) == 8:  # within the third round of three trees
            raise KeyboardInterrupt
        return Grower(*given, **options)

    monkeypatch.setattr(gradient_boosting, "TreeGrower", grower)
    monkeypatch.setattr("decision_machines.train.forests.boosted.MOST_SEARCHED", 0)
    options = {"n_classes": 3, "n_trees": 10, "patience": None, "verbose": False}
    found = boosted_trees(X, y, **options, keep_best_on_interrupt=True)
    assert found.is_interrupted
    assert found.machine.n_trees == 6
    assert np.mean(found.machine.predict(X) == y) > 0.8
    grown.clear()
    with pytest.raises(KeyboardInterrupt):
        boosted_trees(X, y, **options)


# -- the commands ---------------------------------------------------------------------------------

COMMANDS = {
    "train": ["train", "rows.csv", "--target", "y", "-o", "out.dm", "--iterations", "1000000000"],
    "tune": ["tune", "model.dm", "rows.csv", "--target", "y", "-o", "out.dm", "--epochs", "100000"],
}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    table = np.c_[X, np.sin(X[:, 0]) + X[:, 1]]
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,c,y", comments="")
    model = dm.DecisionMachineRegressor(max_leaves=6, n_iterations=5, n_threads=1)
    model.fit(X, table[:, 3]).machine_.save(tmp_path / "model.dm")
    return tmp_path


def command_interrupted(name: str, folder, stderr: int) -> tuple[int, str]:
    """Exit code and output of the command, given SIGINT within its first fit."""
    script = START + textwrap.dedent(
        f"""
        sys.argv = ["dm", *{COMMANDS[name]!r}]
        from decision_machines.cli import main
        main()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("fitting"):
            break
    threading.Timer(0.5, process.send_signal, [signal.SIGINT]).start()
    out, _ = process.communicate()
    return process.returncode, out


def on_a_terminal(name: str, folder) -> tuple[int, str]:
    parent, child = pty.openpty()
    seen: list[bytes] = []

    def drain() -> None:
        try:
            while part := os.read(parent, 65536):
                seen.append(part)
        except OSError:
            pass  # the other end is closed

    reader = threading.Thread(target=drain)
    reader.start()
    code, _ = command_interrupted(name, folder, child)
    os.close(child)
    reader.join()
    os.close(parent)
    return code, b"".join(seen).decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_on_a_terminal_a_command_keeps_the_best_so_far_and_exits_with_130(name, folder):
    code, said = on_a_terminal(name, folder)
    assert code == 130, said
    assert dm.load(folder / "out.dm").n_features == 3


@pytest.mark.parametrize("name", COMMANDS)
def test_elsewhere_a_command_writes_nothing_and_exits_with_130(name, folder):
    with open(folder / "said", "w+") as file:
        code, _ = command_interrupted(name, folder, file.fileno())
        file.seek(0)
        said = file.read()
    assert code == 130, said
    assert "interrupted; no file is written" in said
    assert "Traceback" not in said
    assert not (folder / "out.dm").exists()
