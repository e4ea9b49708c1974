"""Evaluations as other tools take them: tables, and runs of MLflow."""
