"""The write room: machines into our own file, and back into the models of other libraries.

One file for each library. A writer is exact or refuses: a machine whose answers the target cannot
give is refused with the field, the tree and the test that it cannot say, and a way out. `to_onnx`
and `to_treelite` also write what differs in the last digits, and warn with the cause.
"""

from __future__ import annotations

from .dm_file import dm_bytes, save
from .files import TARGETS, target_of, write_file
from .lightgbm import lightgbm_text, to_lightgbm
from .onnx import to_onnx
from .shap import to_shap
from .sklearn import to_sklearn
from .treelite import to_treelite
from .xgboost import to_xgboost, xgboost_json

__all__ = [
    "TARGETS",
    "dm_bytes",
    "lightgbm_text",
    "save",
    "target_of",
    "to_lightgbm",
    "to_onnx",
    "to_shap",
    "to_sklearn",
    "to_treelite",
    "to_xgboost",
    "write_file",
    "xgboost_json",
]
