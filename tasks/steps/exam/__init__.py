"""Exams of judges: correct answers, the same answers damaged in known ways, and what a judge says of them."""
