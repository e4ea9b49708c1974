"""What evaluations are made of, in floors: each package uses only those below it (docs/contributing.md)."""
