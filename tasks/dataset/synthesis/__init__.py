"""Questions that a generator makes from passages of the corpus."""
