"""Judging answers, the judge itself, and the gate."""
