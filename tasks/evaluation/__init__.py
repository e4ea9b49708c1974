"""An evaluation: how it begins, goes through its batches, is resumed, and ends."""
