"""Metrics as pure functions of arrays and texts, the statistics about them, and the one table of them all."""
