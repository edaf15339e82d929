"""What a machine is, apart from how it is written down.

`canonical` puts tests and columns in one fixed order and makes the fingerprint; `simplify` removes
what decides nothing; `diff` says what differs between two machines and `witness` finds an input
that they answer differently.
"""
