"""Retrievers: those of Yarus, and those of a deployment."""
