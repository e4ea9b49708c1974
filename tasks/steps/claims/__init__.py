"""Content of answers and references: facts found by rule, claims, nuggets and citations, and their support by texts."""
