"""What a path through a tree says."""
