"""Description of the corpus and of the log of questions."""
