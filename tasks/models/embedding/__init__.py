"""Embedders over HTTP: any server that speaks the OpenAI embeddings protocol."""
