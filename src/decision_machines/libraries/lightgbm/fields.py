"""Every field of LightGBM's model texts, from release 2 on: read, or idle and why."""

from __future__ import annotations

from ..fields import fields

STATISTIC = "a statistic of training, for importances"
DERIVED = "follows from the other fields of the tree"

HEADER = fields(
    "version",
    "num_class",
    "num_tree_per_iteration",
    "max_feature_idx",
    "objective",
    "average_output",
    "feature_names",
    "feature_infos",
    "tree_sizes",
    idle={
        "label_index": "where the label stood in the training file",
        "monotone_constraints": "a constraint of training; the trees keep to it already",
    },
)
TREE = fields(
    "num_leaves",
    "num_cat",
    "split_feature",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
    "cat_boundaries",
    "cat_threshold",
    "is_linear",
    "leaf_const",
    "num_features",
    "leaf_features",
    "leaf_coeff",
    "leaf_count",
    "internal_count",
    idle={
        "Tree": "the number of the tree; blocks stand in order",
        "split_gain": STATISTIC,
        "leaf_weight": STATISTIC,
        "internal_value": STATISTIC,
        "internal_weight": STATISTIC,
        "leaf_parent": DERIVED,
        "has_categorical": DERIVED,
        "shrinkage": "a factor that leaf values hold already",
    },
)
TAIL = fields(
    "pandas_categorical",
    idle={
        "end of trees": "a mark",
        "feature importances": STATISTIC,
        "feature_importances": STATISTIC,
        "parameters": "settings of training: `Booster.predict` asks for its own settings alone",
        "end of parameters": "a mark",
    },
)
"""The parts after the trees, each named on a line of its own."""
