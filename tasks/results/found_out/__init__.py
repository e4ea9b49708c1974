"""What the cases of an evaluation tell beside its metrics."""
