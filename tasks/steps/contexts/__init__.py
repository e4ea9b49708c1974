"""Bad contexts: the ideal context of a question, changed to see what the generator makes of it."""
