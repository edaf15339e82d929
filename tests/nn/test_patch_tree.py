"""`PatchTree`: a `TreeLayer` laid over images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from decision_machines.errors import InputError
from decision_machines.nn import PatchTree


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(3, 1, 1), ((2, 3), (2, 1), (0, 1)), (5, 2, 2)]
)
def test_the_answer_stands_where_a_convolution_puts_it(kernel, stride, padding):
    layer = PatchTree(2, 3, kernel, stride=stride, padding=padding, depth=2, norm="fixed").eval()
    images = torch.randn(2, 2, 9, 8)
    like = torch.nn.Conv2d(2, 3, kernel, stride, padding)(images)
    found = layer(images)
    assert found.shape == like.shape
    padded = torch.nn.functional.pad(images, [layer.padding[1]] * 2 + [layer.padding[0]] * 2)
    top, left = layer.stride
    h, w = layer.kernel_size
    patch = padded[1, :, top : top + h, 2 * left : 2 * left + w]
    assert torch.allclose(layer.tree(patch.flatten()), found[1, :, 1, 2], atol=1e-6)


def test_the_machine_reads_patches():
    layer = PatchTree(1, 2, 3, depth=3, trees=2).double()
    images = torch.randn(4, 1, 7, 7, dtype=torch.float64)
    layer(images).sum().backward()
    assert all(torch.isfinite(part.grad).all() for part in layer.parameters())
    layer.eval()
    rows = layer.patches(images).reshape(-1, 9).numpy()
    found = layer.harden().margin(rows).reshape(4, 5, 5, 2).transpose(0, 3, 1, 2)
    assert np.allclose(found, layer.hard(images).detach().numpy())


def test_bad_sizes_and_images_are_named():
    for arguments, words in (
        ({"kernel_size": 0}, "kernel_size=0"),
        ({"kernel_size": (1, 2, 3)}, "a pair"),
        ({"kernel_size": 3, "padding": -1}, "padding=-1"),
        ({"kernel_size": 3, "depth": 0}, "depth=0"),
    ):
        with pytest.raises(InputError, match=words):
            PatchTree(1, 2, **arguments)
    layer = PatchTree(1, 2, 3)
    for images in (torch.zeros(2, 2, 8, 8), torch.zeros(8, 8), np.zeros((1, 1, 8, 8))):
        with pytest.raises(InputError, match="shape"):
            layer(images)
    with pytest.raises(InputError, match="smaller than a patch"):
        layer(torch.zeros(1, 1, 2, 2))
