"""Answers that are shown only from a score on: what showing more of them risks, and which threshold is the cheapest."""
