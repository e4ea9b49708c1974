"""The steps of an evaluation, one file a step, and what serves them."""
