"""What was changed between two evaluations, and what is said of it."""
