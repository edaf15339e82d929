"""What every layer made from sizes holds to: finite losses, copies, seeds, threads."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
import torch

from decision_machines import nn

MAKERS = {
    "oblique": lambda n: nn.TreeLayer(n, 3, 4, 2),
    "axis": lambda n: nn.TreeLayer(n, 3, 4, 2, form="axis"),
    "patches": lambda n: nn.PatchTree(1, 3, (1, n), depth=3, trees=2),
    "bins": lambda n: nn.SoftBins(n, 3, 2, groups=4, group_size=min(n, 3)),
    "chain": lambda n: nn.LocallyConstantNetwork(n, 3, 4),
    "routed": lambda n: nn.RoutedFeedForward(n, 3, 3, 4),
    "classes": lambda n: nn.TreeSoftmax(n, 3),
}
EVERY = pytest.mark.parametrize("kind", sorted(MAKERS))


def answer(kind, layer, x):
    if kind == "patches":
        return layer(x[:, None, None, :])[..., 0, 0]
    if kind == "classes":
        return layer.log_prob(x)
    return layer(x)


@EVERY
@pytest.mark.parametrize("width", [1, 7, 4096])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e6])
def test_losses_and_gradients_are_finite_at_any_width(kind, width, scale):
    layer = MAKERS[kind](width)
    out = answer(kind, layer, (torch.randn(16, width) + 1) * scale)
    loss = (out**2).mean()
    loss.backward()
    assert torch.isfinite(loss)
    for name, part in layer.named_parameters():
        assert part.grad is None or torch.isfinite(part.grad).all(), name
    assert any(part.grad is not None for part in layer.parameters())


@pytest.mark.parametrize("depth", range(11))
@pytest.mark.parametrize("width", [1, 300])
def test_routed_layers_start_finite_at_every_depth(depth, width):
    layer = nn.RoutedFeedForward(width, 3, depth, 2)
    loss = -layer(torch.randn(9, width))[:, 0].mean()
    loss.backward()
    assert torch.isfinite(loss)
    for name, part in layer.named_parameters():
        # Without tests there is no tree to learn.
        assert (depth == 0 and part.grad is None) or torch.isfinite(part.grad).all(), name


@EVERY
def test_the_same_seed_gives_the_same_layer_and_copies_answer_alike(kind):
    layers = []
    for _ in range(2):
        torch.manual_seed(4)
        layers.append(MAKERS[kind](5))
    x = torch.randn(20, 5)
    for layer in layers:
        answer(kind, layer, x)
        layer.eval()
    expected = answer(kind, layers[0], x)
    assert torch.equal(answer(kind, layers[1], x), expected)
    torch.manual_seed(5)
    other = MAKERS[kind](5).eval()
    assert not torch.equal(answer(kind, other, x), expected)
    other.load_state_dict(layers[0].state_dict())
    for twin in (other, copy.deepcopy(layers[0]), pickle.loads(pickle.dumps(layers[0]))):
        assert torch.equal(answer(kind, twin, x), expected)


def assert_threads_answer(ask, batches, expected):
    """Each batch in a thread of its own, all at once."""
    found = [None] * len(batches)

    def work(i):
        found[i] = ask(batches[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


@EVERY
def test_threads_share_a_layer(kind):
    layer = MAKERS[kind](5)
    batches = [torch.randn(200, 5) for _ in range(4)]
    answer(kind, layer, batches[0])
    layer.eval()
    expected = [answer(kind, layer, x) for x in batches]
    fresh = copy.deepcopy(layer)
    assert_threads_answer(lambda x: answer(kind, fresh, x), batches, expected)


def test_threads_share_a_hardened_routed_layer():
    layer = nn.RoutedFeedForward(20, 5, 3, 7, defer=9, certainty=0.4)
    layer(torch.randn(50, 20))
    expected_of = layer.freeze().eval().harden()
    batches = [torch.randn(500, 20) for _ in range(4)]
    assert_threads_answer(layer.harden(), batches, [expected_of(x) for x in batches])
