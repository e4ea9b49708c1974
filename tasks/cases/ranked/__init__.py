"""Rankings as they are judged: what stands in them, and pools of several."""
