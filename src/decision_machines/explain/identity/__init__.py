"""What a machine is: its canonical form, and what differs between two."""
