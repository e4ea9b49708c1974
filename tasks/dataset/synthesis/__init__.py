"""Synthetic questions that a generator writes from passages of the corpus."""
