"""What is computed once: calls, embeddings, and the indexes over a corpus; and evaluations by their names."""
