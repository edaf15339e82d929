"""What features do to the answers."""
