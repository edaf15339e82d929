"""The run room: predictions of a machine.

`inputs` reads what users pass as rows of raw features. An engine finds exit leaves and sums their
values: `engines.reference` is the paper's equations, `engines.walk` the plain descent,
`engines.native` the fast code in C++. `links` turns the sums into responses and decisions, which
`decide` applies. `prepared` joins these for one machine, and is kept by it.
"""
