"""Upkeep of an installation: set it up, examine it, remove what is old or a user's."""
