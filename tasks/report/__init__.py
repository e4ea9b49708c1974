"""The report in HTML."""
