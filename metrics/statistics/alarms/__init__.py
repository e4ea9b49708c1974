"""Alarms with a budget: a level that is looked at every night, and rings so many times a year where nothing happens."""
