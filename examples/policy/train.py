"""Hard tree policies for gymnasium's CartPole and Acrobot: searched, hardened, bounded, measured.

    python examples/policy/train.py cartpole --seeds 0 1 2 3 4 --output cartpole.dm

For each seed a `TreeLayer` is searched (`learn.py`) on our own arrays of episodes (`dynamics.py`),
hardened, and measured once in gymnasium, in episodes that had no part in the search. The first
seed's policy is printed as rules, with what it can never do, and saved. Needs `gymnasium`.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from dynamics import WORLDS
from learn import PLANS, policy_of, train

import decision_machines as dm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamics import World

FIRST_EPISODE = 1_000_000
"""Seeds of the episodes that measure a policy start here."""


def measured(machine: dm.DecisionMachine, world: World, episodes: int, seed: int) -> np.ndarray:
    """(episodes,) returns in gymnasium itself, action by action from `machine.predict`."""
    import gymnasium

    number = {name: i for i, name in enumerate(world.actions)}
    envs = [gymnasium.make(world.name) for _ in range(episodes)]
    first = FIRST_EPISODE + seed * episodes
    seen = np.stack([env.reset(seed=first + i)[0] for i, env in enumerate(envs)])
    total, going = np.zeros(episodes), np.arange(episodes)
    while len(going):
        actions = machine.predict(seen[going].astype(np.float64))
        over = np.zeros(len(going), bool)
        for at, (i, action) in enumerate(zip(going, actions, strict=True)):
            seen[i], reward, ended, cut_off, _ = envs[i].step(number[str(action)])
            total[i] += reward
            over[at] = ended or cut_off
        going = going[~over]
    for env in envs:
        env.close()
    return total


class Side(NamedTuple):
    """The values of a feature up to a threshold, or those above it."""

    feature: str
    threshold: float
    above: bool

    def __str__(self) -> str:
        return f"{self.feature} {'>' if self.above else '≤'} {self.threshold:g}"


def sides(machine: dm.DecisionMachine, world: World) -> list[Side]:
    """Both sides of every test."""
    columns = machine.columns.feature[machine.S.tocsr().indices]
    asked = {
        (world.features[column], float(t)) for column, t in zip(columns, machine.t, strict=True)
    }
    return [Side(*test, above) for test in sorted(asked) for above in (False, True)]


def nevers(machine: dm.DecisionMachine, world: World) -> Iterator[tuple[str, tuple[Side, ...]]]:
    """Actions, and the largest boxes of one or two sides where they are never taken.

    A leaf's margin is 1 for the action that it takes and 0 for the others, so an action whose
    greatest margin over a box is 0 is proven absent there.
    """
    every = sides(machine, world)
    boxes = [(), *itertools.combinations(every, 1), *itertools.combinations(every, 2)]
    for action, name in enumerate(world.actions):
        found: list[tuple[Side, ...]] = []
        for box in boxes:
            if len({(side.feature, side.above) for side in box}) < len(box):
                continue
            if any(set(other) <= set(box) for other in found):
                continue
            low = {s.feature: np.nextafter(s.threshold, np.inf) for s in box if s.above}
            high = {s.feature: s.threshold for s in box if not s.above}
            if any(high.get(feature, np.inf) < least for feature, least in low.items()):
                continue
            if machine.bounds(low, high).upper[action] == 0:
                found.append(box)
                yield name, box


def show(machine: dm.DecisionMachine, world: World) -> None:
    """Print the policy's rules, and what it never does."""
    print(machine.rules())
    for action, box in nevers(machine, world):
        where = " and ".join(map(str, box)) if box else "anywhere"
        print(f"  never {action}, {where}: proven by bounds")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("world", choices=sorted(WORLDS))
    parser.add_argument("--seeds", "--seed", type=int, nargs="+", default=[0], help="of searches")
    parser.add_argument("--episodes", type=int, default=100, help="of each seed, in gymnasium")
    parser.add_argument("--output", type=Path, help="save the first seed's policy here, as .dm")
    given = parser.parse_args(arguments)
    world, plan = WORLDS[given.world], PLANS[given.world]
    torch.set_num_threads(1)
    means = []
    for seed in given.seeds:
        started = time.process_time()
        layer, score = train(world, plan, seed, tell=print if len(given.seeds) == 1 else str)
        machine = policy_of(layer, world)
        seconds = time.process_time() - started
        if seed == given.seeds[0]:
            show(machine, world)
            if given.output:
                machine.save(given.output)
                machine = dm.load(given.output)
        returns = measured(machine, world, given.episodes, seed)
        means.append(returns.mean())
        print(
            f"seed {seed}: {returns.mean():.1f} on average over {len(returns)} episodes of "
            f"{world.name}, {returns.min():.0f} at worst; {score:.1f} on {plan.checks} episodes of "
            f"the search, cut off after {plan.limit} steps; {machine.n_leaves} leaves, "
            f"{seconds:.0f} s of processor time",
            flush=True,
        )
    print(f"mean of {len(means)} seeds: {np.mean(means):.2f}")


if __name__ == "__main__":
    main()
