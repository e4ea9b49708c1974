"""Nuggets: what a good answer must contain, made once and kept with the labels."""
