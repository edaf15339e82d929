"""Gumbel noise that a seed and a count of draws make again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15
"""2⁶⁴ over the golden ratio: neighbouring seeds land far apart."""


def gumbel_noise(
    like: Float[Tensor, "..."], seed: int, draw: int, block: int
) -> Float[Tensor, "..."]:
    """Independent standard Gumbel numbers; the largest of p + noise is a draw from softmax(p)."""
    if like.is_meta:
        return torch.zeros_like(like)
    generator = torch.Generator(like.device)
    generator.manual_seed(((seed + 1) * GOLDEN + 1_000_003 * draw + block) % 2**63)
    drawn = torch.rand(like.shape, generator=generator, dtype=torch.float64, device=like.device)
    # Away from 0 and 1, whose logarithms end the noise.
    return -torch.log(-torch.log(drawn.clamp(1e-300, 1 - 1e-16))).to(like.dtype)
