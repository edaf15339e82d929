"""The space of inputs as a machine divides it.

`cells` cuts every feature's values where some test does, so that questions about all inputs are
finite; `cell_words` says what a cell holds. `regions` are the inputs of each leaf of one tree,
`reach` the leaves of all trees that a box of inputs can reach. On them rest `boxes` (leaves as
boxes), `bounds` (the least and the greatest answer) and `monotone`.
"""
