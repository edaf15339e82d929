"""CartPole-v1 and Acrobot-v1 for many episodes at once: gymnasium's equations on arrays.

Training steps thousands of episodes together; what is reported at the end is measured in gymnasium
itself. States are (m, 4) of float64, and policies read float32 observations, as gymnasium gives
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

GRAVITY = 9.8


@dataclass(frozen=True)
class World:
    """An environment: its words, how episodes start, and what an action makes of a state."""

    name: str
    """Gymnasium's."""
    features: tuple[str, ...]
    """What a policy reads."""
    actions: tuple[str, ...]
    start: float
    """Each state starts with numbers drawn between -start and start."""
    move: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """(m, 4) states and (m,) actions to the states after one step."""
    is_over: Callable[[np.ndarray], np.ndarray]
    """(m, 4) states to (m,) whether the episode ends there."""
    observe: Callable[[np.ndarray], np.ndarray]
    """(m, 4) states to what a policy reads."""
    pays: float
    """The reward of a step that does not end the episode."""
    pays_last: float
    """The reward of one that does."""
    limit: int = 500
    """Steps of an episode."""

    def begin(self, m: int, rng: np.random.Generator) -> np.ndarray:
        """(m, 4) states that episodes start in."""
        return rng.uniform(-self.start, self.start, (m, 4))

    def returns(
        self,
        act: Callable[[np.ndarray, np.ndarray], np.ndarray],
        states: np.ndarray,
        limit: int | None = None,
    ) -> np.ndarray:
        """(m,) sums of rewards of episodes from these states, until they end or are cut off.

        `act` gets the observations of the episodes that go on, and their numbers.
        """
        total, at = np.zeros(len(states)), np.arange(len(states))
        for _ in range(self.limit if limit is None else limit):
            states = self.move(states, act(self.observe(states), at))
            over = self.is_over(states)
            total[at] += np.where(over, self.pays_last, self.pays)
            if over.any():
                states, at = states[~over], at[~over]
            if not len(at):
                break
        return total


# ---------------------------------------------------------------------- a pole on a cart

FORCE, HALF_POLE, CART, POLE, CART_STEP = 10.0, 0.5, 1.0, 0.1, 0.02
FARTHEST, STEEPEST = 2.4, 12 * 2 * np.pi / 360


def move_cart(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """One step of 0.02 seconds: action 0 pushes to the left, 1 to the right."""
    x, speed, angle, turning = states.T
    cos, sin = np.cos(angle), np.sin(angle)
    push = (np.where(actions == 1, FORCE, -FORCE) + POLE * HALF_POLE * turning**2 * sin) / (
        CART + POLE
    )
    turn = (GRAVITY * sin - cos * push) / (HALF_POLE * (4 / 3 - POLE * cos**2 / (CART + POLE)))
    drive = push - POLE * HALF_POLE * turn * cos / (CART + POLE)
    return np.stack([x, speed, angle, turning], 1) + CART_STEP * np.stack(
        [speed, drive, turning, turn], 1
    )


def cart_is_over(states: np.ndarray) -> np.ndarray:
    """Off the track, or the pole too far from upright."""
    found: np.ndarray = (np.abs(states[:, 0]) > FARTHEST) | (np.abs(states[:, 2]) > STEEPEST)
    return found


def observe_cart(states: np.ndarray) -> np.ndarray:
    """The state itself."""
    return states.astype(np.float32)


# ---------------------------------------------------------------------- two links that swing

ARM_STEP = 0.2
FASTEST = np.array([4 * np.pi, 9 * np.pi])


def arm_change(states: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """The derivatives of angles and speeds: links of length and mass 1, pulled at their middles."""
    angle, bend, turning, bending = states.T
    cos, sin = np.cos(bend), np.sin(bend)
    inertia, coupling = 3.5 + cos, 1.25 + 0.5 * cos
    fall = 0.5 * GRAVITY * np.cos(angle + bend - np.pi / 2)
    pull = (
        -0.5 * bending**2 * sin
        - bending * turning * sin
        + 1.5 * GRAVITY * np.cos(angle - np.pi / 2)
        + fall
    )
    lower = (torque + coupling / inertia * pull - 0.5 * turning**2 * sin - fall) / (
        1.25 - coupling**2 / inertia
    )
    upper = -(coupling * lower + pull) / inertia
    return np.stack([turning, bending, upper, lower], 1)


def move_arm(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """One step of 0.2 seconds by Runge and Kutta's fourth order; action - 1 is the torque."""
    torque = actions - 1.0
    k1 = arm_change(states, torque)
    k2 = arm_change(states + ARM_STEP / 2 * k1, torque)
    k3 = arm_change(states + ARM_STEP / 2 * k2, torque)
    k4 = arm_change(states + ARM_STEP * k3, torque)
    after = states + ARM_STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    after[:, :2] -= 2 * np.pi * np.round(after[:, :2] / (2 * np.pi))
    after[:, 2:] = np.clip(after[:, 2:], -FASTEST, FASTEST)
    return after


def arm_is_over(states: np.ndarray) -> np.ndarray:
    """The tip is a link's length above the joint that does not move."""
    found: np.ndarray = -np.cos(states[:, 0]) - np.cos(states[:, 1] + states[:, 0]) > 1
    return found


def observe_arm(states: np.ndarray) -> np.ndarray:
    """Cosines and sines of both angles, and both speeds."""
    angle, bend, turning, bending = states.T
    return np.stack(
        [np.cos(angle), np.sin(angle), np.cos(bend), np.sin(bend), turning, bending], 1
    ).astype(np.float32)


CARTPOLE = World(
    "CartPole-v1",
    ("position", "speed", "angle", "turning"),
    ("push left", "push right"),
    0.05,
    move_cart,
    cart_is_over,
    observe_cart,
    1.0,
    1.0,
)
ACROBOT = World(
    "Acrobot-v1",
    ("cos angle", "sin angle", "cos bend", "sin bend", "turning", "bending"),
    ("torque -1", "torque 0", "torque +1"),
    0.1,
    move_arm,
    arm_is_over,
    observe_arm,
    -1.0,
    0.0,
)
WORLDS = {"cartpole": CARTPOLE, "acrobot": ACROBOT}
