"""The comparison of two evaluations: the difference of a statistic, its interval, its test, and the verdict."""
