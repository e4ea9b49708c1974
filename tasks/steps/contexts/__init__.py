"""Bad contexts: the ideal context of a question, changed to test the generator."""
