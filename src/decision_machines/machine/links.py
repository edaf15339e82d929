"""Links: how margins become probabilities or responses, by name, and what is known of each.

This is the one table of links. Other rooms map its names, or its families, to what they need:
`run` to functions that follow each library to the bit, `relax` to torch, the writers in
`libraries` to what their library has, the explorer page to JavaScript, `train` to losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

AVERAGED = "averaged "
"""Before the name of a link: margins are divided by the first parameter and then linked."""


@dataclass(frozen=True)
class Family:
    """Links that are the same function, up to how each library rounds it."""

    name: str
    is_increasing: bool = True
    """Whether the response of one margin never falls where the margin rises."""
    keeps_order: bool = False
    """Whether the largest of several margins gives the largest response."""
    is_probability: bool = False
    """Whether responses lie between 0 and 1 and are probabilities."""
    reads_all_outputs: bool = False
    """Whether a response depends on the margins of other outputs too."""
    n_outputs: int | None = None
    """How many margins it takes, where it does not take any number of them."""


IDENTITY = Family("identity", keeps_order=True)
"""The margin itself."""
SIGMOID = Family("sigmoid", is_probability=True)
"""Margins are log-odds. Far from 0 responses are equal, so the order of margins is lost."""
SOFTMAX = Family("softmax", keeps_order=True, is_probability=True, reads_all_outputs=True)
EXPONENTIAL = Family("exponential")
"""Margins are the logarithms of rates."""
SOFTPLUS = Family("softplus")
STEP = Family("step")
"""1 above 0, else 0."""
SIGNED_SQUARE = Family("signed square")
ISOLATION = Family("isolation")
"""Margins are depths in an isolation forest."""
ANOMALY = Family("anomaly", is_increasing=False)
"""Margins are depths in an isolation forest; the response is near 1 where they are small."""
CLAMPED = Family("clamped", is_probability=True)
"""Margins are probabilities whose sum may be a rounding beyond 0 or 1, and is held there."""
ADABOOST = Family("adaboost", is_increasing=False, is_probability=True, reads_all_outputs=True)
"""One margin gives two responses, of which one falls."""
OPPOSED = Family(
    "opposed", is_increasing=False, is_probability=True, reads_all_outputs=True, n_outputs=2
)
"""Two margins, one the negative of the other: the sigmoid of the first, and what it leaves of 1."""
MEAN_AND_VARIANCE = Family("mean and variance", is_increasing=False, n_outputs=2)
SORTED = Family("sorted", reads_all_outputs=True)
"""The margins of a row in rising order: quantiles that do not cross."""
INCREMENTS = Family("increments", reads_all_outputs=True)
"""The first margin, then each adds a softplus to the one before: expectiles that do not cross."""
STEPS = Family("steps", is_increasing=False, reads_all_outputs=True)
"""The steps of an ONNX graph: any function."""

FAMILIES: tuple[Family, ...] = (
    IDENTITY,
    SIGMOID,
    SOFTMAX,
    EXPONENTIAL,
    SOFTPLUS,
    STEP,
    SIGNED_SQUARE,
    ISOLATION,
    ANOMALY,
    CLAMPED,
    ADABOOST,
    OPPOSED,
    MEAN_AND_VARIANCE,
    SORTED,
    INCREMENTS,
    STEPS,
)


@dataclass(frozen=True)
class Link:
    """A link by its name: its family, and the parameters it takes."""

    name: str
    family: Family
    least_params: int = 0
    most_params: int = 0
    """How few and how many numbers it takes as parameters."""
    bound: float = math.inf
    """Margins further from 0 than this are held there before they are linked."""

    @property
    def is_averaged(self) -> bool:
        """Whether margins are divided by the first parameter before they are linked."""
        return self.name.startswith(AVERAGED)

    @property
    def plain(self) -> Link:
        """The link that follows the division, where there is one; else this link."""
        return LINKS[self.name.removeprefix(AVERAGED)]

    @property
    def takes_steps(self) -> bool:
        """Whether the steps of an ONNX graph follow the numbers among its parameters."""
        return self.family is STEPS


LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        Link("identity", IDENTITY),
        Link("sigmoid", SIGMOID, most_params=1),
        Link("expit", SIGMOID, most_params=1),
        Link("softmax", SOFTMAX, most_params=1),
        Link("exp", EXPONENTIAL),
        Link("samme", ADABOOST),
        Link("isolation", ISOLATION),
        Link("xgboost_sigmoid", SIGMOID),
        Link("xgboost_exp", EXPONENTIAL),
        Link("xgboost_rounded_exp", EXPONENTIAL),
        Link("xgboost_softmax", SOFTMAX),
        Link("xgboost_step", STEP),
        Link("xgboost_sorted", SORTED),
        Link("xgboost_increments", INCREMENTS),
        Link("catboost_exp", EXPONENTIAL),
        Link("catboost_softmax", SOFTMAX),
        Link("catboost_mean_and_variance", MEAN_AND_VARIANCE),
        Link("lightgbm_exp", EXPONENTIAL),
        Link("lightgbm_softmax", SOFTMAX),
        Link("lightgbm_softplus", SOFTPLUS),
        Link("signed_square", SIGNED_SQUARE),
        Link("ydf_sigmoid", SIGMOID),
        Link("ydf_softmax", SOFTMAX),
        Link("ydf_exp", EXPONENTIAL, bound=19.0),
        Link("ydf_clamped", CLAMPED),
        Link("ydf_anomaly", ANOMALY, most_params=1),
        Link("treelite_sigmoid", SIGMOID, most_params=1),
        Link("treelite_softmax", SOFTMAX),
        Link("treelite_anomaly", ANOMALY, most_params=1),
        Link("interpret_sigmoid", SIGMOID),
        Link("interpret_softmax", SOFTMAX),
        Link("interpret_exp", EXPONENTIAL),
        Link("spark_sigmoid", OPPOSED, most_params=1),
        Link("onnx", STEPS),
    )
}
PLAIN_LINKS: tuple[str, ...] = tuple(LINKS)
"""The names of the links that divide nothing; each has an averaged one beside it."""
LINKS |= {
    AVERAGED + link.name: Link(
        AVERAGED + link.name, link.family, link.least_params + 1, link.most_params + 1, link.bound
    )
    for link in list(LINKS.values())
}
"""Every link by its name."""
