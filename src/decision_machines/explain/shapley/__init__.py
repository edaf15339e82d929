"""Shapley values of trees, exactly: by paths with covers, or against a background of rows."""
