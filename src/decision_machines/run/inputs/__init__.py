"""What users pass, as rows of features."""
