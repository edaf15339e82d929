"""Sphinx configuration."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import make_charts

make_charts.main()

project = "decision-machines"
author = "The decision-machines developers"
html_title = "Decision Machines"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "numpydoc",
]
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "show_nav_level": 2,
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": {"index": [], "**": ["page-toc"]},
}
html_show_sourcelink = False
# The front page has its own ways on; every other page has its section beside it.
html_sidebars = {"index": []}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
exclude_patterns = ["_build", "_made", "**.ipynb_checkpoints"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
# Notebooks are kept without outputs and run when the pages are built.
nb_execution_mode = "auto"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["ref.ref"]
