"""Proofs that a machine and a model answer alike, and why they do not.

`certify` probes every test of every tree on both sides of its boundary (`probes` builds the rows)
and compares with the library's own answers; `mismatch` traces rows that differ to the test where
their paths separate, with the cause in words.
"""
