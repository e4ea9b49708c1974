"""Evaluations against each other: comparison, trend, gate."""
