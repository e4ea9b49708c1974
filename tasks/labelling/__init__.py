"""People's labels of answers that a judge has scored: drawn at random, asked for, and what they correct."""
