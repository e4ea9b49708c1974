"""Prefect: its server, the states, artifacts and events of runs."""
