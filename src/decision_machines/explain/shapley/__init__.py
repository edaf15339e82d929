"""Shapley values of trees, exactly: by paths with covers, or against a background of rows.

`reference` has the definition over all coalitions and the form over templates, as oracles.
`paths` prepares a machine's trees for the kernels of `native/shapley`, `symmetric` its symmetric
trees, `background` rows to compare with. `values` reads rows of any kind and shapes what comes
back; `explainer` is all of it by the names of shap.
"""
