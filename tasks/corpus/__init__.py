"""What the corpus and the log of questions are like, whatever is evaluated."""
