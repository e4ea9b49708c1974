"""Housekeeping: doctor, dry run, prune, erase."""
