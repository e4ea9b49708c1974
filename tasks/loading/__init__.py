"""The first step of a tier: its cases and the corpus, from one snapshot of the source."""
