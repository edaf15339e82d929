"""The relax room: machines as PyTorch modules, trained by gradients and hardened again.

Every form of the paper is weights(keys(B) · query(S z - t)) · V, one choice on each of three axes:
`queries`, `keys` and `weights`; `forms` is the table of named choices. A product with B is a sum
along a path, so `paths` evaluates it level by level over all trees at once, in O(leaves). `module`
holds the parameters, `harden` makes a machine of them again. Torch is imported here only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MissingLibraryError

if TYPE_CHECKING:
    from ..machine import DecisionMachine
    from .mlp import ForestNetwork
    from .module import SoftMachine

DOING = "softening a machine"


def soften(machine: DecisionMachine, form: str | None = "soft_tree", **options: Any) -> SoftMachine:
    """The machine as a `torch.nn.Module`; see `DecisionMachine.soften`."""
    _require_torch(DOING)
    from .build import build

    return build(machine, form, **options)


def to_mlp(machine: DecisionMachine, **options: Any) -> ForestNetwork:
    """The machine as a plain network; see `DecisionMachine.to_mlp`."""
    _require_torch("casting a machine as a network")
    from .mlp import to_mlp

    return to_mlp(machine, **options)


def _require_torch(doing: str) -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingLibraryError(
            doing, "torch is not installed", "pip install 'decision-machines[torch]'"
        ) from None
