"""The score-function gradient: how a leaf that was drawn learns which leaf to draw.

Paper: cites `xu2015show`. The leaf of "sampled" weights is drawn from softmax(p), and a draw has no
gradient. But the expected loss E[ℓ] has: ∇ E[ℓ] = E[∇ℓ + (ℓ - b) ∇ ln P(leaf)], whatever baseline b
does not depend on the draw. A baseline near the mean of ℓ keeps the estimate from swinging.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from ..errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

DOING = "training sampled attention"


def score_function_loss(
    losses: Float[Tensor, "m"], log_prob: Float[Tensor, "m"], baseline: float | Tensor = 0.0
) -> Float[Tensor, ""]:
    """The mean loss, with the gradient of the expected loss in place of its own.

    Parameters
    ----------
    losses
        The loss of each row.
    log_prob
        ln of the probability of what was drawn for it, as `SoftMachine.sample` gives it.
    baseline
        What the losses are compared with: any number that the draws did not decide.

    Examples
    --------
    A coin of P(1) = σ(a) that costs 3 for 1 and 1 for 0 has E[ℓ] = 1 + 2 σ(a), whose slope at
    a = 0 is 1/2. Both draws together, each with its probability of 1/2:

    >>> a = torch.zeros(2, requires_grad=True)
    >>> log_prob = torch.nn.functional.logsigmoid(torch.tensor([-1.0, 1.0]) * a)
    >>> score_function_loss(torch.tensor([1.0, 3.0]), log_prob, baseline=2.0).item()
    2.0
    >>> score_function_loss(torch.tensor([1.0, 3.0]), log_prob, baseline=2.0).backward()
    >>> a.grad.sum().item()
    0.5
    """
    if losses.shape != log_prob.shape:
        raise InputError(
            DOING,
            f"losses of shape {tuple(losses.shape)} and log_prob of shape {tuple(log_prob.shape)}",
            "give one loss for each row: reduction='none', and a mean over the outputs",
        )
    score = (losses.detach() - baseline) * (log_prob - log_prob.detach())
    return (losses + score).mean()


class ScoreFunction(nn.Module):
    """`score_function_loss` with a running mean of the losses as its baseline.

    Paper: cites `xu2015show`.

    Parameters
    ----------
    decay
        The share of the old mean that each call keeps.

    Examples
    --------
    >>> import decision_machines as dm
    >>> net = dm.figure_one().soften("sampled", seed=0)
    >>> learn = ScoreFunction()
    >>> answer, log_prob = net.sample(torch.tensor([[2.0, 1.0, 2.0, 2.0]]))
    >>> learn((answer - 3).square().mean(-1), log_prob).backward()
    >>> net.t.grad.shape
    torch.Size([5])
    """

    baseline: Tensor
    calls: Tensor

    def __init__(self, decay: float = 0.9) -> None:
        super().__init__()
        if not (isinstance(decay, (int, float)) and 0 <= decay < 1):
            raise InputError(DOING, f"decay={decay!r}", "use a number from 0 to below 1")
        self.decay = float(decay)
        self.register_buffer("baseline", torch.zeros((), dtype=torch.float64))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, losses: Float[Tensor, "m"], log_prob: Float[Tensor, "m"]) -> Tensor:
        """The mean loss; its gradient compares each loss with the mean of earlier calls.

        The first call has none to compare with and takes the mean of its own losses.
        """
        now = losses.detach().mean().double()
        before = self.baseline if int(self.calls) else now
        found = score_function_loss(losses, log_prob, before.to(losses.dtype))
        self.baseline = self.decay * before + (1 - self.decay) * now
        self.calls = self.calls + 1
        return found
