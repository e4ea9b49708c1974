"""Print differences between evaluations: comparisons, trends, gates and explanations."""
