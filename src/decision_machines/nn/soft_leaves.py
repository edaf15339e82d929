"""`SoftLeaves`: what layers share that add leaves up by soft weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from .complete import class_output, value_output
from .sizes import check_choice, check_positive

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from ..machine import Output

LEAVES = ("values", "probabilities")


class SoftLeaves(nn.Module):
    """A temperature, and leaves V: numbers, or the logits of classes where `leaves` says so."""

    out_features: int
    trees: int
    V: nn.Parameter
    log_tau: Tensor

    def _take_leaves(self, doing: str, leaves: str) -> None:
        self.leaves = check_choice(doing, "leaves", leaves, LEAVES)

    def _take_tau(self, doing: str, tau: float) -> None:
        self.register_buffer("log_tau", torch.tensor(math.log(check_positive(doing, "tau", tau))))

    @property
    def tau(self) -> float:
        """The temperature: the smaller, the nearer to hard trees."""
        return float(self.log_tau.exp())

    @tau.setter
    def tau(self, tau: float) -> None:
        with torch.no_grad():
            self.log_tau.fill_(math.log(check_positive("setting a temperature", "tau", tau)))

    def values(self) -> Float[Tensor, "... k"]:
        """What each leaf adds to the answer."""
        return self.V if self.leaves == "values" else self.V.softmax(-1) / self.trees

    def _reset_leaves(self) -> None:
        nn.init.normal_(self.V, std=self.trees**-0.5 if self.leaves == "values" else 0.1)

    def _output(self) -> Output:
        """Of the hardened machine."""
        is_classes = self.leaves == "probabilities"
        return (class_output if is_classes else value_output)(self.out_features)
