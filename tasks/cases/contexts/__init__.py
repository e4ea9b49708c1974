"""Bad contexts: what a question's ideal context is changed to, so that one sees what the generator makes of it."""
