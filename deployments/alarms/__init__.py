"""Alarms with a budget of false ones: the nights of a tier, their levels, incidents and messages."""
