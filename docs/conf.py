"""Sphinx configuration."""

project = "decision-machines"
author = "The decision-machines developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
autodoc_typehints = "none"
suppress_warnings = ["ref.ref"]
