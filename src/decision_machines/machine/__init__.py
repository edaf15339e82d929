"""The machine room: a tree or a forest as S, t, B and V, and what can be said of these matrices.

Everything here is exact and knows no other library. A machine is built by readers, run by engines,
relaxed, explained, shown and written by other rooms; this room imports none of them.
"""

from .accepted import Accepted
from .assembly import Assembly, single
from .category_sets import CategorySets
from .columns import Columns, Rule
from .compose import direct_sum
from .cover import Cover, stored_cover
from .linear import LinearLeaves
from .machine import DecisionMachine
from .output import Output
from .paper import figure_one
from .structure import Layout, layout
from .templates import template_product, tree_of_templates
from .theorems import column_rank, exit_is_unique
from .trees import ALL_OUTPUTS, Trees

__all__ = [
    "ALL_OUTPUTS",
    "Accepted",
    "Assembly",
    "CategorySets",
    "Columns",
    "Cover",
    "DecisionMachine",
    "Layout",
    "LinearLeaves",
    "Output",
    "Rule",
    "Trees",
    "column_rank",
    "direct_sum",
    "exit_is_unique",
    "figure_one",
    "layout",
    "single",
    "stored_cover",
    "template_product",
    "tree_of_templates",
]
