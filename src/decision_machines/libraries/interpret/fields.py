"""Every learned attribute of InterpretML's boosting machines: read, or idle and why."""

from __future__ import annotations

from ..fields import fields

STATISTIC = "a statistic of training, for pictures"
LEARNED = fields(
    "bins_",
    "classes_",
    "feature_names_in_",
    "feature_types_in_",
    "intercept_",
    "link_",
    "n_features_in_",
    "term_features_",
    "term_scores_",
    idle={
        "bag_weights_": "weights of the bags, whose average term_scores_ is",
        "bagged_intercept_": "the bags' own, whose average intercept_ is",
        "bagged_scores_": "the bags' own, whose average term_scores_ is",
        "best_iteration_": STATISTIC,
        "bin_weights_": STATISTIC,
        "breakpoint_iteration_": STATISTIC,
        "feature_bounds_": STATISTIC,
        "has_fitted_": "that it is fitted",
        "histogram_edges_": STATISTIC,
        "histogram_weights_": STATISTIC,
        "link_param_": "a number of links that are refused",
        "max_target_": "a bound of training with privacy",
        "min_target_": "a bound of training with privacy",
        "noise_scale_binning_": "noise of training with privacy",
        "noise_scale_boosting_": "noise of training with privacy",
        "standard_deviations_": STATISTIC,
        "term_names_": "names for people",
        "unique_val_counts_": STATISTIC,
    },
)
"""Attributes that begin or end with an underscore: what is learned."""
