"""The space of inputs as a machine divides it."""
