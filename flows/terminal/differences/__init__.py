"""What is printed of differences: comparisons, trends, gates, and why something moved."""
