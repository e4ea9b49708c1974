"""Embedders: local ones, and any server of the OpenAI embeddings protocol."""
