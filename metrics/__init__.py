"""Metrics as pure functions of arrays and texts, the statistics about them, and the one table of them all."""

if __name__ == "metrics":
    raise ImportError("`metrics` is now `yarus.metrics`; use `from yarus.metrics import …`")
