"""Rows into a source: staged, checked, and made visible in one transaction."""
