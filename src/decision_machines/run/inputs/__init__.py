"""What users pass, read as rows of raw features: arrays, sparse matrices, tables, labels."""
