"""Alarms with a budget: the nights of a tier as they are watched, and what a watch may cost."""
