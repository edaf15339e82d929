"""`PatchTree`: trees over the patches of images, as a convolution is a product over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..errors import InputError
from .sizes import check_size
from .tree_layer import TreeLayer

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..machine import DecisionMachine

DOING = "building a tree over patches"
RUNNING = "running a tree over patches"


class PatchTree(nn.Module):
    """(m, in_channels, h, w) → (m, out_channels, h', w'): a `TreeLayer` over every patch.

    The trees' tests read the pixels of a patch, channel by channel and row by row: oblique ones
    are filters, as of a convolution, and each patch follows its own path down: convolutional
    decision trees. Paper: cites `DCT`.

    Parameters
    ----------
    in_channels, out_channels
        Of the images, and of what is made of them.
    kernel_size, stride, padding
        As of `torch.nn.Conv2d`: an int or a pair.
    depth, trees, **options
        As of `TreeLayer`.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> layer = PatchTree(1, 4, kernel_size=3, padding=1, depth=2, trees=1)
    >>> layer(torch.randn(2, 1, 8, 8)).shape
    torch.Size([2, 4, 8, 8])
    >>> layer.harden()
    DecisionMachine(1 tree, 4 leaves, depth 2, 9 features, 4 outputs, oblique; TreeLayer)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        *,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        depth: int = 4,
        trees: int = 1,
        **options: Any,
    ) -> None:
        super().__init__()
        self.in_channels = check_size(DOING, "in_channels", in_channels)
        self.kernel_size = _pair("kernel_size", kernel_size, 1)
        self.stride = _pair("stride", stride, 1)
        self.padding = _pair("padding", padding, 0)
        n = self.in_channels * self.kernel_size[0] * self.kernel_size[1]
        self.tree = TreeLayer(n, out_channels, depth, trees, **options)

    def patches(self, images: Float[Tensor, "m c h w"]) -> Float[Tensor, "m p n"]:
        """The patches of each image as rows, as the trees, and the hardened machine, read them."""
        self._check(images)
        found: Tensor = nn.functional.unfold(
            images, self.kernel_size, padding=self.padding, stride=self.stride
        )
        return found.transpose(1, 2)

    def forward(self, images: Float[Tensor, "m c h w"]) -> Float[Tensor, "m k h2 w2"]:
        """The trees' answer to every patch, laid out as the patches are."""
        return self._laid_out(self.tree(self.patches(images)), images)

    def hard(self, images: Float[Tensor, "m c h w"]) -> Float[Tensor, "m k h2 w2"]:
        """The same by the hardened trees."""
        return self._laid_out(self.tree.hard(self.patches(images)), images)

    def harden(self, **options: Any) -> DecisionMachine:
        """A machine over patches; see `TreeLayer.harden`."""
        return self.tree.harden(**options)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the answer to images of these."""
        sides = zip((height, width), self.kernel_size, self.stride, self.padding, strict=True)
        rows, columns = (
            (side + 2 * padding - kernel) // stride + 1 for side, kernel, stride, padding in sides
        )
        return rows, columns

    def _laid_out(self, answers: Float[Tensor, "m p k"], images: Tensor) -> Tensor:
        # torch does not annotate `unflatten`.
        found: Tensor = answers.transpose(1, 2).unflatten(2, self.size(*images.shape[-2:]))
        return found

    def _check(self, images: Any) -> None:
        shape = tuple(getattr(images, "shape", ()))
        if not isinstance(images, torch.Tensor) or len(shape) != 4 or shape[1] != self.in_channels:
            raise InputError(
                RUNNING,
                f"images of shape {shape}",
                f"give a tensor of the shape (m, {self.in_channels}, height, width)",
            )
        if min(self.size(*shape[-2:])) < 1:
            raise InputError(
                RUNNING,
                f"images of {shape[2]} × {shape[3]}, smaller than a patch of {self.kernel_size}",
                "give larger images, or padding",
            )


def _pair(name: str, value: Any, least: int) -> tuple[int, int]:
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2:
        raise InputError(DOING, f"{name}={value!r}", "give an int or a pair of them")
    first, second = (check_size(DOING, name, side, least=least) for side in both)
    return first, second
