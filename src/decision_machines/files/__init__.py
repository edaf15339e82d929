"""The files room: tables in, whole files out."""
