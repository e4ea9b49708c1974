"""Analysis of the corpus and of the question log."""
