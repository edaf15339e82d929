"""Pipelines that vanish: the steps before a model, folded into its tests.

`graph` builds the steps as stages that can be run up to any point; `handlers` is the table of the
steps that we know, one file for each family; `questions` finds the raw numbers at which an answer
changes, by bisection over the ordered floats with the steps' own `transform`; `fold` makes the
machine that reads raw tables. What mixes columns is refused by name.
"""
