"""Stores of model calls, embeddings, corpus indexes, labels, exams and server profiles."""
