"""Gates: their rules, and whether an evaluation passes."""
