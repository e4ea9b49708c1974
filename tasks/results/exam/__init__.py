"""The exams of judges: what they say, in words too, and what follows for every number that a judge gives."""
