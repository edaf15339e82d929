"""Proofs that a machine and a model answer alike, and why they do not."""
