"""Yarus day after day: a Prefect server, its deployments, a worker, and the report pages."""
