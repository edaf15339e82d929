"""A module as it is now, without torch: soft trees that the native kernel predicts with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..errors import UnsupportedModelError
from ..machine.soft import hard_as_soft, soft_trees

if TYPE_CHECKING:
    from ..machine import Assembly
    from .module import SoftMachine


def frozen(net: SoftMachine) -> Assembly:
    """The soft trees of a module; see `SoftMachine.frozen`."""
    refused = cannot_freeze(net)
    if refused:
        raise UnsupportedModelError(
            "freezing a module", refused, "keep the module as it is, or harden it: module.harden()"
        )
    hard = net.harden()
    if net.form.is_hard:
        return hard_as_soft(hard)
    is_kept = net.leaves.head.cpu().numpy() != 0
    of_tests = np.repeat(is_kept, np.diff(net.machine.trees.test_start))
    of_leaves = np.repeat(is_kept, np.diff(net.machine.trees.leaf_start))
    V = _numpy(net.leaves.V)[of_leaves]
    # The machine's own digits where they mean the same.
    changes: dict[str, Any] = {} if np.array_equal(hard.V.astype(V.dtype), V) else {"V": V}
    if net.selection.kind == "oblique":
        S = _numpy(net.selection.S)[of_tests].astype(hard.columns.dtype)
        changes["selection"] = sp.csr_array(S)
    parts = (net.slopes(), net.t, net.nudge)
    return soft_trees(
        replace(hard, **changes) if changes else hard, *(_numpy(part)[of_tests] for part in parts)
    )


def cannot_freeze(net: SoftMachine) -> str:
    """Why a module is more than soft trees; empty where it is not."""
    form = net.form
    if net.machine.linear is not None:
        return "its leaves are linear functions"
    if type(net).__name__ != "SoftMachine":
        return f"it is a {type(net).__name__}, whose heads mix tests"
    if form.is_hard:
        return "" if form.exact == "yes" else f"its form ({form.weights}) is not that of soft trees"
    if form.weights != "exp" or net.keys.factor is not None:
        return f"its leaves are weighed by {form.weights} of keys, not as soft trees are"
    if net.selection.kind not in ("fixed", "oblique"):
        return f"its tests select columns in another way (selection={net.selection.kind!r})"
    return ""


def _numpy(part: Any) -> np.ndarray:
    found: np.ndarray = part.detach().cpu().numpy()
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float32)
