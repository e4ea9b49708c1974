"""`make demo-llm`: a small real model answers and judges on the CPU, and its exam shows how far to believe it."""
