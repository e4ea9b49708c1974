"""Checks before an evaluation begins: what is ready, what can be reached, what it will cost."""
