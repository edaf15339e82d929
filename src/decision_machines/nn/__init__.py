"""The nn room: layers made from sizes, ordinary `torch.nn.Module`s that harden to machines.

`relax` starts at a trained machine; here a network starts at nothing. `TreeLayer` is a forest of
complete soft trees; `PatchTree` lays it over the patches of images; `SoftBins` cuts every feature
into bins; `LocallyConstantNetwork` is a chain of ReLU neurons, which is an oblique tree;
`TreeSoftmax` chooses among many classes down a tree; `RoutedFeedForward` picks one small network
for each row. All but the last have `harden()`, which gives a `DecisionMachine`.
"""

from .locally_constant import LocallyConstantNetwork
from .patch_tree import PatchTree
from .routed import RoutedFeedForward
from .routed_fit import fit_routed
from .soft_bins import SoftBins
from .tree_layer import TreeLayer
from .tree_softmax import TreeSoftmax

__all__ = [
    "LocallyConstantNetwork",
    "PatchTree",
    "RoutedFeedForward",
    "SoftBins",
    "TreeLayer",
    "TreeSoftmax",
    "fit_routed",
]
