"""Evaluations that differ in one thing: sweeps and robustness."""
