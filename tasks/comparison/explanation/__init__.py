"""Why a metric moved between two evaluations: other questions, other answers, other pages."""
