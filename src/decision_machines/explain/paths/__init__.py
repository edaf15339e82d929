"""What a path through a tree says.

`rules` are paths in words; `code_distance` counts the tests on a path that must flip;
`polynomial` multiplies the paths of a forest out into products of step functions.
"""
