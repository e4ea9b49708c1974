"""People's labels of judged answers: drawn at random, asked for, and used to correct metrics."""
