"""Engines: the paper's equations, the plain descent, and the native code."""
