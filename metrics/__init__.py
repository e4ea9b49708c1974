"""Metrics as pure functions of arrays and texts, statistics about them, and the table of all metrics."""

if __name__ == "metrics":
    raise ImportError("`metrics` is now `yarus.metrics`; use `from yarus.metrics import …`")
