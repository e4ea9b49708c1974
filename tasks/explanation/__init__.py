"""What moved between two evaluations: other questions, or answers; where, and because of which pages."""
