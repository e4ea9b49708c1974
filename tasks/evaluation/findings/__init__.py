"""Findings of an evaluation in addition to its metrics, one file per finding: figures, JSON and sentences."""
