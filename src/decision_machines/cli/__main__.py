"""`python -m decision_machines.cli`."""

from . import main

main()
