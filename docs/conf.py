"""Sphinx configuration."""

project = "decision-machines"
author = "The decision-machines developers"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "numpydoc",
]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": True}
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
myst_enable_extensions = ["colon_fence"]
# Notebooks are kept without outputs and run when the pages are built.
nb_execution_mode = "auto"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["ref.ref"]
