"""Claims: what answers and references say, one thing each, and which texts support it."""
