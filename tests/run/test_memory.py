"""A service that runs for months does not grow: what is made for a machine goes with it."""

import copy
import gc
import os
import pickle
import signal
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest
from strategies import make_machine

import decision_machines as dm
from decision_machines.explain.space.cells import Cells
from decision_machines.run.engines import compiled
from decision_machines.run.prepared import Prepared

COUNTED = (dm.DecisionMachine, Prepared, compiled.Compiled, Cells)


def living():
    gc.collect()
    return [sum(type(thing) is kind for thing in gc.get_objects()) for kind in COUNTED]


class Plan:
    """A native plan whose end can be seen: the compiled code's own objects cannot be watched."""

    def __init__(self, plan, all_plans):
        self.plan = plan
        all_plans.add(self)

    def __getattr__(self, name):
        return getattr(self.plan, name)


@pytest.fixture
def plans(monkeypatch):
    """The native plans that are alive."""
    found = weakref.WeakSet()
    make = compiled.compile_plan
    monkeypatch.setattr(compiled, "compile_plan", lambda *a, **k: Plan(make(*a, **k), found))
    return found


def use(seed):
    """A machine of its own, asked for everything that has a machine behind it."""
    rng = np.random.default_rng(seed)
    machine = make_machine([6, 5, 4], rng, n_features=3)
    X = np.round(2 * rng.standard_normal((20, 3)))
    machine.predict(X)
    machine.predict(X[:1])
    machine.apply(X, n_threads=2)
    machine.margin(X, engine="walk")
    str(machine.rules(X[:1]))
    machine.boxes()
    machine.counterfactual(X[0], budget=50)
    machine.tree(0).counterfactual(X[0])
    machine.tree(0).code_margin(X[0])
    machine.bounds(X[0], X[0] + 1, budget=50)
    make_machine([6, 5], rng, rules=False).is_monotone(0, budget=100)
    machine.simplify().fingerprint()
    machine.partial_dependence(X, 0, grid=[0.0, 1.0])
    machine.ice(X, 0, grid=[0.0, 1.0])
    machine.importance(X, np.ravel(machine.predict(X)), n_repeats=1)
    machine.proximity(X, by="code")
    machine.nearest(X[:2], X)
    machine.tree(0).polynomial()
    dm.diff(machine, replace(machine, V=machine.V + 1))
    pickle.loads(pickle.dumps(machine)).predict(X)
    copy.deepcopy(machine).predict(X)
    machine._repr_html_()


def test_machines_plans_and_explanations_go_when_they_are_dropped(plans):
    use(0)
    before = living()
    gc.collect()
    n_plans = len(plans)
    for seed in range(1, 6):
        use(seed)
    assert living() == before
    assert len(plans) == n_plans == 0


def test_a_machine_goes_at_once_without_the_garbage_collector(plans):
    gc.collect()
    gc.disable()
    try:
        machine = dm.figure_one()
        machine.predict([[2, 1, 2, 2]])
        machine.apply(np.ones((4, 4)))
        seen = weakref.ref(machine)
        assert len(plans) == 1
        del machine
        assert seen() is None
        assert len(plans) == 0
    finally:
        gc.enable()


def test_certificates_go_when_they_are_dropped(plans):
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))

    def certify():
        forest = ensemble.RandomForestClassifier(3, max_depth=3).fit(X, X[:, 0] > 0)
        assert dm.certify(dm.convert(forest), forest).holds

    certify()
    before = living()
    for _ in range(3):
        certify()
    assert living() == before
    assert len(plans) == 0


@pytest.mark.parametrize("form", ["soft_tree", "softmax", "straight_through", "linear"])
def test_softened_machines_go_when_they_are_dropped(form, plans):
    torch = pytest.importorskip("torch")

    def soften(seed):
        machine = make_machine([6, 5], np.random.default_rng(seed), values="real")
        net = machine.soften(form, tau=0.5)
        net(torch.ones(4, 3, dtype=net.t.dtype)).sum().backward()
        net.harden().predict(np.ones((1, 3)))

    soften(0)
    before = living()
    for seed in range(1, 6):
        soften(seed)
    assert living() == before
    assert len(plans) == 0


def test_threads_that_come_first_at_the_same_time_share_what_is_prepared():
    machine = make_machine([30] * 20, np.random.default_rng(7))
    X = np.ones((50, 3))
    wanted = machine.margin(X, engine="walk")
    gate, found = threading.Barrier(8), []

    def run():
        gate.wait()
        found.append((machine._prepared, machine.margin(X).tobytes()))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(prepared) for prepared, _ in found} == {id(machine._prepared)}
    assert {margins for _, margins in found} == {wanted.tobytes()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_forked_while_a_thread_prepares_a_machine_can_prepare_its_own(monkeypatch):
    """A lock that the thread held at the fork would never be given back in the child."""
    begun, done = threading.Event(), threading.Event()

    class Slow(Prepared):
        def __init__(self):
            super().__init__()
            if threading.current_thread() is thread:
                begun.set()
                done.wait()

    monkeypatch.setattr("decision_machines.run.prepared.Prepared", Slow)
    thread = threading.Thread(target=lambda: dm.figure_one().predict([[2, 1, 2, 2]]))
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that waits for ever
        os._exit(0 if dm.figure_one().predict([[2, 1, 2, 2]])[0] == 5 else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
