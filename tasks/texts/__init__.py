"""Words that people read, by language."""
