"""A recipe for `RoutedFeedForward`: the mixture, then each expert on its own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from ..errors import InputError
from .sizes import check_classes, check_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from .routed import RoutedFeedForward

DOING = "training a routed feed-forward layer"


def fit_routed(
    net: RoutedFeedForward,
    x: Tensor,
    y: Tensor,
    *,
    epochs: int = 20,
    own_epochs: int = 20,
    teacher: Callable[[Tensor], Tensor] | None = None,
    augment: Callable[[Tensor], Tensor] | None = None,
    batch_size: int = 256,
    own_batch_size: int = 1024,
    rate: float = 3e-3,
    own_rate: float = 1e-2,
    decay: float = 1e-2,
    seed: int = 0,
) -> RoutedFeedForward:
    """Train a layer of classes so that little is lost when each row takes one path.

    First the dense network for deferred rows, if there is one; then the mixture of likelihoods;
    then the tree is frozen and each expert learns on its own rows, halfway from the classes and
    halfway from the teacher. AdamW, one cycle for each. An expert sees its share of each batch
    alone, so these batches are larger, and steps are longer.

    Parameters
    ----------
    net
        Of answers="classes".
    x, y
        (m, n) rows and (m,) class numbers.
    epochs, own_epochs
        Of the mixture, and of the experts on their own rows. The dense network has both.
    teacher
        Rows → log-probabilities; by default the dense network, if there is one.
    augment
        Rows → rows, drawn anew for each batch; experts see few rows each, and gain most by it.
    batch_size, rate, decay
        Of AdamW.
    own_batch_size, own_rate
        Of the experts on their own rows.
    seed
        Of the batches. The same start and seed give the same layer on the same computer.

    Examples
    --------
    >>> from decision_machines.nn import RoutedFeedForward
    >>> _ = torch.manual_seed(0)
    >>> x = torch.randn(400, 5)
    >>> y = (x[:, 0] * x[:, 1] > 0).long()
    >>> net = RoutedFeedForward(5, 2, depth=2, hidden=4)
    >>> sizes = {"batch_size": 50, "own_batch_size": 50}
    >>> _ = fit_routed(net, x, y, epochs=20, own_epochs=10, rate=0.03, **sizes)
    >>> bool((net.harden()(x).argmax(-1) == y).float().mean() > 0.8)
    True
    """
    for name, value in (("epochs", epochs), ("own_epochs", own_epochs)):
        check_size(DOING, name, value, least=0)
    size, own_size = (
        min(check_size(DOING, name, value), max(1, len(x)))
        for name, value in (("batch_size", batch_size), ("own_batch_size", own_batch_size))
    )
    if net.answers != "classes":
        raise InputError(DOING, f"a layer of answers={net.answers!r}", "use answers='classes'")
    y = check_classes(DOING, y, len(x), net.out_features)
    made = torch.Generator().manual_seed(seed)

    def batches(size: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(x), generator=made)
        for at in order[: len(x) // size * size].split(size):
            yield x[at] if augment is None else augment(x[at]), y[at]

    def descend(
        parts: list[nn.Parameter],
        n_epochs: int,
        loss: Callable[[Tensor, Tensor], Tensor],
        size: int = size,
        rate: float = rate,
    ) -> None:
        steps = n_epochs * (len(x) // size)
        if not steps:
            return
        optimiser = torch.optim.AdamW(parts, lr=rate, weight_decay=decay)
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
        for _ in range(n_epochs):
            for rows, classes in batches(size):
                value = loss(rows, classes)
                optimiser.zero_grad()
                value.backward()
                optimiser.step()
                cycle.step()

    net.train()
    dense = net.dense
    if dense is not None:
        descend(
            list(dense.parameters()),
            epochs + own_epochs,
            lambda rows, classes: nn.functional.cross_entropy(dense(rows), classes),
        )
        if teacher is None:
            teacher = lambda rows: dense(rows).log_softmax(-1)  # noqa: E731
    tree = [net.W, net.t, net.log_slope]
    experts = [net.first, net.first_bias, net.second, net.second_bias]
    descend([*tree, *experts], epochs, lambda rows, c: nn.functional.nll_loss(net(rows), c))
    net.freeze()

    def taught(rows: Tensor, classes: Tensor) -> Tensor:
        answer = net(rows)
        own = nn.functional.nll_loss(answer, classes)
        if teacher is None:
            return own
        with torch.no_grad():
            wanted = teacher(rows).exp()
        learned: Tensor = (wanted * answer).sum(-1).mean()
        return 0.5 * own - 0.5 * learned

    descend(experts, own_epochs, taught, own_size, own_rate)
    return net.eval()
