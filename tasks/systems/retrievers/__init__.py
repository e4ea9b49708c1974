"""Retrievers: ours, and those that a deployment brings."""
