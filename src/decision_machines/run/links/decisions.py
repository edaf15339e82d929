"""From margins and responses to predictions: one function for each of `machine.decisions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float

    from ...machine import Output

    Margin = Float[np.ndarray, "m k"]
    Answer = Float[np.ndarray, "m r"]


def response(output: Output, margin: Margin, answer: Answer) -> Any:
    """The response itself."""
    return answer[:, 0] if output.squeeze and answer.shape[1] == 1 else answer


def argmax(output: Output, margin: Margin, answer: Answer) -> Any:
    """The label of the largest response, the first where several are equal; a column per target."""
    assert output.classes is not None
    found = [
        labels[np.argmax(answer[:, low:high], axis=1)]
        for labels, low, high in zip(output.classes, output.groups, output.groups[1:], strict=False)
    ]
    return found[0] if len(found) == 1 else np.stack(found, axis=1)


def above(
    output: Output,
    margin: Margin,
    answer: Answer,
    threshold: float = 0.5,
) -> Any:
    """The second label where the one response is above the threshold."""
    assert output.classes is not None
    return output.classes[0][(answer[:, 0] > threshold).astype(np.intp)]


def argmax_margin(output: Output, margin: Margin, answer: Answer) -> Any:
    """The label of the largest margin: two margins may differ where their responses are equal."""
    assert output.classes is not None
    found = output.classes[0][np.argmax(margin, axis=1)]
    return found if output.squeeze else found[:, None]


def margin_above(
    output: Output,
    margin: Margin,
    answer: Answer,
    threshold: float = 0.0,
) -> Any:
    """The second label where the one margin is above the threshold."""
    assert output.classes is not None
    return output.classes[0][(margin[:, 0] > threshold).astype(np.intp)]


def second_margin_above(
    output: Output,
    margin: Margin,
    answer: Answer,
    threshold: float = 0.0,
    plain: float = 0.0,
) -> Any:
    """The second label where the second margin is above the threshold; 0 and 1 if `plain`."""
    assert output.classes is not None
    index = (margin[:, 1] > threshold).astype(np.int64)
    return index if plain else output.classes[0][index]


def margin_at_least(
    output: Output,
    margin: Margin,
    answer: Answer,
    threshold: float = 0.0,
) -> Any:
    """The second label where the one margin is not below the threshold."""
    assert output.classes is not None
    return output.classes[0][(margin[:, 0] >= threshold).astype(np.intp)]


def inlier(
    output: Output,
    margin: Margin,
    answer: Answer,
    offset: float = 0.0,
) -> Any:
    """-1 where the response is below the offset, else +1."""
    return np.where(answer[:, 0] - offset < 0, -1, 1)


def margin(output: Output, margin: Margin, answer: Answer) -> Any:
    """The margin itself, whatever the link."""
    return margin[:, 0] if output.squeeze and margin.shape[1] == 1 else margin


def each_margin_above(
    output: Output,
    margin: Margin,
    answer: Answer,
    threshold: float = 0.0,
) -> Any:
    """0 or 1 for every output: each is a question of its own."""
    return (margin > threshold).astype(np.int64)


def above_each(
    output: Output,
    margin: Margin,
    answer: Answer,
    threshold: float = 0.5,
) -> Any:
    """1.0 for each response above the threshold, else 0.0: several yes/no targets at once."""
    return (answer > threshold).astype(np.float64)


DECISIONS: dict[str, Callable[..., Any]] = {
    "response": response,
    "argmax": argmax,
    "above": above,
    "argmax_margin": argmax_margin,
    "margin_above": margin_above,
    "margin_at_least": margin_at_least,
    "second_margin_above": second_margin_above,
    "inlier": inlier,
    "above_each": above_each,
    "margin": margin,
    "each_margin_above": each_margin_above,
}
