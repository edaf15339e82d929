"""Decisions: how margins and responses become a prediction, by name, and what is known of each.

`run` and the explorer page compute them, each with a table of its own under these names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """What is known of a decision before it is computed."""

    name: str
    reads: str
    """"margin" or "response": what is compared or given."""
    labels: int = 0
    """How many labels it chooses among at least; 0 where it gives numbers."""
    chooses_largest: bool = False
    """Whether it gives the label of the largest of a group; then there is a label for each."""
    least_outputs: int = 1
    most_params: int = 0
    """How many parameters it takes at most; each has a default."""

    @property
    def gives_labels(self) -> bool:
        return self.labels > 0


DECISIONS: dict[str, Decision] = {
    decision.name: decision
    for decision in (
        Decision("response", "response"),
        Decision("margin", "margin"),
        Decision("argmax", "response", labels=1, chooses_largest=True),
        Decision("argmax_margin", "margin", labels=1, chooses_largest=True),
        Decision("above", "response", labels=2, most_params=1),
        Decision("margin_above", "margin", labels=2, most_params=1),
        Decision("margin_at_least", "margin", labels=2, most_params=1),
        Decision("second_margin_above", "margin", labels=2, least_outputs=2, most_params=2),
        Decision("inlier", "response", most_params=1),
        Decision("above_each", "response", most_params=1),
        Decision("each_margin_above", "margin", most_params=1),
    )
}
"""Every decision by its name."""
