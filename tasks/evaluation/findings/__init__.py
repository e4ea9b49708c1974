"""What an evaluation found beside its metrics, one file per finding: figures, JSON and sentences."""
