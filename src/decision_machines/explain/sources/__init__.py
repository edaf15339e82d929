"""How each library is asked for its own leaves and margins, one file each."""
