"""Commands of `dm` that are too long for the table in `cli.py`, one file each."""
