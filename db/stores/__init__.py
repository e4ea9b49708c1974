"""What is computed once: calls, embeddings, and the indexes over a corpus."""
