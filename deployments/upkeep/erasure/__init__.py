"""Erase what one user wrote: rows, files, artifacts, Prefect's records."""
