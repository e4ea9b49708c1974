"""What answers from bad contexts are measured by."""
