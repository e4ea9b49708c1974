"""Stores: calls of models, embeddings, indexes over a corpus, labels, exams, profiles of servers."""
