"""Load rows into a source: stage them, check them, and make them visible in one transaction."""
