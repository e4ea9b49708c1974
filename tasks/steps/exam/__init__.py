"""Exams of judges: correct answers, the same answers damaged in known ways, and the judge's scores of both."""
