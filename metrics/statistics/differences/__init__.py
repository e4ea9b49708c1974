"""Two evaluations: the difference of a number, its interval, its test, and the verdict."""
