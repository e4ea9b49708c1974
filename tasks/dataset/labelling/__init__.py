"""People's labels of judged answers: sampling, collection, and corrected metrics."""
