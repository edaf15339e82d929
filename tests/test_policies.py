"""`examples/policy`: the worlds obey mechanics and gymnasium, and policies are their hard trees."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import decision_machines as dm

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "policy"))
try:
    import dynamics
    import learn
    import train as script
finally:
    sys.path.pop(0)

SMALL = learn.Plan(
    depth=2, starts=2, short=4, rounds=6, members=48, kept=8, fewest=4, most=8, checks=50
)
BOTH = pytest.mark.parametrize("name", ["cartpole", "acrobot"])


def slope(energy, states, change, step=1e-6):
    """dE/dt along a change of states, by central differences."""
    return (energy(states + step * change) - energy(states - step * change)) / (2 * step)


def test_the_cart_gains_the_energy_that_its_force_gives():
    """A second description: kinetic and potential energy of a cart with a rod on it."""

    def energy(states):
        _, speed, angle, turning = states.T
        l, rod = dynamics.HALF_POLE, dynamics.POLE
        kinetic = 0.5 * (dynamics.CART + rod) * speed**2
        kinetic += rod * l * speed * turning * np.cos(angle) + 2 / 3 * rod * l**2 * turning**2
        return kinetic + rod * dynamics.GRAVITY * l * np.cos(angle)

    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(200, 4)), rng.integers(2, size=200)
    change = (dynamics.move_cart(states, actions) - states) / dynamics.CART_STEP
    power = np.where(actions == 1, dynamics.FORCE, -dynamics.FORCE) * states[:, 1]
    assert np.allclose(slope(energy, states, change), power, atol=1e-6)


def test_the_arm_gains_the_energy_that_its_torque_gives():
    """A second description: two rods of length and mass 1 with inertia 1 about their middles."""

    def energy(states):
        angle, bend, turning, bending = states.T
        both = turning + bending
        speed = turning**2 + 0.25 * both**2 + turning * both * np.cos(bend)  # of the second middle
        kinetic = 0.5 * (0.25 * turning**2 + speed + turning**2 + both**2)
        height = -1.5 * np.cos(angle) - 0.5 * np.cos(angle + bend)
        return kinetic + dynamics.GRAVITY * height

    rng = np.random.default_rng(0)
    states, torque = rng.normal(size=(200, 4)), rng.integers(3, size=200) - 1.0
    change = dynamics.arm_change(states, torque)
    assert np.allclose(slope(energy, states, change), torque * states[:, 3], atol=1e-6)


def test_an_episode_pays_until_it_ends_or_is_cut_off():
    world = dynamics.CARTPOLE
    falling, steady = np.array([0, 0, 0.2, 0.5]), np.zeros(4)
    push = lambda rows, at: np.zeros(len(rows), int)  # noqa: E731
    found = world.returns(push, np.stack([falling, steady]))
    for state, expected in zip((falling, steady), found, strict=True):
        state, steps = state[None], 0
        while steps < 500:
            state, steps = world.move(state, np.zeros(1)), steps + 1
            if world.is_over(state)[0]:
                break
        assert expected == steps
    assert (dynamics.ACROBOT.returns(push, np.zeros((3, 4)), limit=7) == -7).all()


@BOTH
def test_worlds_are_gymnasiums_step_by_step(name):
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    world, rng = dynamics.WORLDS[name], np.random.default_rng(0)
    env = gymnasium.make(world.name)
    assert env.spec.max_episode_steps == world.limit
    assert env.action_space.n == len(world.actions)
    ends = 0
    for episode in range(30):
        seen, _ = env.reset(seed=episode)
        state = np.array(env.unwrapped.state, float)[None]
        assert np.array_equal(world.observe(state)[0], seen)
        assert np.abs(state).max() <= world.start
        for _ in range(world.limit):
            action = int(rng.integers(len(world.actions)))
            seen, reward, ended, cut_off, _ = env.step(action)
            state = world.move(state, np.array([action]))
            # Theirs sums in another order; each step starts from the same numbers.
            assert np.allclose(state[0], env.unwrapped.state, rtol=1e-12, atol=1e-12)
            assert np.allclose(world.observe(state)[0], seen, atol=1e-6)
            assert bool(world.is_over(state)[0]) == ended
            assert reward == (world.pays_last if ended else world.pays)
            state = np.array(env.unwrapped.state, float)[None]
            if ended or cut_off:
                ends += ended
                break
    assert ends > 0


@BOTH
def test_the_policy_is_the_layers_hard_tree_and_what_was_scored(name):
    world, rng = dynamics.WORLDS[name], np.random.default_rng(0)
    torch.manual_seed(0)
    search = learn.Search(world, replace(SMALL, depth=3), rng, world.begin(20, rng))
    search.best = search.mean + search.spread * rng.standard_normal(len(search.mean))
    trees = search.trees(search.best[None])
    layer = search.found()
    machine = learn.policy_of(layer, world)
    states = rng.normal(size=(3000, 4))
    rows = world.observe(states)
    scored = trees.act(rows, np.zeros(len(rows), int))
    taken = machine.predict(rows.astype(np.float64))
    assert np.array_equal(taken, np.array(world.actions)[scored])
    hard = layer.hard(torch.from_numpy(rows).double()).argmax(-1).numpy()
    assert np.mean(hard == scored) > 0.999  # rows within rounding of a threshold may differ


@BOTH
def test_a_search_earns_more_than_chance_and_seeds_reproduce(name):
    world = dynamics.WORLDS[name]
    layer, score = learn.train(world, SMALL, seed=3)
    rng = np.random.default_rng(5)
    chance = world.returns(
        lambda rows, at: rng.integers(len(world.actions), size=len(rows)), world.begin(50, rng)
    ).mean()
    assert score > chance + 100
    again, same = learn.train(world, SMALL, seed=3)
    assert same == score
    for part, other in zip(layer.parameters(), again.parameters(), strict=True):
        assert torch.equal(part, other)


def test_what_a_policy_never_does_is_never_done_and_nothing_is_left_out():
    world = dynamics.ACROBOT
    layer, _ = learn.train(world, replace(SMALL, rounds=4), seed=1)
    machine = learn.policy_of(layer, world)
    rows = np.random.default_rng(0).normal(size=(4000, 6)) * 3
    taken = machine.predict(rows)
    said = list(script.nevers(machine, world))
    assert said
    inside = {}
    for action, box in said:
        inside[action, box] = np.ones(len(rows), bool)
        for side in box:
            values = rows[:, world.features.index(side.feature)]
            inside[action, box] &= (values > side.threshold) == side.above
        assert not np.any(taken[inside[action, box]] == action)
    # Another way: a box of one side that no row with the action enters was said, or is in one.
    for action, side in itertools.product(world.actions, script.sides(machine, world)):
        values = rows[:, world.features.index(side.feature)]
        entered = np.any((taken == action) & ((values > side.threshold) == side.above))
        assert entered != any(who == action and set(box) <= {side} for who, box in said)


def test_the_script_prints_and_saves_a_policy_and_measures_it(tmp_path, capsys, monkeypatch):
    def in_our_own_world(machine, world, episodes, seed):
        number = {name: i for i, name in enumerate(world.actions)}
        act = lambda rows, at: np.array([number[a] for a in machine.predict(rows.astype(float))])  # noqa: E731
        return world.returns(act, world.begin(episodes, np.random.default_rng(seed)))

    try:
        import gymnasium  # noqa: F401
    except ImportError:
        monkeypatch.setattr(script, "measured", in_our_own_world)
    monkeypatch.setitem(script.PLANS, "cartpole", SMALL)
    file = tmp_path / "policy.dm"
    script.main(["cartpole", "--seeds", "0", "1", "--episodes", "5", "--output", str(file)])
    said = capsys.readouterr().out
    assert "then push" in said
    assert "never push" in said
    assert "seed 1:" in said
    machine = dm.load(file)
    assert machine.columns.names == dynamics.CARTPOLE.features
    assert set(machine.predict(np.zeros((2, 4)))) <= set(dynamics.CARTPOLE.actions)
