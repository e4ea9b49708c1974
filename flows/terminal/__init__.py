"""The output of commands for people."""
