"""Removal of data: by retention, or with a source."""
